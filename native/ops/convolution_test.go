package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// conv is a convolution under test.
type conv struct {
	name                      string
	x, w                      []int64
	xStrides, wStrides        []int64
	yStrides                  []int64
	stride, padding, dilation []int64
	groups                    int64
	bias                      bool
}

func (c conv) ySizes() []int64 {
	sizes := []int64{c.x[0], c.w[0]}
	for d := range c.stride {
		reach := c.dilation[d]*(c.w[2+d]-1) + 1
		sizes = append(sizes, (c.x[2+d]+2*c.padding[d]-reach)/c.stride[d]+1)
	}
	return sizes
}

// place puts the tensors on a bench. The result's index is y, the bias's is -1 if there is none.
func (c conv) place(t *testing.T, dtype tensor.DType) (b *bench, x, w, y, bias int) {
	b = newBench(t)
	x, w, y = b.tensor(dtype, c.x, c.xStrides), b.tensor(dtype, c.w, c.wStrides), b.tensor(dtype, c.ySizes(), c.yStrides)
	state := uint64(5)
	b.setFloats(x, randoms(&state, int(tensor.Numel(c.x))))
	b.setFloats(w, randoms(&state, int(tensor.Numel(c.w))))
	bias = -1
	if c.bias {
		bias = b.tensor(dtype, []int64{c.w[0]}, nil)
		b.setFloats(bias, randoms(&state, int(c.w[0])))
	}
	return b, x, w, y, bias
}

func (c conv) run(b *bench, x, w, y, bias int, transposed bool) ([]device.Command, error) {
	var optional any
	if bias >= 0 {
		optional = bias
	}
	op := operation("aten::convolution", args("input", x, "weight", w, "bias", optional, "stride", c.stride, "padding", c.padding,
		"dilation", c.dilation, "transposed", transposed, "output_padding", make([]int64, len(c.stride)), "groups", c.groups), results(y))
	commands, err := b.lower(op)
	b.extra = nil
	if err == nil {
		b.run(op)
	}
	return commands, err
}

// each visits the products of an output element: rows of the filter first, taps outside the image left out.
func (c conv) each(n, o, h, w int64, visit func(x, weight []int64)) {
	perGroup := c.w[0] / c.groups
	for i := range c.w[1] {
		for a := range c.w[2] {
			for b := range c.w[3] {
				r, l := h*c.stride[0]-c.padding[0]+a*c.dilation[0], w*c.stride[1]-c.padding[1]+b*c.dilation[1]
				if r >= 0 && r < c.x[2] && l >= 0 && l < c.x[3] {
					visit([]int64{n, o/perGroup*c.w[1] + i, r, l}, []int64{o, i, a, b})
				}
			}
		}
	}
}

func flat(index, sizes []int64) int64 {
	at := int64(0)
	for d := range index {
		at = at*sizes[d] + index[d]
	}
	return at
}

func (c conv) eachOutput(visit func(i int, n, o, h, w int64)) {
	sizes, i := c.ySizes(), 0
	for n := range sizes[0] {
		for o := range sizes[1] {
			for h := range sizes[2] {
				for w := range sizes[3] {
					visit(i, n, o, h, w)
					i++
				}
			}
		}
	}
}

var one, none = []int64{1, 1}, []int64{0, 0}

func TestConvolution(t *testing.T) {
	tests := []conv{
		{name: "3x3", x: []int64{2, 3, 7, 6}, w: []int64{4, 3, 3, 3}, stride: one, padding: one, dilation: one, groups: 1},
		{name: "stride, dilation, bias", x: []int64{1, 4, 9, 11}, w: []int64{6, 4, 3, 2}, stride: []int64{2, 3}, padding: []int64{2, 1}, dilation: []int64{2, 1}, groups: 1, bias: true},
		{name: "1x1", x: []int64{2, 8, 5, 5}, w: []int64{3, 8, 1, 1}, stride: one, padding: none, dilation: one, groups: 1, bias: true},
		{name: "groups", x: []int64{1, 8, 6, 6}, w: []int64{4, 4, 3, 3}, stride: one, padding: one, dilation: one, groups: 2},
		{name: "a slice of channels", x: []int64{3, 4, 5, 5}, xStrides: []int64{200, 25, 5, 1}, w: []int64{2, 4, 3, 3}, stride: one, padding: one, dilation: one, groups: 1},
		{name: "channels-last", x: []int64{2, 8, 5, 6}, xStrides: []int64{240, 1, 48, 8}, yStrides: []int64{120, 1, 24, 4}, w: []int64{4, 8, 3, 3}, stride: one, padding: one, dilation: one, groups: 1, bias: true},
	}
	relative := map[tensor.DType]float64{tensor.Float32: 0x1p-20, tensor.BFloat16: 0x1p-7, tensor.Float16: 0x1p-10}
	for _, c := range tests {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%s/%s", c.name, dtype), func(t *testing.T) {
				b, x, w, y, bias := c.place(t, dtype)
				if _, err := c.run(b, x, w, y, bias, false); err != nil {
					t.Fatal(err)
				}
				xs, ws, got := b.floats(x), b.floats(w), b.floats(y)
				c.eachOutput(func(i int, n, o, h, l int64) {
					sum, magnitude := 0.0, 0.0
					c.each(n, o, h, l, func(at, weight []int64) {
						p := xs[flat(at, c.x)] * ws[flat(weight, c.w)]
						sum, magnitude = sum+p, magnitude+math.Abs(p)
					})
					if c.bias {
						v := b.floats(bias)[o]
						sum, magnitude = sum+v, magnitude+math.Abs(v)
					}
					if math.Abs(got[i]-sum) > relative[dtype]*magnitude {
						t.Errorf("element %d is %v, wanted %v", i, got[i], sum)
					}
				})
			})
		}
	}
}

