package ops

func init() { unaryAlso(integers, "neg", "aten::neg", "aten::neg_") }
