package ops

func init() { unary("sigmoid", "aten::sigmoid", "aten::sigmoid_") }
