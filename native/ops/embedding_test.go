package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestEmbedding(t *testing.T) {
	for _, dtype := range movedTypes {
		for _, width := range []int64{1, 7, 16, 24} {
			b := newBench(t)
			w, index := b.tensorAt(dtype, []int64{30, width}, []int64{width + 3, 1}, 1), b.tensor(tensor.Int64, []int64{3, 5}, []int64{1, 3})
			b.number(w)
			b.setBits(index, []uint64{0, 29, 4, 4, 17})
			out := b.tensor(dtype, []int64{3, 5, width}, nil)
			b.run(operation("aten::embedding", args("weight", w, "indices", index, "padding_idx", int64(4), "scale_grad_by_freq", false,
				"sparse", false), results(out)))
			b.expectPlaces(w, out, 0, func(at []int64) []int64 { return []int64{int64(b.at(index, at[:2])), at[2]} })
		}
	}
}

func TestEmbeddingRefusals(t *testing.T) {
	b := newBench(t)
	w, index := b.tensor(tensor.Float32, []int64{0, 4}, nil), b.tensor(tensor.Int64, []int64{3}, nil)
	call := func(out int) { // what is refused, and where
		t.Helper()
		op := operation("aten::embedding", args("weight", w, "indices", index, "padding_idx", int64(-1), "scale_grad_by_freq", false,
			"sparse", false), results(out))
		path := "results[0]"
		if b.recording.Values[out].Sizes[1] == 4 {
			path = "arguments[1]" // indices into nothing
		}
		expectRefusal(t, b, op, path)
	}
	call(b.tensor(tensor.Float32, []int64{3, 5}, nil))
	call(b.tensor(tensor.Float32, []int64{3, 4}, nil))
}
