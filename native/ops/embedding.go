package ops

import (
	"samebits/bridge/recording"
)

func init() { register(lowerEmbedding, "aten::embedding") }

// lowerEmbedding looks up rows. Its other arguments concern gradients only.
func lowerEmbedding(b *Builder, op *recording.Operation) error {
	weight, err := ValueArg(op, "weight")
	if err != nil {
		return err
	}
	indices, err := ValueArg(op, "indices")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	w, i, y := b.Value(weight), b.Value(indices), b.Value(out)
	if len(w.Sizes) != 2 || !equalSizes(append(append([]int64{}, i.Sizes...), w.Sizes[1]), y.Sizes) {
		return Refuse(op, "results[0]", "indices of sizes %v into rows of %v do not give %v", i.Sizes, w.Sizes, y.Sizes)
	}
	from := make([]int64, len(y.Sizes))
	from[len(from)-1] = w.Strides[1]
	return lookUp(b, op, out, b.Tensor(weight), from, false, lookup{value: indices, by: append(append([]int64{}, i.Strides...), 0),
		size: w.Sizes[0], step: w.Strides[0], argPath: argumentPath(op, "indices")})
}
