package ops

import "samebits/bridge/recording"

func init() {
	register(lowerMean, "aten::mean.dim", "aten::mean")
}

func lowerMean(b *Builder, op *recording.Operation) error {
	r, err := newReduction(b, op, "mean")
	if err != nil {
		return err
	}
	numel := b.Value(r.in).Numel()
	if numel == 0 {
		return Refuse(op, "arguments[0]", "the mean of no elements")
	}
	return r.emit(b, float32(r.config.outputs)/float32(numel))
}
