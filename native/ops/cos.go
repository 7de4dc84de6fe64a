package ops

func init() { unary("cos", "aten::cos", "aten::cos_") }
