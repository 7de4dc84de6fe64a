package ops

import (
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// single rounds to float32 unless dtype is float64: what a step of a computation in that type gives.
func single(dtype tensor.DType, v float64) float64 {
	if dtype == tensor.Float64 {
		return v
	}
	return float64(float32(v))
}

// libm is how far a function of the GPU's or the host's library may be off.
var libm = map[tensor.DType]uint64{tensor.Float32: 4, tensor.BFloat16: 1, tensor.Float16: 1, tensor.Float64: 4}

// circular is libm where Go's own functions are not as good as float64 allows.
var circular = map[tensor.DType]uint64{tensor.Float32: 4, tensor.BFloat16: 1, tensor.Float16: 1, tensor.Float64: 200}

// plain makes a function of a number one of a type and a number.
func plain(f func(float64) float64) func(tensor.DType, float64) float64 {
	return func(_ tensor.DType, x float64) float64 { return f(x) }
}

func hardStep(dtype tensor.DType, x float64) float64 {
	return math.Min(math.Max(single(dtype, x+3), 0), 6)
}

func TestFunctions(t *testing.T) {
	sixth := float64(float32(1) / 6)
	tests := []struct {
		name string
		more []any
		ulps map[tensor.DType]uint64
		want func(tensor.DType, float64) float64
	}{
		{"aten::neg", nil, nil, plain(func(x float64) float64 { return -x })},
		{"aten::abs", nil, nil, plain(math.Abs)},
		{"aten::reciprocal", nil, nil, plain(func(x float64) float64 { return 1 / x })},
		{"aten::sqrt", nil, nil, plain(math.Sqrt)},
		{"aten::rsqrt", nil, libm, plain(func(x float64) float64 { return 1 / math.Sqrt(x) })},
		{"aten::sin", nil, circular, plain(math.Sin)},
		{"aten::cos", nil, circular, plain(math.Cos)},
		{"aten::exp", nil, libm, plain(math.Exp)},
		{"aten::log", nil, libm, plain(math.Log)},
		{"aten::tanh", nil, libm, plain(math.Tanh)},
		{"aten::hardsigmoid", nil, nil, func(d tensor.DType, x float64) float64 {
			return single(d, hardStep(d, x)*sixth)
		}},
		{"aten::hardswish", nil, nil, func(d tensor.DType, x float64) float64 {
			return single(d, single(d, x*hardStep(d, x))*sixth)
		}},
		{"aten::leaky_relu", []any{"negative_slope", 0.1}, nil, func(d tensor.DType, x float64) float64 {
			if x > 0 {
				return x
			}
			return single(d, x*single(d, 0.1))
		}},
		{"aten::hardtanh", []any{"min_val", 0.0, "max_val", 6.0}, nil, plain(func(x float64) float64 {
			return math.Min(math.Max(x, 0), 6)
		})},
		{"aten::clamp", []any{"min", int64(-1), "max", nil}, nil, plain(func(x float64) float64 { return math.Max(x, -1) })},
		{"aten::clamp", []any{"min", nil, "max", 0.0}, nil, plain(func(x float64) float64 { return math.Min(x, 0) })},
		{"aten::clamp", []any{"min", math.NaN(), "max", 1.0}, nil, plain(func(float64) float64 { return math.NaN() })},
		{"aten::clamp_min", []any{"min", 1e-5}, nil, func(d tensor.DType, x float64) float64 { return math.Max(x, single(d, 1e-5)) }},
		{"aten::clamp_max", []any{"max", 2.0}, nil, plain(func(x float64) float64 { return math.Min(x, 2) })},
		{"aten::rsub.Scalar", []any{"other", 0.1, "alpha", 1.7}, nil, func(d tensor.DType, x float64) float64 {
			return fused(d, -1.7, x, 0.1)
		}},
		{"aten::pow.Tensor_Scalar", []any{"exponent", int64(0)}, nil, plain(func(float64) float64 { return 1 })},
		{"aten::pow.Tensor_Scalar", []any{"exponent", int64(1)}, nil, plain(func(x float64) float64 { return x })},
		{"aten::pow.Tensor_Scalar", []any{"exponent", int64(-1)}, nil, plain(func(x float64) float64 { return 1 / x })},
		{"aten::pow.Tensor_Scalar", []any{"exponent", 0.5}, nil, plain(math.Sqrt)},
		{"aten::pow.Tensor_Scalar", []any{"exponent", -0.5}, libm, plain(func(x float64) float64 { return 1 / math.Sqrt(x) })},
		{"aten::pow.Tensor_Scalar", []any{"exponent", int64(2)}, nil, func(d tensor.DType, x float64) float64 { return element(d, x*x) }},
		{"aten::pow.Tensor_Scalar", []any{"exponent", int64(3)}, nil, func(d tensor.DType, x float64) float64 {
			return single(d, element(d, x*x)*x)
		}},
		{"aten::pow.Tensor_Scalar", []any{"exponent", int64(-2)}, nil, func(d tensor.DType, x float64) float64 {
			return single(d, 1/element(d, x*x))
		}},
		{"aten::pow.Tensor_Scalar", []any{"exponent", int64(5)}, libm, plain(func(x float64) float64 { return math.Pow(x, 5) })},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { testFunction(t, test.name, test.more, test.ulps, test.want) })
	}
}

