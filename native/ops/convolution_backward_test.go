package ops

import (
	"math"
	"slices"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// backward is convolution_backward on tensors of its own.
type backward struct {
	*bench
	grad, x, w              int
	dx, dw, db              int
	stride, padding         []int64
	dilation                []int64
	groups                  int64
	noInput, noWeight, bias bool
}

func newBackward(t *testing.T, dtype tensor.DType, x, w, y []int64, strides ...[]int64) *backward {
	c := &backward{bench: newBench(t), stride: []int64{1, 1}, padding: []int64{1, 1}, dilation: []int64{1, 1}, groups: 1}
	at := func(i int) []int64 {
		if i < len(strides) {
			return strides[i]
		}
		return nil
	}
	c.grad, c.x, c.w = c.tensor(dtype, y, at(0)), c.tensor(dtype, x, at(1)), c.tensor(dtype, w, at(2))
	c.dx, c.dw, c.db = c.tensor(dtype, x, at(3)), c.tensor(dtype, w, at(4)), c.tensor(dtype, w[:1], nil)
	state := uint64(5)
	for _, v := range []int{c.grad, c.x, c.w} {
		c.setFloats(v, randoms(&state, 4000))
	}
	return c
}

func (c *backward) operation() recording.Operation {
	optional := func(value int, none bool) recording.Argument {
		if none {
			return argument(nil)
		}
		return argument(value)
	}
	return operation("aten::convolution_backward", args("grad_output", c.grad, "input", c.x, "weight", c.w, "bias_sizes", []int64{0},
		"stride", c.stride, "padding", c.padding, "dilation", c.dilation, "transposed", false, "output_padding", []int64{0, 0},
		"groups", c.groups, "output_mask", nil),
		[]recording.Argument{optional(c.dx, c.noInput), optional(c.dw, c.noWeight), optional(c.db, !c.bias)})
}

// Gradients agree with float64, up to float sums.
func TestConvolutionBackward(t *testing.T) {
	tests := []struct {
		name    string
		x, w, y []int64
		set     func(*backward)
	}{
		{"3x3", []int64{2, 3, 6, 7}, []int64{5, 3, 3, 3}, []int64{2, 5, 6, 7}, func(*backward) {}},
		{"stride 2", []int64{2, 3, 7, 8}, []int64{4, 3, 3, 3}, []int64{2, 4, 4, 4}, func(c *backward) { c.stride = []int64{2, 2} }},
		{"1x1 stride 2", []int64{1, 3, 8, 8}, []int64{4, 3, 1, 1}, []int64{1, 4, 4, 4}, func(c *backward) { c.stride, c.padding = []int64{2, 2}, []int64{0, 0} }},
		{"groups with bias", []int64{2, 4, 5, 5}, []int64{6, 2, 3, 3}, []int64{2, 6, 5, 5}, func(c *backward) { c.groups, c.bias = 2, true }},
		{"first layer", []int64{2, 3, 6, 7}, []int64{5, 3, 3, 3}, []int64{2, 5, 6, 7}, func(c *backward) { c.noInput = true }},
		{"only the bias", []int64{2, 3, 6, 7}, []int64{5, 3, 3, 3}, []int64{2, 5, 6, 7}, func(c *backward) { c.noInput, c.noWeight, c.bias = true, true, true }},
		{"one dimension", []int64{2, 3, 9}, []int64{4, 3, 3}, []int64{2, 4, 5}, func(c *backward) {
			c.stride, c.padding, c.dilation, c.bias = []int64{2}, []int64{1}, []int64{1}, true
		}},
	}
	for _, test := range tests {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(test.name+"/"+dtype.String(), func(t *testing.T) {
				c := newBackward(t, dtype, test.x, test.w, test.y)
				test.set(c)
				c.run(c.operation())
				c.check(dtype)
			})
		}
	}
}

func (c *backward) check(dtype tensor.DType) {
	c.t.Helper()
	four := func(s []int64) []int64 {
		if len(s) == 3 {
			return []int64{s[0], s[1], 1, s[2]}
		}
		return s
	}
	xs, ws, ys := four(c.recording.Values[c.x].Sizes), four(c.recording.Values[c.w].Sizes), four(c.recording.Values[c.grad].Sizes)
	stride, padding, dilation := c.stride, c.padding, c.dilation
	if len(stride) == 1 {
		stride, padding, dilation = []int64{1, stride[0]}, []int64{0, padding[0]}, []int64{1, dilation[0]}
	}
	index := func(s []int64, a, b, y, x int64) int64 { return ((a*s[1]+b)*s[2]+y)*s[3] + x }
	grad, x, w := c.floats(c.grad), c.floats(c.x), c.floats(c.w)
	want := map[int][]float64{c.dx: make([]float64, len(x)), c.dw: make([]float64, len(w)), c.db: make([]float64, ws[0])}
	size := map[int][]float64{c.dx: make([]float64, len(x)), c.dw: make([]float64, len(w)), c.db: make([]float64, ws[0])}
	add := func(to int, at int64, v float64) {
		want[to][at] += v
		size[to][at] += math.Abs(v)
	}
	for n := range ys[0] {
		for m := range ys[1] {
			for oy := range ys[2] {
				for ox := range ys[3] {
					g := grad[index(ys, n, m, oy, ox)]
					add(c.db, m, g)
					for ci := range ws[1] {
						for ky := range ws[2] {
							for kx := range ws[3] {
								iy, ix := oy*stride[0]+ky*dilation[0]-padding[0], ox*stride[1]+kx*dilation[1]-padding[1]
								if iy < 0 || ix < 0 || iy >= xs[2] || ix >= xs[3] {
									continue
								}
								in, tap := index(xs, n, m/(ws[0]/c.groups)*ws[1]+ci, iy, ix), index(ws, m, ci, ky, kx)
								add(c.dx, in, g*w[tap])
								add(c.dw, tap, g*x[in])
							}
						}
					}
				}
			}
		}
	}
	relative := map[tensor.DType]float64{tensor.Float32: 0x1p-20, tensor.BFloat16: 0x1p-8, tensor.Float16: 0x1p-10}[dtype]
	for to, skipped := range map[int]bool{c.dx: c.noInput, c.dw: c.noWeight, c.db: !c.bias} {
		if skipped {
			continue
		}
		for i, got := range c.floats(to) {
			if !(math.Abs(got-want[to][i]) <= relative*size[to][i]+1e-7) {
				c.t.Fatalf("value %d: element %d is %v, wanted %v", to, i, got, want[to][i])
			}
		}
	}
}

