package ops

func init() { unary("hardsigmoid", "aten::hardsigmoid", "aten::hardsigmoid_") }