// element rounds to a type as a store does.
func element(dtype tensor.DType, v float64) float64 {
	return decode(dtype, encode(dtype, single(dtype, v)))
}

// Both forms of gelu lose digits of small results to 1 + erf(x): they are compared with what float32 makes of the formula.
func TestGelu(t *testing.T) {
	for how, want := range map[string]func(float64) float64{
		"none": func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x*math.Sqrt2/2)) },
		"tanh": func(x float64) float64 { return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
	} {
		for _, dtype := range floatTypes {
			b := newBench(t)
			x, y := b.tensor(dtype, []int64{4001}, nil), b.tensor(dtype, []int64{4001}, nil)
			var values []float64
			for i := range 4001 {
				values = append(values, float64(i-2000)/200)
			}
			b.setFloats(x, values)
			b.run(operation("aten::gelu", args("self", x, "approximate", words(how)), results(y)))
			tolerance := map[tensor.DType]float64{tensor.Float32: 1e-6, tensor.BFloat16: 1. / 256, tensor.Float16: 1. / 2048, tensor.Float64: 1e-14}[dtype]
			for i, got := range b.floats(y) {
				in := b.floats(x)[i]
				if w := want(in); math.Abs(got-w) > tolerance*math.Max(1, math.Abs(w)) {
					t.Fatalf("%s %s(%g): %g, want %g", dtype, how, in, got, w)
				}
			}
		}
	}
	b := newBench(t)
	x := b.tensor(tensor.Float32, []int64{4}, nil)
	expectRefusal(t, b, operation("aten::gelu", args("self", x, "approximate", words("guess")), results(x)), "arguments[1]")
	expectRefusal(t, b, operation("aten::gelu", args("self", x, "approximate", nil), results(x)), "arguments[1]")
}

// A number to the power of a tensor.
func TestPowOfNumber(t *testing.T) {
	for _, dtype := range floatTypes {
		b := newBench(t)
		x, y := b.tensor(dtype, []int64{9}, nil), b.tensor(dtype, []int64{9}, nil)
		b.setFloats(x, []float64{0, 1, -1, 0.5, 0.25, -0.125, 0.0625, 0.75, 2})
		var expected []uint64
		base := element(dtype, 9.3)
		for _, v := range b.floats(x) {
			expected = append(expected, encode(dtype, math.Pow(base, v)))
		}
		b.run(operation("aten::pow.Scalar", args("self", 9.3, "exponent", x), results(y)))
		expectBits(t, dtype, b.bits(y), expected, libm[dtype])
	}
}

// What PyTorch rounds to the tensor's type first: in 16 bits this exponent is 3.
func TestPowRoundsExponent(t *testing.T) {
	b := newBench(t)
	x, y := b.tensor(tensor.BFloat16, []int64{4}, nil), b.tensor(tensor.BFloat16, []int64{4}, nil)
	commands, err := b.lower(operation("aten::pow.Tensor_Scalar", args("self", x, "exponent", 3.001), results(y)))
	if err != nil || describe(commands) != "[pow_3_bf16]" {
		t.Errorf("%s, %v", describe(commands), err)
	}
	for v, want := range map[float64]float64{3.0001: 3, 3.001: 3.001953125, 1. / 15: 0.066650390625, 1e-7: 0x1p-23, 70000: math.Inf(1), -0.1: -0.0999755859375} {
		if got := roundNumber(tensor.Float16, v); got != want {
			t.Errorf("%g in 16 bits is %g, want %g", v, got, want)
		}
	}
}

// Limits let a NaN through with all its bits, and so does the first of a pair.
func TestLimitsKeepNaN(t *testing.T) {
	for dtype, nans := range map[tensor.DType][]uint64{
		tensor.Float32:  {0x7f800001, 0xffc12345},
		tensor.BFloat16: {0x7f81, 0xffc1},
		tensor.Float16:  {0x7c01, 0xfe01},
		tensor.Float64:  {0x7ff0000000000001, 0xfff8000012345678},
	} {
		b := newBench(t)
		x, y, z := b.tensor(dtype, []int64{22}, nil), b.tensor(dtype, []int64{22}, nil), b.tensor(dtype, []int64{22}, nil)
		one := encode(dtype, 1)
		b.setBits(x, append(nans, one))
		b.setBits(y, []uint64{one, nans[0]})
		b.run(operation("aten::hardtanh", args("self", x, "min_val", 0.0, "max_val", 1.0), results(z)))
		expectExactly(t, b.bits(z), b.bits(x))
		for _, name := range []string{"aten::maximum", "aten::minimum"} {
			var want []uint64
			for i, v := range b.bits(x) {
				if v == one {
					v = b.bits(y)[i]
				}
				want = append(want, v)
			}
			b.run(operation(name, args("self", x, "other", y), results(z)))
			expectExactly(t, b.bits(z), want)
		}
	}
}

// expectExactly compares bits, those of NaNs too.
func expectExactly(t *testing.T, got, want []uint64) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("[%d] %#x, want %#x", i, got[i], want[i])
		}
	}
}
