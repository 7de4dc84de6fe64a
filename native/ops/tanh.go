package ops

func init() { unary("tanh", "aten::tanh", "aten::tanh_") }
