package ops

func init() { unary("reciprocal", "aten::reciprocal", "aten::reciprocal_") }
