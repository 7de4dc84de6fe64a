package ops

func init() { unaryAlso(integers, "abs", "aten::abs", "aten::abs_") }
