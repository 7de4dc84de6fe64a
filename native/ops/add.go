package ops

import "samebits/bridge/recording"

func init() {
	plus := func(b *Builder, op *recording.Operation) error { return lowerAdd(b, op, 1) }
	minus := func(b *Builder, op *recording.Operation) error { return lowerAdd(b, op, -1) }
	register(plus, "aten::add.Tensor", "aten::add_.Tensor", "aten::add.Scalar", "aten::add_.Scalar")
	register(minus, "aten::sub.Tensor", "aten::sub_.Tensor", "aten::sub.Scalar", "aten::sub_.Scalar")
}

// lowerAdd makes self + sign * alpha * other one fused multiply-add, as PyTorch's kernel is.
func lowerAdd(b *Builder, op *recording.Operation, sign float64) error {
	self, other, value, common, err := operands(b, op)
	if err != nil {
		return err
	}
	alpha, err := number(op, "alpha")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	e := elementwise{file: "add", entry: "add", out: out, inputs: []int{self, other}, common: common, parameters: []any{sign * alpha}, integers: true}
	if other < 0 {
		e.entry, e.inputs, e.parameters = "add_number", []int{self}, []any{value, sign * alpha}
	}
	return e.emit(b, op)
}
