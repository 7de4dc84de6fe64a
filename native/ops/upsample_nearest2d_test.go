package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

func TestUpsampleNearest(t *testing.T) { testUpsampleNearest(t, "aten::upsample_nearest2d", 0) }

func TestUpsampleNearestExact(t *testing.T) {
	testUpsampleNearest(t, "aten::_upsample_nearest_exact2d", 0.5)
}

func testUpsampleNearest(t *testing.T, name string, centre float32) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float64, tensor.Uint8} {
		for _, c := range []struct {
			name           string
			input          operand
			height, width  int64
			scaleH, scaleW any
			channelsLast   bool
		}{
			{"twice", run(1, 3, 5, 6), 10, 12, 2.0, 2.0, false},
			{"twice without scales", run(2, 3, 5, 6), 10, 12, nil, nil, false},
			{"odd ratio", run(1, 2, 7, 10), 11, 23, nil, nil, false},
			{"smaller", run(1, 2, 13, 10), 4, 3, nil, nil, false},
			{"scale that is not the ratio", run(1, 2, 10, 10), 17, 19, 1.7, 1.95, false},
			{"scale of zero", run(1, 1, 4, 4), 6, 6, 0.0, -1.0, false},
			{"one size kept", run(1, 2, 6, 5), 6, 10, 3.0, 2.0, false},
			{"slice", operand{[]int64{2, 2, 4, 4}, []int64{96, 16, 4, 1}, 16}, 8, 8, 2.0, 2.0, false},
			{"channels last", operand{[]int64{2, 5, 3, 4}, []int64{60, 1, 20, 5}, 0}, 6, 8, 2.0, 2.0, true},
		} {
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				x := c.input.in(b, dtype)
				var content []uint64
				for i, e := range b.element(x) {
					putBits(e, uint64(i+1)*0x0123456789abcdef)
				}
				content = b.bits(x)
				n := c.input.sizes
				sizes := []int64{n[0], n[1], c.height, c.width}
				out := run(sizes...)
				if c.channelsLast {
					out.strides = []int64{c.height * c.width * n[1], 1, c.width * n[1], n[1]}
				}
				y := out.in(b, dtype)
				var expected []uint64
				for plane := range n[0] * n[1] {
					for h := range c.height {
						for w := range c.width {
							row, column := sourceIndex(h, n[2], c.height, c.scaleH, centre), sourceIndex(w, n[3], c.width, c.scaleW, centre)
							expected = append(expected, content[(plane*n[2]+row)*n[3]+column])
						}
					}
				}
				b.run(operation(name, args("self", x, "output_size", []int64{c.height, c.width},
					"scales_h", c.scaleH, "scales_w", c.scaleW), results(y)))
				if got := b.bits(y); fmt.Sprint(got) != fmt.Sprint(expected) {
					t.Errorf("%x, want %x", got, expected)
				}
			})
		}
	}
}

// sourceIndex is the row that an output row shows.
func sourceIndex(at, in, out int64, scale any, centre float32) int64 {
	if in == out {
		return at
	}
	ratio := float32(in) / float32(out)
	if s, ok := scale.(float64); ok && s > 0 {
		ratio = float32(1 / s)
	}
	return min(int64(math.Floor(float64((float32(at)+centre)*ratio))), in-1)
}
