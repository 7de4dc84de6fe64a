//go:build linux && amd64

package host

import (
	"math"
	"math/rand/v2"
	"testing"

	"samebits/bridge/tensor"
)

// TestWiden tries all bf16 and fp16 values.
func TestWiden(t *testing.T) {
	const n = 1 << 16
	l := newLauncher(t)
	x := make([]uint16, n)
	for i := range x {
		x[i] = uint16(i)
	}
	bf, half := place(l, make([]uint32, n)), place(l, make([]uint32, n))
	l.must("numbers/widen", line(3), line(64), 0, bf, half, place(l, x), int64(n))
	gotBF, gotHalf := fetch[uint32](l, bf, n), fetch[uint32](l, half, n)
	raw := make([]byte, 2)
	for i := range x {
		raw[0], raw[1] = byte(i), byte(i>>8)
		if want := uint32(i) << 16; gotBF[i] != want {
			t.Fatalf("bf16 %#04x is %#08x, wanted %#08x", i, gotBF[i], want)
		}
		want := math.Float32bits(float32(decode(tensor.Float16, raw)))
		if i&0x7c00 == 0x7c00 && i&0x3ff != 0 { // every NaN becomes the same, as on an H200
			want = 0x7fffffff
		}
		if gotHalf[i] != want {
			t.Fatalf("fp16 %#04x is %#08x, wanted %#08x", i, gotHalf[i], want)
		}
	}
}

