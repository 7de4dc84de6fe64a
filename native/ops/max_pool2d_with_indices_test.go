package ops

import (
	"math"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func (p *pooling) maxArgs(x int) []recording.Argument {
	return args("self", x, "kernel_size", p.kernel, "stride", p.stride, "padding", p.padding, "dilation", p.dilation, "ceil_mode", p.ceil)
}

func TestMaxPool(t *testing.T) {
	cases := append([]pooling{
		{"dilated", run(2, 3, 11, 13), []int64{3, 2}, []int64{1, 2}, []int64{1, 1}, []int64{2, 3}, false},
		{"dilated channels last", operand{[]int64{1, 3, 9, 9}, []int64{243, 1, 27, 3}, 0}, []int64{3, 3}, []int64{2, 2}, []int64{1, 1}, []int64{2, 2}, true},
	}, poolings...)
	for _, dtype := range floatTypes {
		for _, p := range cases {
			for _, data := range []struct {
				name   string
				values []float64
			}{
				{"ties", []float64{1, 2, 2, 0, -1, 2}},
				{"zeros", []float64{math.Copysign(0, -1), 0, -3}},
				{"edges", edges()},
				{"minus infinity", []float64{math.Inf(-1)}},
			} {
				t.Run(dtype.String()+" "+p.name+" "+data.name, func(t *testing.T) {
					b := newBench(t)
					x := p.input.in(b, dtype)
					b.setFloats(x, data.values)
					if data.name == "edges" { // NaNs that can be told apart
						e := b.element(x)
						putBits(e[len(e)/2], encode(dtype, math.Inf(1))+1)
						putBits(e[len(e)/3], encode(dtype, math.Inf(-1))+5)
					}
					y, index := p.like(p.shape()).in(b, dtype), p.like(p.shape()).in(b, tensor.Int64)
					values, indices := p.largest(b, x)
					b.run(operation("aten::max_pool2d_with_indices", p.maxArgs(x), results(y, index)))
					for i, got := range b.bits(y) {
						if got != values[i] {
							t.Fatalf("value [%d] %#x, want %#x", i, got, values[i])
						}
					}
					expectBits(t, tensor.Int64, b.bits(index), indices, 0)
				})
			}
		}
	}
}

// largest finds values and indices window by window.
func (p *pooling) largest(b *bench, x int) (values, indices []uint64) {
	v := &b.recording.Values[x]
	bits := b.bits(x)
	p.windows(func(elements, places []int64, _, _ int64) {
		best, at := math.Inf(-1), places[0]
		if channelsLast(v) {
			at = 0
		}
		found := encode(v.DType, best)
		for i, e := range elements {
			f := decode(v.DType, bits[e])
			if f > best || f != f {
				best, found, at = f, bits[e], places[i]
			}
		}
		values, indices = append(values, found), append(indices, uint64(at))
	})
	return values, indices
}

// Indices that nobody reads are not written.
func TestMaxPoolWithoutIndices(t *testing.T) {
	p := poolings[1]
	b := newBench(t)
	x := p.input.in(b, tensor.BFloat16)
	b.setFloats(x, edges())
	y, index := run(p.shape()...).in(b, tensor.BFloat16), run(p.shape()...).in(b, tensor.Int64)
	b.unneeded(index)
	values, _ := p.largest(b, x)
	b.run(operation("aten::max_pool2d_with_indices", p.maxArgs(x), results(y, index)))
	expectBits(t, tensor.BFloat16, b.bits(y), values, 0)
}

func TestPoolRefusals(t *testing.T) {
	b := newBench(t)
	x, y := b.tensor(tensor.Float32, []int64{1, 2, 8, 8}, nil), b.tensor(tensor.Float32, []int64{1, 2, 4, 4}, nil)
	index, whole := b.tensor(tensor.Int64, []int64{1, 2, 4, 4}, nil), b.tensor(tensor.Int64, []int64{1, 2, 8, 8}, nil)
	pool := func(x, y, index int, kernel, stride, padding, dilation []int64) recording.Operation {
		p := pooling{kernel: kernel, stride: stride, padding: padding, dilation: dilation}
		return operation("aten::max_pool2d_with_indices", p.maxArgs(x), results(y, index))
	}
	two, one, none := []int64{2, 2}, []int64{1, 1}, []int64{0, 0}
	expectRefusal(t, b, pool(x, y, index, none, two, none, one), "arguments[1]")
	expectRefusal(t, b, pool(x, y, index, two, none, none, one), "arguments[2]")
	expectRefusal(t, b, pool(x, y, index, two, two, two, one), "arguments[3]")
	expectRefusal(t, b, pool(x, y, index, two, two, none, none), "arguments[4]")
	expectRefusal(t, b, pool(x, y, index, two, []int64{3, 3}, none, one), "results[0]")
	expectRefusal(t, b, pool(x, y, index, []int64{2, 2, 2}, two, none, one), "arguments[1]")
	expectRefusal(t, b, pool(x, y, y, two, two, none, one), "results[1]")
	expectRefusal(t, b, pool(x, index, index, two, two, none, one), "results[0]")
	expectRefusal(t, b, pool(whole, index, index, two, two, none, one), "results[0]")
	flat := b.tensor(tensor.Float32, []int64{64}, nil)
	expectRefusal(t, b, pool(flat, y, index, two, two, none, one), "arguments[0]")
	other := b.tensor(tensor.Float32, []int64{1, 3, 4, 4}, nil)
	expectRefusal(t, b, pool(x, other, index, two, two, none, one), "results[0]")
}
