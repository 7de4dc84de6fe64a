package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestRelu(t *testing.T) {
	testUnary(t, "aten::relu", nil, func(_ tensor.DType, x float64) float64 {
		if x > 0 || x != x {
			return x
		}
		return 0 // for -0 too
	})
}

// A NaN goes through with all its bits.
func TestReluKeepsNaN(t *testing.T) {
	for dtype, nans := range map[tensor.DType][]uint64{
		tensor.Float32:  {0x7f800001, 0xffc12345, 0x7fffffff},
		tensor.BFloat16: {0x7f81, 0xffc1, 0x7fff},
		tensor.Float16:  {0x7c01, 0xfe01, 0x7fff},
		tensor.Float64:  {0x7ff0000000000001, 0xfff8000012345678},
	} {
		b := newBench(t)
		x, y := b.tensor(dtype, []int64{19}, nil), b.tensor(dtype, []int64{19}, nil)
		b.setBits(x, nans)
		b.run(operation("aten::relu", args("self", x), results(y)))
		for i, got := range b.bits(y) {
			if got != nans[i%len(nans)] {
				t.Errorf("%s: NaN %#x became %#x", dtype, nans[i%len(nans)], got)
			}
		}
	}
}
