package ops

import (
	"samebits/bridge/recording"
)

func init() { register(lowerRepeat, "aten::repeat") }

// lowerRepeat copies from a tensor that has every dimension twice: which repetition, with stride 0, and the place in it.
func lowerRepeat(b *Builder, op *recording.Operation) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	repeats, err := IntsArg(op, "repeats")
	if err != nil {
		return err
	}
	from, to := b.Tensor(self), b.Tensor(out)
	more := len(repeats) - len(from.Sizes)
	if more < 0 || len(repeats) != len(to.Sizes) {
		return Refuse(op, argumentPath(op, "repeats"), "%d dimensions repeated %v times give %v", len(from.Sizes), repeats, to.Sizes)
	}
	source, target := from, to
	source.Sizes, source.Strides, target.Sizes, target.Strides = nil, nil, nil, nil
	for d, times := range repeats {
		size, stride := int64(1), int64(0)
		if d >= more {
			size, stride = from.Sizes[d-more], from.Strides[d-more]
		}
		if size*times != to.Sizes[d] {
			return Refuse(op, "results[0]", "%v repeated %v times gives no %v", from.Sizes, repeats, to.Sizes)
		}
		source.Sizes = append(source.Sizes, times, size)
		source.Strides = append(source.Strides, 0, stride)
		target.Strides = append(target.Strides, size*to.Strides[d], to.Strides[d])
	}
	target.Sizes = source.Sizes
	return copyTensor(b, op, target, source)
}
