package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestRepeat(t *testing.T) {
	for _, dtype := range movedTypes {
		for _, c := range []struct {
			name    string
			self    operand
			repeats []int64
		}{
			{"once", run(3, 4, 8), []int64{1, 1, 1}},
			{"a column", run(2, 30, 1), []int64{1, 1, 80}},
			{"columns", run(5, 6), []int64{1, 3}},
			{"rows of a slice", operand{[]int64{1, 1, 24}, []int64{500, 24, 1}, 48}, []int64{4, 1, 1}},
			{"all", run(2, 3, 4), []int64{2, 3, 2}},
			{"more dimensions", run(3, 4), []int64{2, 1, 2, 2}},
			{"turned", operand{[]int64{3, 4}, []int64{1, 3}, 0}, []int64{2, 2}},
			{"never", run(3, 4), []int64{0, 2}},
		} {
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				x := c.self.in(b, dtype)
				b.number(x)
				more := len(c.repeats) - len(c.self.sizes)
				sizes := append([]int64{}, c.repeats...)
				for d, size := range c.self.sizes {
					sizes[more+d] *= size
				}
				out := b.tensor(dtype, sizes, nil)
				b.run(operation("aten::repeat", args("self", x, "repeats", c.repeats), results(out)))
				b.expectPlaces(x, out, 0, func(at []int64) []int64 {
					place := append([]int64{}, at[more:]...)
					for d, size := range c.self.sizes {
						place[d] %= size
					}
					return place
				})
			})
		}
	}
}

func TestRepeatRefusals(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Float32, []int64{2, 3}, nil), b.tensor(tensor.Float32, []int64{4, 3}, nil)
	expectRefusal(t, b, operation("aten::repeat", args("self", x, "repeats", []int64{2}), results(out)), "arguments[1]")
	expectRefusal(t, b, operation("aten::repeat", args("self", x, "repeats", []int64{2, 2}), results(out)), "results[0]")
}