// The library gets what PyTorch gives it: dense tensors with canonical strides, the bias apart.
func TestConvolutionCommands(t *testing.T) {
	pad := one
	tests := []struct {
		conv
		commands string
		xStrides []int64
	}{
		{conv{name: "dense", x: []int64{2, 3, 4, 5}, w: []int64{4, 3, 3, 3}, stride: one, padding: pad, dilation: one, groups: 1},
			"[*device.Convolution]", []int64{60, 20, 5, 1}},
		{conv{name: "with a bias", x: []int64{2, 3, 4, 5}, w: []int64{4, 3, 3, 3}, stride: one, padding: pad, dilation: one, groups: 1, bias: true},
			"[*device.Convolution add_bf16_rows]", []int64{60, 20, 5, 1}},
		{conv{name: "channels of one image", x: []int64{1, 3, 4, 5}, xStrides: []int64{120, 20, 5, 1}, w: []int64{4, 3, 3, 3}, stride: one, padding: pad, dilation: one, groups: 1},
			"[*device.Convolution]", []int64{60, 20, 5, 1}},
		{conv{name: "channels of two images", x: []int64{2, 3, 4, 5}, xStrides: []int64{120, 20, 5, 1}, w: []int64{4, 3, 3, 3}, stride: one, padding: pad, dilation: one, groups: 1},
			"[copy_2 *device.Convolution]", []int64{60, 20, 5, 1}},
		{conv{name: "a channels-last weight decides", x: []int64{2, 3, 4, 5}, w: []int64{4, 3, 3, 3}, wStrides: []int64{27, 1, 9, 3}, yStrides: []int64{80, 1, 20, 4}, stride: one, padding: pad, dilation: one, groups: 1},
			"[copy_2 *device.Convolution]", []int64{60, 1, 15, 3}},
		{conv{name: "an input in channels-last", x: []int64{2, 3, 4, 5}, xStrides: []int64{60, 1, 15, 3}, w: []int64{4, 3, 3, 3}, yStrides: []int64{80, 1, 20, 4}, stride: one, padding: pad, dilation: one, groups: 1},
			"[copy_2 *device.Convolution]", []int64{60, 1, 15, 3}},
		{conv{name: "a 1x1 weight is ambiguous and does not", x: []int64{2, 3, 4, 5}, w: []int64{4, 3, 1, 1}, stride: one, padding: none, dilation: one, groups: 1},
			"[*device.Convolution]", []int64{60, 20, 5, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, x, w, y, bias := test.place(t, tensor.BFloat16)
			commands, err := test.run(b, x, w, y, bias, false)
			if err != nil {
				t.Fatal(err)
			}
			if describe(commands) != test.commands {
				t.Fatalf("%s, wanted %s", describe(commands), test.commands)
			}
			for _, c := range commands {
				if k, ok := c.(*device.Convolution); ok && !slices.Equal(k.X.Strides, test.xStrides) {
					t.Errorf("input strides %v, wanted %v", k.X.Strides, test.xStrides)
				}
			}
		})
	}
}

func TestConvolutionOneDimension(t *testing.T) {
	b := newBench(t)
	x := b.tensor(tensor.Float32, []int64{2, 3, 8}, nil)
	w, y := b.tensor(tensor.Float32, []int64{4, 3, 3}, nil), b.tensor(tensor.Float32, []int64{2, 4, 4}, nil)
	commands, err := b.lower(operation("aten::convolution", args("input", x, "weight", w, "bias", nil, "stride", []int64{2},
		"padding", []int64{1}, "dilation", []int64{1}, "transposed", false, "output_padding", []int64{0}, "groups", int64(1)), results(y)))
	if err != nil {
		t.Fatal(err)
	}
	k := commands[0].(*device.Convolution)
	if !slices.Equal(k.X.Sizes, []int64{2, 3, 1, 8}) || !slices.Equal(k.W.Sizes, []int64{4, 3, 1, 3}) ||
		!slices.Equal(k.Y.Sizes, []int64{2, 4, 1, 4}) || !slices.Equal(k.Stride, []int64{1, 2}) || !slices.Equal(k.Padding, []int64{0, 1}) {
		t.Errorf("%+v", k)
	}
}

func TestConvolutionRefusals(t *testing.T) {
	c := conv{x: []int64{2, 3, 4, 5}, w: []int64{4, 3, 3, 3}, stride: one, padding: one, dilation: one, groups: 1}
	b, x, w, y, bias := c.place(t, tensor.Float32)
	wrong := c
	wrong.groups = 3
	if _, err := wrong.run(b, x, w, y, bias, false); err == nil {
		t.Error("groups that do not divide were not refused")
	}
	small := b.tensor(tensor.Float32, []int64{2, 4, 4, 4}, nil)
	if _, err := c.run(b, x, w, small, bias, false); err == nil {
		t.Error("a result of wrong sizes was not refused")
	}
	zero := c
	zero.stride = none
	if _, err := zero.run(b, x, w, y, bias, false); err == nil {
		t.Error("a stride of 0 was not refused")
	}
}
