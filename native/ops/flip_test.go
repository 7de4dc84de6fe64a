package ops

import (
	"slices"
	"testing"

	"samebits/bridge/tensor"
)

func TestFlip(t *testing.T) {
	sizes := []int64{3, 4, 5, 16}
	for _, dtype := range movedTypes {
		for _, dims := range [][]int64{{3}, {-1, 0}, {1, 2}, {0, 1, 2, 3}, {}} {
			for _, strides := range [][]int64{nil, {320, 1, 64, 4}, {0, 16, 80, 1}} {
				b := newBench(t)
				x := operand{sizes, strides, 7}.in(b, dtype)
				b.number(x)
				out := b.tensor(dtype, sizes, nil)
				b.run(operation("aten::flip", args("self", x, "dims", dims), results(out)))
				b.expectPlaces(x, out, 0, func(at []int64) []int64 {
					place := slices.Clone(at)
					for _, d := range dims {
						d = (d + 4) % 4
						place[d] = sizes[d] - 1 - at[d]
					}
					return place
				})
			}
		}
	}
}

func TestFlipRefusals(t *testing.T) {
	b := newBench(t)
	x, out, other := b.tensor(tensor.Float32, []int64{2, 3}, nil), b.tensor(tensor.Float32, []int64{2, 3}, nil), b.tensor(tensor.Float32, []int64{3, 2}, nil)
	expectRefusal(t, b, operation("aten::flip", args("self", x, "dims", []int64{2}), results(out)), "arguments[1]")
	expectRefusal(t, b, operation("aten::flip", args("self", x, "dims", []int64{0}), results(other)), "results[0]")
}
