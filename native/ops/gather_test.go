package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

var gatherCases = []struct {
	name        string
	dim         int64
	self, index operand
}{
	{"rows", 1, run(2, 20, 8), run(2, 7, 8)},
	{"fewer columns", 1, run(2, 20, 8), run(1, 7, 5)},
	{"last dimension", -1, run(3, 4, 20), run(3, 4, 9)},
	{"one index for a row", 1, run(1, 20, 16), operand{[]int64{1, 5, 16}, []int64{5, 1, 0}, 0}},
	{"strides", 0, operand{[]int64{20, 6}, []int64{1, 25}, 3}, operand{[]int64{9, 6}, []int64{1, 9}, 2}},
	{"a line", 0, run(20), run(3)},
	{"no dimensions", 0, run(), run()},
	{"nothing", 1, run(2, 20), run(2, 0)},
}

func TestGather(t *testing.T) {
	for _, dtype := range movedTypes {
		for _, c := range gatherCases {
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				x, index := c.self.in(b, dtype), c.index.in(b, tensor.Int64)
				out := b.tensor(dtype, c.index.sizes, nil)
				b.number(x)
				dim := int(c.dim)
				if dim < 0 {
					dim += len(c.self.sizes)
				}
				for i, e := range b.element(index) {
					putBits(e, uint64(i*7%20)*uint64(min(len(c.self.sizes), 1)))
				}
				b.run(operation("aten::gather", args("self", x, "dim", c.dim, "index", index, "sparse_grad", false), results(out)))
				b.expectPlaces(x, out, 0, func(at []int64) []int64 {
					if len(at) == 0 {
						return at
					}
					return replaced(at, dim, int64(b.at(index, at)))
				})
			})
		}
	}
}

func TestGatherRefusals(t *testing.T) {
	b := newBench(t)
	x, index := b.tensor(tensor.Float32, []int64{5, 6}, nil), b.tensor(tensor.Int64, []int64{5, 7}, nil)
	out, bad := b.tensor(tensor.Float32, []int64{5, 7}, nil), b.tensor(tensor.Int64, []int64{5, 7}, nil)
	floats, half := b.tensor(tensor.Float32, []int64{5, 2}, nil), b.tensor(tensor.Float32, []int64{5, 2}, nil)
	for _, c := range []struct {
		path       string
		dim        int64
		index, out int
	}{
		{"arguments[1]", 2, index, out},
		{"arguments[2]", 0, index, out},   // wider than self along another dimension
		{"results[0]", 1, index, bad},     // of another type
		{"results[0]", 1, index, half},    // of other sizes
		{"arguments[2]", 1, floats, half}, // no integers
	} {
		expectRefusal(t, b, operation("aten::gather",
			args("self", x, "dim", c.dim, "index", c.index, "sparse_grad", false), results(c.out)), c.path)
	}
}
