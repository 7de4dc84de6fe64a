package ops

import (
	"fmt"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func linear(x, y int, length int64) recording.Operation {
	return operation("aten::upsample_linear1d", args("self", x, "output_size", []int64{length}, "align_corners", false,
		"scales", nil), results(y))
}

func TestUpsampleLinear(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64} {
		for name, in := range map[string]operand{
			"contiguous": run(2, 3, 27),
			"transposed": {[]int64{1, 64, 27}, []int64{1728, 1, 64}, 0},
			"one":        run(1, 1, 1),
		} {
			t.Run(dtype.String()+" "+name, func(t *testing.T) {
				b := newBench(t)
				x := in.in(b, dtype)
				data := make([]float64, tensor.Numel(in.sizes))
				for i := range data {
					data[i] = float64(i%31) - 15
				}
				b.setFloats(x, data)
				y := run(in.sizes...).in(b, dtype)
				b.run(linear(x, y, in.sizes[2]))
				if got, want := b.bits(y), b.bits(x); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%x, want %x", got, want)
				}
			})
		}
	}
}

func TestUpsampleLinearRefusals(t *testing.T) {
	b := newBench(t)
	x, y := run(1, 2, 4).in(b, tensor.Float32), run(1, 2, 5).in(b, tensor.Float32)
	expectRefusal(t, b, linear(x, y, 5), "arguments[1]")
}
