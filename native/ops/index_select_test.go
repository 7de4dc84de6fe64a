package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestIndexSelect(t *testing.T) {
	for _, dtype := range movedTypes {
		for _, kind := range []tensor.DType{tensor.Int64, tensor.Int32} {
			for dim := range 3 {
				b := newBench(t)
				x := b.tensorAt(dtype, []int64{9, 10, 16}, []int64{1, 150, 9}, 5)
				index := b.tensor(kind, []int64{6}, []int64{2})
				b.number(x)
				b.setBits(index, []uint64{8, 0, 3, 3, 7, 1})
				out := b.tensor(dtype, replaced([]int64{9, 10, 16}, dim, 6), nil)
				b.run(operation("aten::index_select", args("self", x, "dim", int64(dim-3), "index", index), results(out)))
				b.expectPlaces(x, out, 0, func(at []int64) []int64 {
					return replaced(at, dim, int64(b.at(index, at[dim:dim+1])))
				})
			}
		}
	}
}

func TestIndexSelectRefusals(t *testing.T) {
	b := newBench(t)
	x, index := b.tensor(tensor.Float32, []int64{5, 6}, nil), b.tensor(tensor.Int64, []int64{2, 2}, nil)
	out := b.tensor(tensor.Float32, []int64{4, 6}, nil)
	expectRefusal(t, b, operation("aten::index_select", args("self", x, "dim", int64(0), "index", index), results(out)), "results[0]")
	expectRefusal(t, b, operation("aten::index_select", args("self", x, "dim", int64(2), "index", index), results(out)), "arguments[1]")
}
