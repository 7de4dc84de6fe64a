package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// transposedConv is a transposed convolution under test.
type transposedConv struct {
	name                                     string
	x, w                                     []int64 // w is input channels, output channels of a group, height, width
	xStrides, yStrides                       []int64
	stride, padding, dilation, outputPadding []int64
	groups                                   int64
	bias                                     bool
	commands                                 string // of bfloat16
}

func (c transposedConv) ySizes() []int64 {
	sizes := []int64{c.x[0], c.w[1] * c.groups}
	for d := range c.stride {
		sizes = append(sizes, (c.x[2+d]-1)*c.stride[d]-2*c.padding[d]+c.dilation[d]*(c.w[2+d]-1)+1+c.outputPadding[d])
	}
	return sizes
}

func (c transposedConv) place(t *testing.T, dtype tensor.DType) (b *bench, x, w, y int, bias any) {
	b = newBench(t)
	x, w, y = b.tensor(dtype, c.x, c.xStrides), b.tensor(dtype, c.w, nil), b.tensor(dtype, c.ySizes(), c.yStrides)
	state := uint64(5)
	b.setFloats(x, randoms(&state, int(tensor.Numel(c.x))))
	b.setFloats(w, randoms(&state, int(tensor.Numel(c.w))))
	if c.bias {
		v := b.tensor(dtype, []int64{c.w[1] * c.groups}, nil)
		b.setFloats(v, randoms(&state, int(c.w[1]*c.groups)))
		bias = v
	}
	return b, x, w, y, bias
}

func (c transposedConv) run(b *bench, x, w, y int, bias any) ([]device.Command, error) {
	op := operation("aten::convolution", args("input", x, "weight", w, "bias", bias, "stride", c.stride, "padding", c.padding,
		"dilation", c.dilation, "transposed", true, "output_padding", c.outputPadding, "groups", c.groups), results(y))
	commands, err := b.lower(op)
	b.extra = nil
	if err == nil {
		b.run(op)
	}
	return commands, err
}

func TestTransposedConvolution(t *testing.T) {
	two, four := []int64{2, 2}, []int64{4, 4}
	tests := []transposedConv{
		{name: "2x2 by 2", x: []int64{1, 6, 5, 5}, w: []int64{6, 4, 2, 2}, stride: two, padding: none, dilation: one, outputPadding: none, groups: 1, bias: true,
			commands: "[*device.Convolution add_bf16_rows]"},
		{name: "4x4 by 4", x: []int64{1, 3, 4, 6}, w: []int64{3, 3, 4, 4}, stride: four, padding: none, dilation: one, outputPadding: none, groups: 1,
			commands: "[*device.Convolution]"},
		{name: "output padding", x: []int64{2, 4, 5, 4}, w: []int64{4, 3, 3, 3}, stride: two, padding: one, dilation: one, outputPadding: []int64{1, 0}, groups: 1, bias: true,
			commands: "[*device.Convolution add_bf16_rows]"},
		{name: "groups and dilation", x: []int64{1, 4, 5, 5}, w: []int64{4, 3, 3, 2}, stride: []int64{3, 1}, padding: one, dilation: []int64{1, 2}, outputPadding: none, groups: 2,
			commands: "[*device.Convolution]"},
		{name: "depthwise", x: []int64{1, 4, 5, 5}, w: []int64{4, 1, 2, 2}, stride: two, padding: none, dilation: one, outputPadding: none, groups: 4,
			commands: "[*device.Convolution]"},
		{name: "channels-last", x: []int64{2, 4, 3, 5}, xStrides: []int64{60, 1, 20, 4}, w: []int64{4, 3, 2, 2}, yStrides: []int64{180, 1, 30, 3}, stride: two, padding: none,
			dilation: one, outputPadding: none, groups: 1, bias: true, commands: "[copy_2 *device.Convolution add_bf16_strided]"},
		{name: "a slice of channels", x: []int64{2, 4, 3, 5}, xStrides: []int64{150, 15, 5, 1}, w: []int64{4, 3, 2, 2}, stride: two, padding: none,
			dilation: one, outputPadding: none, groups: 1, commands: "[copy_2 *device.Convolution]"},
	}
	relative := map[tensor.DType]float64{tensor.Float32: 0x1p-20, tensor.BFloat16: 0x1p-7, tensor.Float16: 0x1p-10}
	for _, c := range tests {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%s/%s", c.name, dtype), func(t *testing.T) {
				b, x, w, y, bias := c.place(t, dtype)
				commands, err := c.run(b, x, w, y, bias)
				if err != nil {
					t.Fatal(err)
				}
				if got := describe(commands); dtype == tensor.BFloat16 && got != c.commands {
					t.Errorf("commands %s, wanted %s", got, c.commands)
				}
				sizes := c.ySizes()
				sums, magnitudes := make([]float64, tensor.Numel(sizes)), make([]float64, tensor.Numel(sizes))
				add := func(i int64, v float64) { sums[i], magnitudes[i] = sums[i]+v, magnitudes[i]+math.Abs(v) }
				if bias, ok := bias.(int); ok {
					values := b.floats(bias)
					each(sizes, nil, func(at []int64) { add(flat(at, sizes), values[at[1]]) })
				}
				xs, ws, got := b.floats(x), b.floats(w), b.floats(y)
				inGroup := c.x[1] / c.groups
				each(c.x, nil, func(at []int64) {
					each(c.w[1:], nil, func(tap []int64) {
						h := at[2]*c.stride[0] - c.padding[0] + tap[1]*c.dilation[0]
						l := at[3]*c.stride[1] - c.padding[1] + tap[2]*c.dilation[1]
						if h >= 0 && h < sizes[2] && l >= 0 && l < sizes[3] {
							add(flat([]int64{at[0], at[1]/inGroup*c.w[1] + tap[0], h, l}, sizes),
								xs[flat(at, c.x)]*ws[flat(append([]int64{at[1]}, tap...), c.w)])
						}
					})
				})
				for i := range got {
					if math.Abs(got[i]-sums[i]) > relative[dtype]*magnitudes[i] {
						t.Errorf("element %d is %v, wanted %v", i, got[i], sums[i])
					}
				}
			})
		}
	}
}

