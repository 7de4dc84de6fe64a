package ops

func init() { unary("hardswish", "aten::hardswish", "aten::hardswish_") }
