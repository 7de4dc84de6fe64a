package ops

import (
	"samebits/bridge/recording"
)

func init() { register(lowerFlip, "aten::flip") }

// lowerFlip copies from the last element on, backwards.
func lowerFlip(b *Builder, op *recording.Operation) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	dims, err := IntsArg(op, "dims")
	if err != nil {
		return err
	}
	from, to := b.Tensor(self), b.Tensor(out)
	if !equalSizes(from.Sizes, to.Sizes) {
		return Refuse(op, "results[0]", "sizes %v do not come from %v", to.Sizes, from.Sizes)
	}
	if b.Value(out).Numel() == 0 {
		return nil
	}
	for _, d := range dims {
		if d < 0 {
			d += int64(len(from.Sizes))
		}
		if d < 0 || d >= int64(len(from.Sizes)) {
			return Refuse(op, argumentPath(op, "dims"), "dimensions %v of %d", dims, len(from.Sizes))
		}
		from.Offset += (from.Sizes[d] - 1) * from.Strides[d] * from.DType.Size()
		from.Strides = replaced(from.Strides, int(d), -from.Strides[d])
	}
	return copyTensor(b, op, to, from)
}
