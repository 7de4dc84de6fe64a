package ops

import (
	"samebits/bridge/recording"
)

func init() { register(lowerGather, "aten::gather") }

// lowerGather: the result has the sizes of index, which may be smaller than self along other dimensions.
func lowerGather(b *Builder, op *recording.Operation) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	index, err := ValueArg(op, "index")
	if err != nil {
		return err
	}
	x, i, y := b.Value(self), b.Value(index), b.Value(out)
	dim, err := dimension(op, max(len(x.Sizes), 1))
	if err != nil {
		return err
	}
	if !equalSizes(i.Sizes, y.Sizes) || len(x.Sizes) != len(i.Sizes) {
		return Refuse(op, "results[0]", "indices of sizes %v into %v do not give %v", i.Sizes, x.Sizes, y.Sizes)
	}
	for d := range x.Sizes {
		if d != dim && i.Sizes[d] > x.Sizes[d] {
			return Refuse(op, argumentPath(op, "index"), "indices of sizes %v into %v", i.Sizes, x.Sizes)
		}
	}
	from := x.Strides
	if len(from) > 0 {
		from = replaced(from, dim, 0)
	}
	return lookUpAlong(b, op, self, index, dim, from, i.Strides)
}
