package ops

import (
	"samebits/bridge/recording"
	"samebits/native/device"
)

func init() {
	register(func(b *Builder, op *recording.Operation) error {
		return lowerPixelShuffle(b, op, "upscale_factor", false)
	}, "aten::pixel_shuffle")
	register(func(b *Builder, op *recording.Operation) error {
		return lowerPixelShuffle(b, op, "downscale_factor", true)
	}, "aten::pixel_unshuffle")
}

// lowerPixelShuffle copies between channels of squares of pixels and one channel of all of them: dimensions before, channel,
// row and column in a square, row and column of squares.
func lowerPixelShuffle(b *Builder, op *recording.Operation, factor string, back bool) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	r, err := IntArg(op, factor)
	if err != nil {
		return err
	}
	from, to := b.Tensor(self), b.Tensor(out)
	squares, pixels := from, to
	if back {
		squares, pixels = to, from
	}
	n := len(pixels.Sizes) - 3
	if n < 0 || len(squares.Sizes) != n+3 || r < 1 || !equalSizes(squares.Sizes[:n], pixels.Sizes[:n]) ||
		squares.Sizes[n] != pixels.Sizes[n]*r*r || squares.Sizes[n+1]*r != pixels.Sizes[n+1] || squares.Sizes[n+2]*r != pixels.Sizes[n+2] {
		return Refuse(op, "results[0]", "sizes %v with factor %d do not give %v", from.Sizes, r, to.Sizes)
	}
	sizes := append(append([]int64{}, pixels.Sizes[:n+1]...), r, r, squares.Sizes[n+1], squares.Sizes[n+2])
	c := squares.Strides[n]
	split := func(t *device.Tensor, strides ...int64) {
		t.Strides, t.Sizes = append(append([]int64{}, t.Strides[:n]...), strides...), sizes
	}
	split(&squares, c*r*r, c*r, c, squares.Strides[n+1], squares.Strides[n+2])
	h, w := pixels.Strides[n+1], pixels.Strides[n+2]
	split(&pixels, pixels.Strides[n], h, w, h*r, w*r)
	if back {
		return copyTensor(b, op, squares, pixels)
	}
	return copyTensor(b, op, pixels, squares)
}
