package ops

import (
	"math"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// deformCase is a deformable convolution of images of x, with a weight of w.
type deformCase struct {
	name                      string
	x, w                      []int64
	stride, padding, dilation int64
	groups, offsetGroups      int64
	masked                    bool
}

var deformCases = []deformCase{
	{"1x1", []int64{1, 4, 5, 6}, []int64{3, 4, 1, 1}, 1, 0, 1, 1, 1, true},
	{"3x3", []int64{1, 3, 6, 5}, []int64{4, 3, 3, 3}, 1, 1, 1, 1, 1, true},
	{"stride", []int64{2, 3, 7, 6}, []int64{2, 3, 3, 3}, 2, 1, 1, 1, 1, true},
	{"dilated", []int64{1, 2, 8, 7}, []int64{2, 2, 2, 3}, 1, 2, 2, 1, 1, true},
	{"without mask", []int64{1, 2, 5, 5}, []int64{2, 2, 3, 3}, 1, 1, 1, 1, 1, false},
	{"groups", []int64{3, 4, 5, 4}, []int64{6, 2, 3, 3}, 1, 1, 1, 2, 1, true},
	{"offset groups", []int64{2, 6, 4, 4}, []int64{3, 6, 3, 3}, 1, 1, 1, 1, 3, true},
	{"one output a group", []int64{1, 4, 4, 4}, []int64{2, 2, 3, 3}, 1, 1, 1, 2, 2, true},
	{"more images than at a time", []int64{34, 2, 2, 3}, []int64{2, 2, 1, 1}, 1, 0, 1, 1, 1, true},
}

func TestDeformConv(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16} {
		for _, c := range deformCases {
			t.Run(dtype.String()+"/"+c.name, func(t *testing.T) {
				b := newBench(t)
				places := c.offsetGroups * c.w[2] * c.w[3]
				height, width := c.extent(0), c.extent(1)
				x, w := b.tensor(dtype, c.x, nil), b.tensor(dtype, c.w, nil)
				offset := b.tensor(dtype, []int64{c.x[0], 2 * places, height, width}, nil)
				mask := b.tensor(dtype, []int64{c.x[0], 1}, nil)
				if c.masked {
					mask = b.tensor(dtype, []int64{c.x[0], places, height, width}, nil)
				}
				bias := b.tensor(dtype, c.w[:1], nil)
				// Sums of few digits: every order of additions gives the same.
				b.setFloats(x, []float64{1, 2, 0.5, -1, 3, -0.25, 4, 0.75, -2, 1.5, 2.5})
				b.setFloats(w, []float64{0.5, 1, -1, 0.25, 2, -0.5, 1.5})
				b.setFloats(offset, []float64{0, 0.5, -0.5, 1, -1.5, 0.25, 2.5, -3, 0.75, 40, -0.25, -9, 1.25})
				b.setFloats(mask, []float64{1, 0.5, 0, 2, 0.25})
				b.setFloats(bias, []float64{0.5, -4, 3})
				y := b.tensor(dtype, []int64{c.x[0], c.w[0], height, width}, nil)
				expected := c.convolve(b, x, w, offset, mask, bias)
				b.run(operation("torchvision::deform_conv2d", c.args(x, w, offset, mask, bias), results(y)))
				most := uint64(0)
				if dtype == tensor.Float16 { // each step of the interpolation is rounded
					most = 4
				}
				expectBits(t, dtype, b.bits(y), expected, most)
			})
		}
	}
}

func (c *deformCase) extent(d int) int64 {
	return (c.x[2+d]+2*c.padding-c.dilation*(c.w[2+d]-1)-1)/c.stride + 1
}

func (c *deformCase) args(x, w, offset, mask, bias int) []recording.Argument {
	return args("input", x, "weight", w, "offset", offset, "mask", mask, "bias", bias, "stride_h", c.stride, "stride_w", c.stride,
		"pad_h", c.padding, "pad_w", c.padding, "dilation_h", c.dilation, "dilation_w", c.dilation, "groups", c.groups,
		"offset_groups", c.offsetGroups, "use_mask", c.masked)
}

