package ops

func init() { unary("relu", "aten::relu", "aten::relu_") }
