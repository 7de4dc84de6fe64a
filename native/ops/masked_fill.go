package ops

import "samebits/bridge/recording"

func init() {
	register(lowerMaskedFill, "aten::masked_fill.Scalar", "aten::masked_fill_.Scalar")
}

func lowerMaskedFill(b *Builder, op *recording.Operation) error {
	self, err := ValueArg(op, "self")
	if err != nil {
		return err
	}
	mask, err := ValueArg(op, "mask")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	value, err := scalar(op, "value")
	if err != nil {
		return err
	}
	common := b.Value(out).DType
	bits, err := elementBits(common, value)
	if err != nil {
		return Refuse(op, "results[0]", "%v", err)
	}
	e := elementwise{file: "masked_fill", entry: "masked_fill", out: out, inputs: []int{self, mask}, common: common,
		parameters: []any{bits}, also: integers, masks: []int{1}}
	return e.emit(b, op)
}
