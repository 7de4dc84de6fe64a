package ops

import "samebits/bridge/recording"

func init() {
	plus := func(b *Builder, op *recording.Operation) error { return lowerAdd(b, op, false) }
	minus := func(b *Builder, op *recording.Operation) error { return lowerAdd(b, op, true) }
	register(plus, "aten::add.Tensor", "aten::add_.Tensor", "aten::add.Scalar", "aten::add_.Scalar")
	register(minus, "aten::sub.Tensor", "aten::sub_.Tensor", "aten::sub.Scalar", "aten::sub_.Scalar")
}

// lowerAdd makes self + alpha * other, or self - alpha * other, one fused multiply-add, as PyTorch's kernel is.
func lowerAdd(b *Builder, op *recording.Operation, minus bool) error {
	self, other, value, common, err := operands(b, op)
	if err != nil {
		return err
	}
	alpha, err := scalar(op, "alpha")
	if err != nil {
		return err
	}
	if minus {
		alpha = negative(alpha)
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	e := elementwise{file: "add", entry: "add", pair: true, out: out, inputs: []int{self, other}, common: common, parameters: []any{alpha},
		also: integers, narrows: true}
	if other < 0 {
		e.entry, e.inputs, e.parameters = "add_number", []int{self}, []any{value, alpha}
	}
	return e.emit(b, op)
}

// negative is -v of a number that scalar gave.
func negative(v any) any {
	if n, ok := v.(int64); ok {
		return -n
	}
	return -v.(float64)
}
