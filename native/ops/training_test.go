package ops

import (
	"math"
	"slices"
	"testing"

	"samebits/bridge/tensor"
)

// Small operations of a training step.

func TestThresholdBackward(t *testing.T) {
	for _, dtype := range floatTypes {
		for _, strides := range [][]int64{nil, {1, 41}} {
			t.Run(dtype.String(), func(t *testing.T) {
				b := newBench(t)
				sizes := []int64{41, 41}
				x, grad, dx := b.tensor(dtype, sizes, strides), b.tensor(dtype, sizes, nil), b.tensor(dtype, sizes, nil)
				var xs, gs []float64
				for _, v := range edges() {
					for _, g := range edges() {
						xs, gs = append(xs, v), append(gs, g)
					}
				}
				b.setFloats(x, xs)
				b.setFloats(grad, gs)
				want := b.bits(grad)
				for i, v := range b.floats(x) {
					if v <= 0 {
						want[i] = 0
					}
				}
				b.run(operation("aten::threshold_backward", args("grad_output", grad, "self", x, "threshold", int64(0)), results(dx)))
				for i, got := range b.bits(dx) {
					if got != want[i] {
						t.Fatalf("gradient %d is %#x, wanted %#x", i, got, want[i])
					}
				}
			})
		}
	}
}

// num_batches_tracked counts in int64.
func TestAddIntegers(t *testing.T) {
	b := newBench(t)
	x := b.tensor(tensor.Int64, nil, nil)
	b.setBits(x, []uint64{1<<53 + 1})
	b.run(operation("aten::add_.Tensor", args("self", x, "other", int64(1), "alpha", int64(1)), results(x)))
	expectBits(t, tensor.Int64, b.bits(x), []uint64{1<<53 + 2}, 0)

	y, z := b.tensor(tensor.Int64, []int64{5, 3}, nil), b.tensor(tensor.Int64, []int64{5, 3}, []int64{1, 5})
	b.setBits(y, []uint64{1, 2, math.MaxUint64, 1 << 62})
	b.run(operation("aten::add.Tensor", args("self", y, "other", y, "alpha", int64(-3)), results(z)))
	for i, got := range b.bits(z) {
		if want := -(2 * b.bits(y)[i]); got != want {
			t.Errorf("element %d is %d, wanted %d", i, int64(got), int64(want))
		}
	}
}

func TestFill(t *testing.T) {
	tests := []struct {
		dtype tensor.DType
		value float64
		want  uint64
	}{
		{tensor.Float32, 1, 0x3f800000}, {tensor.BFloat16, 1, 0x3f80}, {tensor.Float16, 1, 0x3c00}, {tensor.Float64, -0.5, 0xbfe0000000000000},
		{tensor.Int64, -3, math.MaxUint64 - 2}, {tensor.Int32, 7, 7}, {tensor.Uint8, 255, 255}, {tensor.Bool, 1, 1},
		{tensor.Float32, math.Copysign(0, -1), 0x80000000},
	}
	for _, test := range tests {
		for _, strides := range [][]int64{nil, {10, 2}} {
			b := newBench(t)
			y := b.tensor(test.dtype, []int64{7, 5}, strides)
			b.run(operation("aten::full", args("size", []int64{7, 5}, "fill_value", test.value), results(y)))
			expectBits(t, test.dtype, b.bits(y), slices.Repeat([]uint64{test.want}, 35), 0)
			b.run(operation("aten::zeros_like", args("self", y), results(y)))
			expectBits(t, test.dtype, b.bits(y), make([]uint64, 35), 0)
		}
	}
}

// Numbers are rounded to 16 bits as PyTorch rounds them; what is no number has the bits that its CPU side gives it.
func TestSmallBits(t *testing.T) {
	nan := float32(math.NaN())
	if b, h := smallBits(nan, 7, 127), smallBits(nan, 10, 15); b != 0x7fc0 || h != 0x7e00 {
		t.Errorf("NaN is bfloat16 %#x, float16 %#x, wanted 0x7fc0, 0x7e00", b, h)
	}
	for _, v := range append(edges(), 1e-7, 65519, 65535, 6e-5, 1.0009765, 3.3961775e38, 0x1p-133, 0x1.8p-134) {
		f := float32(v)
		if f != f {
			continue
		}
		if got, want := smallBits(f, 7, 127), encode(tensor.BFloat16, float64(f)); got != want {
			t.Errorf("%v is bfloat16 %#x, wanted %#x", v, got, want)
		}
		if got, want := smallBits(f, 10, 15), encode(tensor.Float16, float64(f)); got != want {
			t.Errorf("%v is float16 %#x, wanted %#x", v, got, want)
		}
	}
}

func TestMmRefusals(t *testing.T) {
	b := newBench(t)
	x, w, d := b.tensor(tensor.Float32, []int64{4, 5}, nil), b.tensor(tensor.Float32, []int64{5, 6}, nil), b.tensor(tensor.Float32, []int64{4, 6}, []int64{1, 4})
	if _, err := b.lower(operation("aten::mm", args("self", x, "mat2", w), results(d))); err == nil {
		t.Error("a column-major result is not refused")
	}
}

// The sum of a linear layer's bias: few rows of many columns.
func TestSumOfRows(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		for _, rows := range []int64{1, 4, 16} {
			b := newBench(t)
			x, y := b.tensor(dtype, []int64{rows, 1000}, nil), b.tensor(dtype, []int64{1, 1000}, nil)
			state := uint64(2)
			b.setFloats(x, randoms(&state, int(rows*1000)))
			b.run(operation("aten::sum.dim_IntList", args("self", x, "dim", []int64{0}, "keepdim", true, "dtype", nil), results(y)))
			values, got := b.floats(x), b.bits(y)
			for c := range 1000 {
				var acc [4]float32 // rows a block's height apart would be more: here one thread adds them all
				for r := range int(rows) {
					acc[r%4] += float32(values[r*1000+c])
				}
				if want := encode(dtype, float64(acc[0]+acc[1]+acc[2]+acc[3])); got[c] != want {
					t.Fatalf("%s, %d rows: column %d is %#x, wanted %#x", dtype, rows, c, got[c], want)
				}
			}
		}
	}
}
