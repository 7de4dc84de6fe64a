package compare

import (
	"encoding/binary"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

func f32(bits ...uint32) []byte {
	var b []byte
	for _, x := range bits {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func f64(values ...float64) []byte {
	var b []byte
	for _, x := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func b16(bits ...uint16) []byte {
	var b []byte
	for _, x := range bits {
		b = binary.LittleEndian.AppendUint16(b, x)
	}
	return b
}

func TestBits(t *testing.T) {
	one := math.Float32bits(1)
	huge := f64(math.MaxFloat64)
	for _, c := range []struct {
		name string
		d    tensor.DType
		a, b []byte
		want Figures
	}{
		{"same", tensor.Float32, f32(one, 0), f32(one, 0), Figures{Elements: 2, FirstIndex: -1}},
		{"nothing", tensor.Float32, nil, nil, Figures{FirstIndex: -1}},
		{"negative zero is one step away", tensor.Float32, f32(one, 0), f32(one, 1<<31),
			Figures{Elements: 2, Different: 1, FirstIndex: 1, MaxULP: 1, MeanULP: 1}},
		{"neighbours", tensor.Float32, f32(one, one), f32(one+1, one+3),
			Figures{Elements: 2, Different: 2, FirstIndex: 0, MaxULP: 3, MeanULP: 2, MaxAbs: 3 * math.Ldexp(1, -23)}},
		{"across zero", tensor.Float32, f32(2), f32(1<<31 | 1),
			Figures{Elements: 1, Different: 1, FirstIndex: 0, MaxULP: 4, MeanULP: 4, MaxAbs: 3 * math.Ldexp(1, -149)}},
		{"same NaN", tensor.Float32, f32(0x7fc00000), f32(0x7fc00000), Figures{Elements: 1, FirstIndex: -1}},
		{"NaN payloads count", tensor.Float32, f32(0x7fc00000), f32(0x7fc00001),
			Figures{Elements: 1, Different: 1, FirstIndex: 0, NaN: 1}},
		{"NaN against a number", tensor.Float32, f32(0xffffffff, one), f32(one, one+1),
			Figures{Elements: 2, Different: 2, FirstIndex: 0, NaN: 1, MaxULP: 1, MeanULP: 1, MaxAbs: math.Ldexp(1, -23)}},
		{"infinity is one step beyond the largest", tensor.Float32, f32(0x7f800000), f32(0x7f7fffff),
			Figures{Elements: 1, Different: 1, FirstIndex: 0, MaxULP: 1, MeanULP: 1}},
		{"bfloat16", tensor.BFloat16, b16(0x3f80, 0x3f80), b16(0x3f80, 0x3f82),
			Figures{Elements: 2, Different: 1, FirstIndex: 1, MaxULP: 2, MeanULP: 2, MaxAbs: math.Ldexp(1, -6)}},
		{"float16 subnormal", tensor.Float16, b16(1), b16(0x8001),
			Figures{Elements: 1, Different: 1, FirstIndex: 0, MaxULP: 3, MeanULP: 3, MaxAbs: math.Ldexp(1, -23)}},
		{"float64 ends", tensor.Float64, huge, f64(-math.MaxFloat64),
			Figures{Elements: 1, Different: 1, FirstIndex: 0, MaxULP: 2*0x7fefffffffffffff + 1,
				MeanULP: float64(uint64(2*0x7fefffffffffffff + 1))}},
		{"int64", tensor.Int64, f64(math.Float64frombits(5)), f64(math.Float64frombits(math.MaxUint64)),
			Figures{Elements: 1, Different: 1, FirstIndex: 0, MaxULP: 6, MeanULP: 6, MaxAbs: 6}},
		{"int8", tensor.Int8, []byte{0x80}, []byte{0x7f},
			Figures{Elements: 1, Different: 1, FirstIndex: 0, MaxULP: 255, MeanULP: 255, MaxAbs: 255}},
		{"bool", tensor.Bool, []byte{0, 1, 1}, []byte{0, 1, 0},
			Figures{Elements: 3, Different: 1, FirstIndex: 2, MaxULP: 1, MeanULP: 1, MaxAbs: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Bits(c.d, c.a, c.b)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			back, _ := Bits(c.d, c.b, c.a)
			if back != got {
				t.Errorf("the other way round: %+v", back)
			}
		})
	}
}

func TestBitsRefuses(t *testing.T) {
	for name, f := range map[string]func() error{
		"lengths":  func() error { _, err := Bits(tensor.Float32, make([]byte, 4), make([]byte, 8)); return err },
		"fraction": func() error { _, err := Bits(tensor.Float32, make([]byte, 3), make([]byte, 3)); return err },
		"dtype":    func() error { _, err := Bits(tensor.Invalid, nil, nil); return err },
		"shapes": func() error {
			_, err := Against(Typed{tensor.Float64, f64(1, 2)}, Typed{tensor.Float64, f64(1)})
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: math.Ldexp(1, -24), 0x0400: math.Ldexp(1, -14), 0xfc00: math.Inf(-1),
	} {
		if got := half(bits); got != want {
			t.Errorf("%#04x: got %v, want %v", bits, got, want)
		}
	}
	if !math.IsNaN(half(0x7e00)) {
		t.Error("0x7e00 is no NaN")
	}
}

func TestAgainst(t *testing.T) {
	for _, c := range []struct {
		name       string
		exact, got Typed
		want       Error
	}{
		{"equal", Typed{tensor.Float64, f64(1, -4)}, Typed{tensor.Float64, f64(1, -4)}, Error{}},
		{"relative to the largest", Typed{tensor.Float64, f64(1, -4)}, Typed{tensor.Float64, f64(1.5, -4)}, Error{0.125, 0.0625, 0}},
		{"another dtype", Typed{tensor.Float64, f64(1)}, Typed{tensor.Float32, f32(math.Float32bits(1.5))}, Error{0.5, 0.5, 0}},
		{"all zero", Typed{tensor.Float64, f64(0, 0)}, Typed{tensor.Float64, f64(0, 2)}, Error{2, 1, 0}},
		{"same non-finites", Typed{tensor.Float64, f64(math.NaN(), math.Inf(1), 1)},
			Typed{tensor.Float64, f64(math.NaN(), math.Inf(1), 1)}, Error{}},
		{"a new NaN", Typed{tensor.Float64, f64(1, 1)}, Typed{tensor.Float64, f64(1, math.NaN())}, Error{0, 0, 1}},
		{"another infinity", Typed{tensor.Float64, f64(math.Inf(1))}, Typed{tensor.Float64, f64(math.Inf(-1))}, Error{0, 0, 1}},
		{"a new negative infinity", Typed{tensor.Float64, f64(1, 1)}, Typed{tensor.Float64, f64(1, math.Inf(-1))}, Error{0, 0, 1}},
		{"no infinity is the largest", Typed{tensor.Float64, f64(math.Inf(-1), 2)}, Typed{tensor.Float64, f64(math.Inf(-1), 3)}, Error{0.5, 0.25, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Against(c.exact, c.got)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// Half the distance of 1 to the next number.
func TestRoundoff(t *testing.T) {
	for d, want := range map[tensor.DType]float64{tensor.Float16: 1.0 / 2048, tensor.BFloat16: 1.0 / 256,
		tensor.Float32: float64(math.Nextafter32(1, 2)-1) / 2, tensor.Float64: (math.Nextafter(1, 2) - 1) / 2, tensor.Int64: 0, tensor.Bool: 0} {
		if got := Roundoff(d); got != want {
			t.Errorf("%v: %v instead of %v", d, got, want)
		}
	}
}

func TestFigures(t *testing.T) {
	for want, f := range map[string]Figures{
		"all 3 elements have the same bits": {Elements: 3, FirstIndex: -1},
		"2 of 3 elements differ, first at 1, by at most 4 ULP (mean 2.5), in value by at most 0.5":                          {Elements: 3, Different: 2, FirstIndex: 1, MaxULP: 4, MeanULP: 2.5, MaxAbs: 0.5},
		"1 of 3 elements differ, first at 0, by at most 0 ULP (mean 0), in value by at most 0; 1 of them are NaN on a side": {Elements: 3, Different: 1, NaN: 1},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

func TestWithin(t *testing.T) {
	floor := Roundoff(tensor.Float32)
	for _, c := range []struct {
		name    string
		e, base Error
		want    bool
	}{
		{"as good", Error{1e-6, 1e-7, 0}, Error{1e-6, 1e-7, 0}, true},
		{"four times", Error{4e-6, 4e-7, 0}, Error{1e-6, 1e-7, 0}, true},
		{"more at the worst element", Error{4.1e-6, 1e-7, 0}, Error{1e-6, 1e-7, 0}, false},
		{"more on average", Error{1e-6, 4.1e-7, 0}, Error{1e-6, 1e-7, 0}, false},
		{"both exact", Error{}, Error{}, true},
		{"a rounding where the base has none", Error{floor, floor, 0}, Error{}, true},
		{"much where the base has none", Error{1e-4, 1e-9, 0}, Error{}, false},
		{"a lost number", Error{Lost: 1}, Error{Max: 1, Mean: 1}, false},
		{"lost by both", Error{Lost: 1}, Error{Lost: 1}, true},
	} {
		if got := c.e.Within(c.base, 4, floor); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestEqualUpTo(t *testing.T) {
	one, nan, other := math.Float32bits(1), uint32(0x7fc00000), uint32(0xffc00001)
	for _, c := range []struct {
		name            string
		a, b            []byte
		numbers, values bool
	}{
		{"the same", f32(one, nan), f32(one, nan), true, true},
		{"another NaN", f32(one, nan), f32(one, other), true, true},
		{"another zero", f32(0), f32(1 << 31), false, true},
		{"another number", f32(one, nan), f32(one+1, nan), false, false},
		{"a NaN for a number", f32(one), f32(nan), false, false},
		{"another length", f32(one), f32(one, one), false, false},
	} {
		if n, v := EqualNumbers(tensor.Float32, c.a, c.b), EqualValues(tensor.Float32, c.a, c.b); n != c.numbers || v != c.values {
			t.Errorf("%s: numbers %v, values %v", c.name, n, v)
		}
	}
	if EqualValues(tensor.Int64, f64(math.Float64frombits(1<<62)), f64(math.Float64frombits(1<<62+1))) {
		t.Error("whole numbers are compared as floats")
	}
}

func TestText(t *testing.T) {
	for want, got := range map[string]string{
		"0.1": Text(tensor.Float32, f32(math.Float32bits(0.1)), 0), "-5": Text(tensor.Int64, f64(math.Float64frombits(^uint64(4))), 0),
		"9007199254740993": Text(tensor.Int64, f64(math.Float64frombits(1<<53+1)), 0), // no float64 is this number
		"NaN":              Text(tensor.BFloat16, b16(0x3f80, 0x7fc1), 1), "-0": Text(tensor.Float16, b16(0x8000), 0), "": Text(tensor.Float32, nil, 0),
	} {
		if got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}
