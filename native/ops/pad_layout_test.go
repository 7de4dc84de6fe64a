package ops

import (
	"slices"
	"testing"

	"samebits/bridge/tensor"
)

// PyTorch lays the result of replication_pad2d out by rows on CUDA and like the input on the CPU. The recording says which.
func TestPadsObeyTheResultsStrides(t *testing.T) {
	for _, name := range []string{"aten::replication_pad2d", "aten::constant_pad_nd"} {
		var first []uint64
		for _, strides := range [][]int64{nil, {180, 1, 30, 3}, {400, 130, 13, 1}} {
			b := newBench(t)
			x := b.tensor(tensor.Float32, []int64{2, 3, 5, 7}, []int64{105, 1, 21, 3})
			out := b.tensor(tensor.Float32, []int64{2, 3, 6, 10}, strides)
			data := make([]uint64, 210)
			for i := range data {
				data[i] = uint64(i + 1)
			}
			b.setBits(x, data)
			arguments := args("self", x, "padding", []int64{1, 2, 0, 1})
			if name == "aten::constant_pad_nd" {
				arguments = args("self", x, "pad", []int64{1, 2, 0, 1}, "value", 2.0)
			}
			b.run(operation(name, arguments, results(out)))
			if first == nil {
				first = b.bits(out)
			}
			if got := b.bits(out); !slices.Equal(got, first) {
				t.Errorf("%s: a result of strides %v is %v, row-major %v", name, strides, got, first)
			}
		}
		if first[1] != 1 || first[11] != 8 {
			t.Errorf("%s: the result begins with %v", name, first[:12])
		}
	}
}
