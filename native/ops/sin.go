package ops

func init() { unary("sin", "aten::sin", "aten::sin_") }