func nhwc(s []int64) []int64 { return channelsLastStrides(s) }

// Which format each gradient is computed in, and in which order.
func TestConvolutionBackwardFormats(t *testing.T) {
	x, w, y := []int64{2, 3, 6, 7}, []int64{5, 3, 3, 3}, []int64{2, 5, 6, 7}
	transposed := []int64{7 * 6 * 5, 42, 1, 6} // grad_output with rows and columns exchanged
	tests := []struct {
		name    string
		strides [][]int64
		want    []string
		dataX   []int64 // strides that cuDNN is told
		filterW []int64
	}{
		{"contiguous", nil, []string{"data", "filter"}, tensor.ContiguousStrides(x), tensor.ContiguousStrides(w)},
		{"channels-last", [][]int64{nhwc(y), nhwc(x), nhwc(w), nhwc(x), nhwc(w)}, []string{"data", "filter"}, nhwc(x), nhwc(w)},
		{"a gradient with rows and columns exchanged", [][]int64{transposed}, []string{"copy", "data", "copy", "filter"}, tensor.ContiguousStrides(x), tensor.ContiguousStrides(w)},
		{"an input in another format", [][]int64{nil, nhwc(x), nil, nhwc(x), nhwc(w)}, []string{"copy", "copy", "data", "filter"}, nhwc(x), nhwc(w)},
		{"a weight in another format", [][]int64{nil, nil, nhwc(w), nhwc(x), nhwc(w)}, []string{"copy", "copy", "data", "filter"}, nhwc(x), nhwc(w)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newBackward(t, tensor.Float32, x, w, y, test.strides...)
			commands, err := c.lower(c.operation())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, command := range commands {
				convolution, ok := command.(*device.Convolution)
				switch {
				case !ok:
					got = append(got, "copy")
				case convolution.Direction == device.BackwardData:
					got = append(got, "data")
					if !slices.Equal(convolution.X.Strides, test.dataX) {
						t.Errorf("the input's gradient has strides %v, wanted %v", convolution.X.Strides, test.dataX)
					}
				default:
					got = append(got, "filter")
					if !slices.Equal(convolution.W.Strides, test.filterW) {
						t.Errorf("the weight's gradient has strides %v, wanted %v", convolution.W.Strides, test.filterW)
					}
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("commands %v, wanted %v", got, test.want)
			}
		})
	}
}

func TestConvolutionBackwardUnneeded(t *testing.T) {
	c := newBackward(t, tensor.Float32, []int64{2, 3, 6, 7}, []int64{5, 3, 3, 3}, []int64{2, 5, 6, 7})
	c.unneeded(c.dx)
	commands, err := c.lower(c.operation())
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) != 1 || commands[0].(*device.Convolution).Direction != device.BackwardFilter {
		t.Errorf("commands %s, wanted the weight's gradient alone", describe(commands))
	}
}

func TestConvolutionBackwardRefusals(t *testing.T) {
	x, w, y := []int64{2, 3, 6, 7}, []int64{5, 3, 3, 3}, []int64{2, 5, 6, 7}
	tests := []struct {
		name string
		c    func() *backward
	}{
		{"a gradient of another size", func() *backward { return newBackward(t, tensor.Float32, x, w, []int64{2, 5, 6, 6}) }},
		{"a result in another format", func() *backward { return newBackward(t, tensor.Float32, x, w, y, nil, nil, nil, nhwc(x)) }},
		{"depthwise", func() *backward {
			c := newBackward(t, tensor.Float32, []int64{2, 3, 6, 7}, []int64{3, 1, 3, 3}, []int64{2, 3, 6, 7})
			c.groups = 3
			return c
		}},
	}
	for _, test := range tests {
		c := test.c()
		if _, err := c.lower(c.operation()); err == nil {
			t.Errorf("%s was not refused", test.name)
		}
	}
}
