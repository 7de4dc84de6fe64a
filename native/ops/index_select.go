package ops

import (
	"samebits/bridge/recording"
)

func init() { register(lowerIndexSelect, "aten::index_select") }

func lowerIndexSelect(b *Builder, op *recording.Operation) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	index, err := ValueArg(op, "index")
	if err != nil {
		return err
	}
	x, i, y := b.Value(self), b.Value(index), b.Value(out)
	dim, err := dimension(op, len(x.Sizes))
	if err != nil {
		return err
	}
	if len(i.Sizes) > 1 || !equalSizes(replaced(x.Sizes, dim, i.Numel()), y.Sizes) {
		return Refuse(op, "results[0]", "indices of sizes %v into dimension %d of %v do not give %v", i.Sizes, dim, x.Sizes, y.Sizes)
	}
	by := make([]int64, len(y.Sizes))
	if len(i.Sizes) == 1 {
		by[dim] = i.Strides[0]
	}
	return lookUpAlong(b, op, self, index, dim, replaced(x.Strides, dim, 0), by)
}
