package ops

import (
	"slices"
	"testing"

	"samebits/bridge/tensor"
)

func TestRoll(t *testing.T) {
	sizes := []int64{2, 6, 7, 16}
	for _, dtype := range movedTypes {
		for _, c := range []struct {
			name         string
			shifts, dims []int64
		}{
			{"windows", []int64{-3, -3}, []int64{1, 2}},
			{"more than once around", []int64{20, -100}, []int64{1, -2}},
			{"last dimension", []int64{5}, []int64{3}},
			{"all", []int64{1, 2, 3, 4}, []int64{0, 1, 2, 3}},
			{"one twice", []int64{4, 5}, []int64{2, 2}},
			{"not at all", []int64{0, 7}, []int64{0, 2}},
		} {
			for _, strides := range [][]int64{nil, {672, 1, 96, 6}} {
				t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
					b := newBench(t)
					x, out := operand{sizes, strides, 1}.in(b, dtype), b.tensor(dtype, sizes, nil)
					b.number(x)
					b.run(operation("aten::roll", args("self", x, "shifts", c.shifts, "dims", c.dims), results(out)))
					b.expectPlaces(x, out, 0, func(at []int64) []int64 {
						place := slices.Clone(at)
						for i, d := range c.dims {
							d = (d + 4) % 4
							place[d] = ((place[d]-c.shifts[i])%sizes[d] + sizes[d]) % sizes[d]
						}
						return place
					})
				})
			}
		}
	}
}

// Without dimensions the elements are one line.
func TestRollLine(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Int64, []int64{4, 5}, []int64{1, 4}), b.tensor(tensor.Int64, []int64{4, 5}, nil)
	b.number(x)
	b.run(operation("aten::roll", args("self", x, "shifts", []int64{7}, "dims", []int64{}), results(out)))
	b.expectPlaces(x, out, 0, func(at []int64) []int64 {
		i := (at[0]*5 + at[1] + 20 - 7) % 20
		return []int64{i / 5, i % 5}
	})
}

func TestRollRefusals(t *testing.T) {
	b := newBench(t)
	x, out, other := b.tensor(tensor.Float32, []int64{2, 3}, nil), b.tensor(tensor.Float32, []int64{2, 3}, nil), b.tensor(tensor.Float32, []int64{3, 2}, nil)
	expectRefusal(t, b, operation("aten::roll", args("self", x, "shifts", []int64{1}, "dims", []int64{2}), results(out)), "arguments[2]")
	expectRefusal(t, b, operation("aten::roll", args("self", x, "shifts", []int64{1}, "dims", []int64{0, 1}), results(out)), "arguments[1]")
	expectRefusal(t, b, operation("aten::roll", args("self", x, "shifts", []int64{1}, "dims", []int64{0}), results(other)), "results[0]")
}
