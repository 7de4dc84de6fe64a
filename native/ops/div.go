package ops

import "samebits/bridge/recording"

func init() {
	register(lowerDiv, "aten::div.Tensor", "aten::div_.Tensor", "aten::div.Scalar", "aten::div_.Scalar")
}

// lowerDiv divides tensors; by a number PyTorch multiplies with its reciprocal, which it computes in double.
func lowerDiv(b *Builder, op *recording.Operation) error {
	self, other, value, common, err := operands(b, op)
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	e := elementwise{file: "div", entry: "div", pair: true, out: out, inputs: []int{self, other}, common: common, narrows: true}
	if other < 0 {
		e.file, e.entry, e.inputs, e.parameters = "mul", "mul_number", []int{self}, []any{1 / realOf(value)}
	}
	return e.emit(b, op)
}
