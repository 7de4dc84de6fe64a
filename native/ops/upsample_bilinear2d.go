package ops

import "samebits/bridge/tensor"

func init() { register(lowerResize("upsample_bilinear2d", bilinearEntry), "aten::upsample_bilinear2d") }

// bilinearEntry is PyTorch's choice of a kernel. In 16 bits both have the same arithmetic.
func bilinearEntry(b *Builder, r *resizing) string {
	x, y := b.Value(r.self), b.Value(r.out)
	if x.DType == tensor.Float32 && r.in.sizes[1] >= 16 && channelsLast(x) && inFormat(y.Sizes, y.Strides, true) {
		return "upsample_bilinear2d_by_channels"
	}
	return "upsample_bilinear2d"
}