// convolve is the definition, in float64.
func (c *deformCase) convolve(b *bench, x, w, offset, mask, bias int) []uint64 {
	image, weight, offsets, masks, add := b.floats(x), b.floats(w), b.floats(offset), b.floats(mask), b.floats(bias)
	height, width, window := c.extent(0), c.extent(1), c.w[2]*c.w[3]
	pixel := func(n, channel int64, h, w float64) float64 {
		sum := 0.0
		for _, dh := range []float64{0, 1} {
			for _, dw := range []float64{0, 1} {
				row, column := math.Floor(h)+dh, math.Floor(w)+dw
				if row >= 0 && row < float64(c.x[2]) && column >= 0 && column < float64(c.x[3]) {
					at := ((n*c.x[1]+channel)*c.x[2]+int64(row))*c.x[3] + int64(column)
					sum += (1 - math.Abs(h-row)) * (1 - math.Abs(w-column)) * image[at]
				}
			}
		}
		return sum
	}
	var list []uint64
	for n := range c.x[0] {
		for o := range c.w[0] {
			for place := range height * width {
				sum := 0.0
				for i := range c.w[1] {
					channel := o/(c.w[0]/c.groups)*c.w[1] + i
					group := channel / (c.x[1] / c.offsetGroups)
					for k := range window {
						at := (n*c.offsetGroups+group)*window + k
						h := float64(place/width*c.stride-c.padding+k/c.w[3]*c.dilation) + offsets[2*at*height*width+place]
						w := float64(place%width*c.stride-c.padding+k%c.w[3]*c.dilation) + offsets[(2*at+1)*height*width+place]
						m := 1.0
						if c.masked {
							m = masks[at*height*width+place]
						}
						sum += weight[(o*c.w[1]+i)*window+k] * m * pixel(n, channel, h, w)
					}
				}
				list = append(list, encode(b.recording.Values[x].DType, sum+add[o]))
			}
		}
	}
	return list
}

func TestDeformConvRefusals(t *testing.T) {
	float := func(b *bench, sizes ...int64) int { return b.tensor(tensor.Float32, sizes, nil) }
	good := deformCase{"", []int64{1, 4, 5, 5}, []int64{2, 4, 1, 1}, 1, 0, 1, 1, 1, true}
	for _, test := range []struct {
		name  string
		path  string
		spoil func(c *deformCase, x, w, offset, mask, bias, y *int, b *bench)
	}{
		{"groups", "arguments[1]", func(c *deformCase, _, _, _, _, _, _ *int, _ *bench) { c.groups = 2 }},
		{"stride", "arguments[5]", func(c *deformCase, _, _, _, _, _, _ *int, _ *bench) { c.stride = 0 }},
		{"offset", "arguments[2]", func(_ *deformCase, _, _, offset, _, _, _ *int, b *bench) { *offset = float(b, 1, 1, 5, 5) }},
		{"mask", "arguments[3]", func(_ *deformCase, _, _, _, mask, _, _ *int, b *bench) { *mask = float(b, 1, 1) }},
		{"bias", "arguments[4]", func(_ *deformCase, _, _, _, _, bias, _ *int, b *bench) { *bias = float(b, 3) }},
		{"type", "results[0]", func(_ *deformCase, _, _, _, _, _, y *int, b *bench) {
			*y = b.tensor(tensor.BFloat16, []int64{1, 2, 5, 5}, nil)
		}},
		{"result", "results[0]", func(_ *deformCase, _, _, _, _, _, y *int, b *bench) { *y = float(b, 1, 2, 5, 4) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, c := newBench(t), good
			x, w, offset := float(b, 1, 4, 5, 5), float(b, 2, 4, 1, 1), float(b, 1, 2, 5, 5)
			mask, bias, y := float(b, 1, 1, 5, 5), float(b, 2), float(b, 1, 2, 5, 5)
			test.spoil(&c, &x, &w, &offset, &mask, &bias, &y, b)
			expectRefusal(t, b, operation("torchvision::deform_conv2d", c.args(x, w, offset, mask, bias), results(y)), test.path)
		})
	}
}
