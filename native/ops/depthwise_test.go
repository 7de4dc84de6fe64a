package ops

import (
	"fmt"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// The bits of the native kernel: one chain of fused multiply-adds from the bias, rows of the filter first.
func TestDepthwise(t *testing.T) { testDepthwise(t) }

// The same where each thread computes four rows, as with very many outputs.
func TestDepthwiseOfMany(t *testing.T) {
	defer func(many int64) { manyOutputs = many }(manyOutputs)
	manyOutputs = 0
	testDepthwise(t)
}

func testDepthwise(t *testing.T) {
	tests := []conv{
		{name: "3x3", x: []int64{2, 4, 7, 6}, w: []int64{4, 1, 3, 3}, stride: one, padding: one, dilation: one, groups: 4},
		{name: "5x5 with a bias", x: []int64{1, 6, 9, 9}, w: []int64{6, 1, 5, 5}, stride: []int64{2, 2}, padding: []int64{2, 2}, dilation: one, groups: 6, bias: true},
		{name: "two filters a channel", x: []int64{1, 3, 6, 6}, w: []int64{6, 1, 3, 3}, stride: one, padding: one, dilation: one, groups: 3, bias: true},
		{name: "7x3, dilated", x: []int64{1, 2, 15, 9}, w: []int64{2, 1, 7, 3}, stride: one, padding: []int64{3, 2}, dilation: []int64{1, 2}, groups: 2},
		{name: "1x1", x: []int64{1, 5, 4, 4}, w: []int64{5, 1, 1, 1}, stride: one, padding: none, dilation: one, groups: 5, bias: true},
		{name: "3x3 in packs", x: []int64{2, 3, 7, 12}, w: []int64{6, 1, 3, 3}, stride: one, padding: one, dilation: one, groups: 3, bias: true},
		{name: "3x3 of one pack", x: []int64{1, 2, 3, 4}, w: []int64{2, 1, 3, 3}, stride: one, padding: one, dilation: one, groups: 2},
		{name: "5x5 in packs", x: []int64{1, 4, 9, 8}, w: []int64{4, 1, 5, 5}, stride: one, padding: []int64{2, 2}, dilation: one, groups: 4},
		{name: "an input with gaps", x: []int64{2, 4, 5, 5}, xStrides: []int64{200, 25, 5, 1}, w: []int64{4, 1, 3, 3}, stride: one, padding: one, dilation: one, groups: 4},
	}
	for _, c := range tests {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%s/%s", c.name, dtype), func(t *testing.T) {
				b, x, w, y, bias := c.place(t, dtype)
				commands, err := c.run(b, x, w, y, bias, false)
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := commands[len(commands)-1].(*device.Kernel); !ok {
					t.Fatalf("commands %s", describe(commands))
				}
				xs, ws := b.floats(x), b.floats(w)
				want := make([]uint64, len(b.bits(y)))
				c.eachOutput(func(i int, n, o, h, l int64) {
					sum := float32(0)
					if c.bias {
						sum = float32(b.floats(bias)[o])
					}
					c.each(n, o, h, l, func(at, weight []int64) {
						sum = fma32(float32(ws[flat(weight, c.w)]), float32(xs[flat(at, c.x)]), sum)
					})
					want[i] = encode(dtype, float64(sum))
				})
				expectBits(t, dtype, b.bits(y), want, 0)
			})
		}
	}
}

// Which depthwise convolutions go to cuDNN.
func TestDepthwiseByCuDNN(t *testing.T) {
	last := func(sizes []int64) []int64 { return channelsLastStrides(sizes) }
	tests := []struct {
		name   string
		dtype  tensor.DType
		x, w   []int64
		last   bool
		stride int64
		want   bool
	}{
		{"float32", tensor.Float32, []int64{1, 64, 20, 20}, []int64{64, 1, 3, 3}, false, 1, false},
		{"bfloat16", tensor.BFloat16, []int64{1, 64, 20, 20}, []int64{64, 1, 3, 3}, false, 1, false},
		{"float32, channels-last", tensor.Float32, []int64{1, 64, 20, 20}, []int64{64, 1, 3, 3}, true, 1, true},
		{"float16", tensor.Float16, []int64{1, 64, 20, 20}, []int64{64, 1, 3, 3}, false, 1, true},
		{"float16, few channels", tensor.Float16, []int64{1, 16, 20, 20}, []int64{16, 1, 3, 3}, false, 1, false},
		{"float16, narrow", tensor.Float16, []int64{1, 64, 20, 6}, []int64{64, 1, 3, 3}, false, 1, false},
		{"float16, 7x7", tensor.Float16, []int64{1, 64, 20, 20}, []int64{64, 1, 7, 7}, false, 1, false},
		{"float16, stride 2, one image", tensor.Float16, []int64{1, 64, 20, 20}, []int64{64, 1, 3, 3}, false, 2, true},
		{"float16, stride 2, two images", tensor.Float16, []int64{2, 64, 20, 20}, []int64{64, 1, 3, 3}, false, 2, false},
		{"float16, stride 2, two images, many channels", tensor.Float16, []int64{2, 512, 20, 20}, []int64{512, 1, 3, 3}, false, 2, true},
		{"float16, stride 3", tensor.Float16, []int64{1, 64, 20, 20}, []int64{64, 1, 3, 3}, false, 3, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			strides := tensor.ContiguousStrides(test.x)
			if test.last {
				strides = last(test.x)
			}
			c := convolution{
				x:      device.Tensor{DType: test.dtype, Sizes: test.x, Strides: strides},
				w:      device.Tensor{DType: test.dtype, Sizes: test.w, Strides: tensor.ContiguousStrides(test.w)},
				stride: []int64{test.stride, test.stride}, padding: one, dilation: one, groups: test.x[1],
			}
			if !c.depthwise() {
				t.Fatal("not seen as depthwise")
			}
			if got := c.depthwiseByCuDNN(); got != test.want {
				t.Errorf("by cuDNN: %v, wanted %v", got, test.want)
			}
		})
	}
}
