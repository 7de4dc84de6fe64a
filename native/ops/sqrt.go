package ops

func init() { unary("sqrt", "aten::sqrt", "aten::sqrt_") }
