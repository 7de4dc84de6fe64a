package ops

import "samebits/bridge/recording"

func init() {
	register(lowerMul, "aten::mul.Tensor", "aten::mul_.Tensor", "aten::mul.Scalar", "aten::mul_.Scalar")
}

func lowerMul(b *Builder, op *recording.Operation) error {
	self, other, value, common, err := operands(b, op)
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	e := elementwise{file: "mul", entry: "mul", pair: true, out: out, inputs: []int{self, other}, common: common, also: integers, narrows: true}
	if other < 0 {
		e.entry, e.inputs, e.parameters = "mul_number", []int{self}, []any{value}
	}
	return e.emit(b, op)
}
