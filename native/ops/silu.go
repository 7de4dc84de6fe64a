package ops

func init() { unary("silu", "aten::silu", "aten::silu_") }