// A transposed convolution is the gradient of one whose input is its result.
func TestTransposedConvolutionOneDimension(t *testing.T) {
	b := newBench(t)
	x := b.tensor(tensor.Float32, []int64{2, 3, 8}, nil)
	w, y := b.tensor(tensor.Float32, []int64{3, 4, 3}, nil), b.tensor(tensor.Float32, []int64{2, 4, 16}, nil)
	commands, err := b.lower(operation("aten::convolution", args("input", x, "weight", w, "bias", nil, "stride", []int64{2},
		"padding", []int64{1}, "dilation", []int64{1}, "transposed", true, "output_padding", []int64{1}, "groups", int64(1)), results(y)))
	if err != nil {
		t.Fatal(err)
	}
	k := commands[0].(*device.Convolution)
	if k.Direction != device.BackwardData || !slices.Equal(k.X.Sizes, []int64{2, 4, 1, 16}) || !slices.Equal(k.Y.Sizes, []int64{2, 3, 1, 8}) {
		t.Errorf("%+v", k)
	}
}

func TestTransposedConvolutionRefusals(t *testing.T) {
	fine := transposedConv{x: []int64{1, 4, 5, 5}, w: []int64{4, 3, 2, 2}, stride: []int64{2, 2}, padding: none, dilation: one, outputPadding: none, groups: 1}
	for name, change := range map[string]func(c *transposedConv){
		"an output padding of the stride": func(c *transposedConv) { c.outputPadding = []int64{2, 0} },
		"groups that do not divide":       func(c *transposedConv) { c.groups = 3 },
	} {
		c := fine
		change(&c)
		b, x, w, y, bias := c.place(t, tensor.Float32)
		if _, err := c.run(b, x, w, y, bias); err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
	b, x, w, _, _ := fine.place(t, tensor.Float32)
	if _, err := fine.run(b, x, w, b.tensor(tensor.Float32, []int64{1, 3, 11, 10}, nil), nil); err == nil {
		t.Error("a result of wrong sizes is not refused")
	}
}

// Where a module switches cuDNN off PyTorch's own kernel does a depthwise convolution of a channels-last image, to NCHW.
func TestDepthwiseWithoutCuDNN(t *testing.T) {
	c := conv{x: []int64{1, 32, 9, 9}, xStrides: []int64{2592, 1, 288, 32}, w: []int64{32, 1, 3, 3}, stride: one, padding: one, dilation: one, groups: 32, bias: true}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16} {
		b, x, w, y, bias := c.place(t, dtype)
		commands, err := c.run(b, x, w, y, bias, false)
		if err != nil {
			t.Fatal(err)
		}
		suffix, _ := Suffix(dtype)
		if got, want := describe(commands), fmt.Sprintf("[copy_%d conv_depthwise2d_k3_%s]", dtype.Size(), suffix); got != want {
			t.Errorf("commands %s, wanted %s", got, want)
		}
	}
}
