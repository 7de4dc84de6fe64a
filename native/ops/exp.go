package ops

func init() { unary("exp", "aten::exp", "aten::exp_") }
