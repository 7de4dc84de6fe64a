package ops

import (
	"fmt"
	"testing"

	"samebits/bridge/tensor"
)

func TestAvgPool(t *testing.T) {
	for _, dtype := range floatTypes {
		for _, p := range poolings {
			for _, divisor := range []any{nil, int64(3)} {
				for _, includePad := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s %s %v %v", dtype, p.name, divisor, includePad), func(t *testing.T) {
						b := newBench(t)
						x := p.input.in(b, dtype)
						b.setFloats(x, []float64{0.1, 1e7, 3.7, -1e7, 1e-3, 7, -0.77, 123.456, 1e-8, 2})
						y := p.like(p.shape()).in(b, dtype)
						expected := p.average(b, x, divisor, includePad)
						b.run(operation("aten::avg_pool2d", args("self", x, "kernel_size", p.kernel, "stride", p.stride, "padding", p.padding,
							"ceil_mode", p.ceil, "count_include_pad", includePad, "divisor_override", divisor), results(y)))
						expectBits(t, dtype, b.bits(y), expected, 0)
					})
				}
			}
		}
	}
}

// average adds in order, in float32 unless the type is float64, and divides.
func (p *pooling) average(b *bench, x int, divisor any, includePad bool) []uint64 {
	dtype := b.recording.Values[x].DType
	values := b.floats(x)
	var list []uint64
	p.windows(func(elements, _ []int64, rows, columns int64) {
		count := int64(len(elements))
		if includePad {
			count = rows * columns
		}
		if n, ok := divisor.(int64); ok {
			count = n
		}
		if dtype == tensor.Float64 {
			sum := 0.0
			for _, e := range elements {
				sum += values[e]
			}
			list = append(list, encode(dtype, sum/float64(count)))
			return
		}
		sum := float32(0)
		for _, e := range elements {
			sum += float32(values[e])
		}
		list = append(list, encode(dtype, float64(sum/float32(count))))
	})
	return list
}

func TestAvgPoolRefusals(t *testing.T) {
	b := newBench(t)
	x, y := b.tensor(tensor.Float32, []int64{1, 2, 8, 8}, nil), b.tensor(tensor.Float32, []int64{1, 2, 4, 4}, nil)
	expectRefusal(t, b, operation("aten::avg_pool2d", args("self", x, "kernel_size", []int64{2}, "stride", nil, "padding", []int64{0},
		"ceil_mode", false, "count_include_pad", true, "divisor_override", int64(0)), results(y)), "arguments[6]")
}
