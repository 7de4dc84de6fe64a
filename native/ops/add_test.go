package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestAdd(t *testing.T) {
	testBinary(t, "aten::add.Tensor", []any{"alpha", int64(1)}, func(dtype tensor.DType, x, y float64) float64 {
		return inType(dtype, x, y, func(a, b float32) float32 { return a + b }, func(a, b float64) float64 { return a + b })
	})
}

func TestAddAlpha(t *testing.T) {
	testBinary(t, "aten::add.Tensor", []any{"alpha", 0.1}, func(dtype tensor.DType, x, y float64) float64 {
		return fused(dtype, 0.1, y, x)
	})
}

func TestSub(t *testing.T) {
	testBinary(t, "aten::sub.Tensor", []any{"alpha", int64(1)}, func(dtype tensor.DType, x, y float64) float64 {
		return inType(dtype, x, y, func(a, b float32) float32 { return a - b }, func(a, b float64) float64 { return a - b })
	})
	testBinary(t, "aten::sub.Tensor", []any{"alpha", 1.7}, func(dtype tensor.DType, x, y float64) float64 {
		return fused(dtype, -1.7, y, x)
	})
}

func TestAddNumber(t *testing.T) {
	testNumber(t, "aten::add.Tensor", []any{"alpha", int64(1)}, func(dtype tensor.DType, x, number float64) float64 {
		return fused(dtype, 1, number, x)
	})
	testNumber(t, "aten::sub.Tensor", []any{"alpha", 0.3}, func(dtype tensor.DType, x, number float64) float64 {
		return fused(dtype, -0.3, number, x)
	})
}

// x + 0 is no identity.
func TestAddZeroMakesZeroPositive(t *testing.T) {
	b := newBench(t)
	x, y := b.tensor(tensor.BFloat16, []int64{9}, nil), b.tensor(tensor.BFloat16, []int64{9}, nil)
	b.setBits(x, []uint64{0x8000, 0x3f80, 0x8001})
	b.run(operation("aten::add.Tensor", args("self", x, "other", int64(0), "alpha", int64(1)), results(y)))
	expectBits(t, tensor.BFloat16, b.bits(y), []uint64{0, 0x3f80, 0x8001, 0, 0x3f80, 0x8001, 0, 0x3f80, 0x8001}, 0)
}

// testNumber runs a binary operation whose second operand is a Python number, which is not rounded to 16 bits.
func testNumber(t *testing.T, name string, more []any, want func(tensor.DType, float64, float64) float64) {
	for _, dtype := range floatTypes {
		for _, l := range unaryLayouts {
			for _, number := range []float64{0, 0.1, -3.14159, 1e30} {
				b := newBench(t)
				x, y := l.x.in(b, dtype), l.y.in(b, dtype)
				b.setFloats(x, edges())
				var expected []uint64
				for _, v := range b.floats(x) {
					expected = append(expected, encode(dtype, want(dtype, v, number)))
				}
				b.run(operation(name, args(append([]any{"self", x, "other", number}, more...)...), results(y)))
				expectBits(t, dtype, b.bits(y), expected, 0)
				if t.Failed() {
					t.Fatalf("%s %s %g", dtype, l.name, number)
				}
			}
		}
	}
}

// In place the result has self's type, whatever the sum is computed in.
func TestAddInPlace(t *testing.T) {
	for _, c := range []struct {
		name                string
		self, other, common tensor.DType
		otherSizes          []int64
	}{
		{"one type", tensor.Float32, tensor.Float32, tensor.Float32, []int64{6, 40}},
		{"computed in float32", tensor.BFloat16, tensor.Float32, tensor.Float32, []int64{6, 40}},
		{"half computed in float32", tensor.Float16, tensor.Float32, tensor.Float32, []int64{40}},
		{"scalar tensor is rounded first", tensor.BFloat16, tensor.Float32, tensor.BFloat16, []int64{}},
		{"integer", tensor.BFloat16, tensor.Int64, tensor.BFloat16, []int64{6, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			x, y := b.tensor(c.self, []int64{6, 40}, nil), b.tensor(c.other, c.otherSizes, nil)
			b.setFloats(x, []float64{1, 0.1, 7.77, -3, 1e-3, 12345})
			b.setFloats(y, []float64{0.123456, 0.1, 1.00390625, -1e-5, 300})
			ys := expand(b, y, []int64{6, 40})
			var expected []uint64
			for i, v := range b.floats(x) {
				w := decode(c.common, encode(c.common, ys[i]))
				sum := float32(v) + float32(w)
				expected = append(expected, encode(c.self, float64(sum)))
			}
			b.run(operation("aten::add_.Tensor", args("self", x, "other", y, "alpha", int64(1)), results(x)))
			expectBits(t, c.self, b.bits(x), expected, 0)
		})
	}
}