// interesting are floats around every rounding point of bf16 and fp16, special values, and random bits.
func interesting() []float32 {
	var out []float32
	for high := range uint32(1 << 16) { // every bf16 and its neighbours; every fp16 lies among them
		for _, low := range []uint32{0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xf000, 0xffff} {
			out = append(out, math.Float32frombits(high<<16|low))
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1 << 20 {
		out = append(out, math.Float32frombits(r.Uint32()))
	}
	return out
}

func TestNarrow(t *testing.T) {
	l := newLauncher(t)
	x := interesting()
	n := len(x)
	bf, half := place(l, make([]uint16, n)), place(l, make([]uint16, n))
	l.must("numbers/narrow", line(7), line(64), 0, bf, half, place(l, x), int64(n))
	gotBF, gotHalf := fetch[uint16](l, bf, n), fetch[uint16](l, half, n)
	raw := make([]byte, 2)
	for i, v := range x {
		encode(tensor.BFloat16, float64(v), raw)
		if want := uint16(raw[0]) | uint16(raw[1])<<8; gotBF[i] != want {
			t.Fatalf("%v (%#08x) is bf16 %#04x, wanted %#04x", v, math.Float32bits(v), gotBF[i], want)
		}
		if want := float16Bits(v); gotHalf[i] != want {
			t.Fatalf("%v (%#08x) is fp16 %#04x, wanted %#04x", v, math.Float32bits(v), gotHalf[i], want)
		}
	}
}

func TestPairs(t *testing.T) {
	l := newLauncher(t)
	special := []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, 1.5, -2.25, 3e38, -3e38, 1e-45, -1e-45, 1e-38, 7,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0xffc12345), 0.1, 1.0 / 3,
	}
	var a, b []float32
	for _, x := range special {
		for _, y := range special {
			a, b = append(a, x), append(b, y)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		a, b = append(a, float32(r.NormFloat64())), append(b, float32(r.NormFloat64()))
	}
	n := len(a)
	const functions = 14
	y := place(l, make([]float32, functions*n))
	l.must("numbers/pairs", line(1), line(32), 0, y, place(l, a), place(l, b), int64(n))
	got := fetch[float32](l, y, functions*n)
	f := func(v float64) float32 { return float32(v) }
	names := [functions]string{"fminf", "fmaxf", "min", "max", "fmin", "fmax", "div", "a*b+a", "fmaf", "__fmaf_rn", "sqrt", "rcp", "round bf16", "round fp16"}
	raw := make([]byte, 2)
	rounded := func(d tensor.DType, v float32) float32 {
		encode(d, float64(v), raw)
		return float32(decode(d, raw))
	}
	for i := range n {
		x, z := float64(a[i]), float64(b[i])
		low, high := minimum(a[i], b[i]), maximum(a[i], b[i])
		product := a[i] * b[i]
		want := [functions]float32{
			low, high, low, high, low, high, a[i] / b[i], product + a[i], f(fused(tensor.Float32, x, z, x)), f(fused(tensor.Float32, x, z, -z)),
			f(math.Sqrt(x)), 1 / a[i], rounded(tensor.BFloat16, a[i]), rounded(tensor.Float16, a[i]),
		}
		for k, w := range want {
			if g := got[k*n+i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				t.Errorf("%s(%v, %v) is %v (%#08x), wanted %v (%#08x)", names[k], a[i], b[i], g, math.Float32bits(g), w, math.Float32bits(w))
			}
		}
		// Two NaNs give the canonical one.
		for k := range 4 {
			if a[i] != a[i] && b[i] != b[i] && math.Float32bits(got[k*n+i]) != 0x7fffffff {
				t.Errorf("%s of two NaNs is %#08x", names[k], math.Float32bits(got[k*n+i]))
			}
		}
	}
}

// minimum and maximum are CUDA's: a NaN loses, and -0 is less than +0.
func minimum(a, b float32) float32 {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return min(a, b)
}

func maximum(a, b float32) float32 {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return max(a, b)
}

func TestToIntegers(t *testing.T) {
	l := newLauncher(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := []struct {
		x    float32
		want [8]int64 // int rn, rz, rd, ru; uint rn; ll rn; int rn by double; ull rz
	}{
		{2.5, [8]int64{2, 2, 2, 3, 2, 2, 2, 2}},
		{-2.5, [8]int64{-2, -2, -3, -2, 0, -2, -2, 0}},
		{3.5, [8]int64{4, 3, 3, 4, 4, 4, 4, 3}},
		{-0.25, [8]int64{0, 0, -1, 0, 0, 0, 0, 0}},
		{3e9, [8]int64{1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 3e9, 3e9, 1<<31 - 1, 3e9}},
		{-3e9, [8]int64{-1 << 31, -1 << 31, -1 << 31, -1 << 31, 0, -3e9, -1 << 31, 0}},
		{inf, [8]int64{1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1<<32 - 1, math.MaxInt64, 1<<31 - 1, -1}},
		{-inf, [8]int64{-1 << 31, -1 << 31, -1 << 31, -1 << 31, 0, math.MinInt64, -1 << 31, 0}},
		{nan, [8]int64{0, 0, 0, 0, 0, math.MinInt64, -1 << 31, math.MinInt64}},
	}
	x := make([]float32, len(cases))
	for i, c := range cases {
		x[i] = c.x
	}
	n := len(cases)
	y := place(l, make([]int64, 8*n))
	l.must("numbers/integers", line(1), line(1), 0, y, place(l, x), int64(n))
	got := fetch[int64](l, y, 8*n)
	for i, c := range cases {
		for k, want := range c.want {
			if got[k*n+i] != want {
				t.Errorf("%v by conversion %d is %d, wanted %d", c.x, k, got[k*n+i], want)
			}
		}
	}
}

// TestFunctions bounds the error of functions whose bits no standard fixes.
func TestFunctions(t *testing.T) {
	l := newLauncher(t)
	var x []float32
	r := rand.New(rand.NewPCG(5, 6))
	for range 200_000 {
		x = append(x, float32(r.NormFloat64()*10))
	}
	x = append(x, 0, 1, -1, 88.7, -87.3, -103, 1e-30, -1e-30)
	n := len(x)
	functions := []struct {
		name string
		f    func(float64) float64
		ulps float64
	}{
		{"expf", math.Exp, 1.5}, {"tanhf", math.Tanh, 2.5}, {"erff", math.Erf, 1.5},
		{"logf", func(v float64) float64 { return math.Log(math.Abs(v)) }, 1.5},
		{"rsqrtf", func(v float64) float64 { return 1 / math.Sqrt(math.Abs(v)) }, 1.5},
		{"log1pf", func(v float64) float64 { return math.Log1p(math.Abs(v)) }, 1.5},
		{"powf", func(v float64) float64 { return math.Pow(math.Abs(v), float64(float32(0.3))) }, 1.5},
		{"sinf", math.Sin, 1.5},
	}
	y := place(l, make([]float32, len(functions)*n))
	l.must("numbers/functions", line(2), line(32), 0, y, place(l, x), int64(n))
	got := fetch[float32](l, y, len(functions)*n)
	for k, fn := range functions {
		worst, at := 0.0, float32(0)
		for i, v := range x {
			want := fn.f(float64(v))
			ulp := math.Max(math.Ldexp(1, math.Ilogb(want)-23), math.Ldexp(1, -149))
			if math.IsInf(want, 0) || want == 0 {
				if float64(got[k*n+i]) != want {
					t.Errorf("%s(%v) is %v, wanted %v", fn.name, v, got[k*n+i], want)
				}
				continue
			}
			if e := math.Abs(float64(got[k*n+i])-want) / ulp; e > worst {
				worst, at = e, v
			}
		}
		if worst > fn.ulps {
			t.Errorf("%s(%v) is wrong by %.2f ULP, more than %.1f", fn.name, at, worst, fn.ulps)
		}
	}
	for _, c := range []struct{ x, want float32 }{
		{float32(math.Inf(1)), float32(math.Inf(1))}, {float32(math.Inf(-1)), 0}, {1000, float32(math.Inf(1))}, {-1000, 0},
	} {
		one := place(l, make([]float32, 8))
		l.must("numbers/functions", line(1), line(1), 0, one, place(l, []float32{c.x}), int64(1))
		if v := fetch[float32](l, one, 1)[0]; v != c.want {
			t.Errorf("expf(%v) is %v, wanted %v", c.x, v, c.want)
		}
	}
}

func TestDoubles(t *testing.T) {
	l := newLauncher(t)
	x := []float64{0, -0.5, 3, 1e-300, -7.25, 20}
	y := place(l, make([]float64, 2*len(x)))
	l.must("numbers/doubles", line(1), line(32), 0, y, place(l, x), int64(len(x)))
	got := fetch[float64](l, y, 2*len(x))
	for i, v := range x {
		want := math.FMA(v, 3, math.Exp(v)) + 1/math.Sqrt(math.Abs(v)+1)
		if math.Abs(got[i]-want) > 1e-14*math.Abs(want) || got[len(x)+i] != v {
			t.Errorf("%v gives %v and %v, wanted %v and itself", v, got[i], got[len(x)+i], want)
		}
	}
}
