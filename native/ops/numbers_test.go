package ops

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// encode rounds to a dtype, to nearest even, and gives the bits. It shares nothing with the kernels: the 16-bit types
// are found by comparing the two neighbours in float64, which holds both and their midpoint exactly.
func encode(dtype tensor.DType, v float64) uint64 {
	switch dtype {
	case tensor.Float64:
		return math.Float64bits(v)
	case tensor.Float32:
		return uint64(math.Float32bits(float32(v)))
	case tensor.BFloat16, tensor.Float16:
		return encode16(dtype, v)
	case tensor.Bool:
		if v != 0 {
			return 1
		}
		return 0
	case tensor.Uint8:
		return uint64(uint8(int64(v)))
	case tensor.Int32:
		return uint64(uint32(int32(v)))
	case tensor.Int64:
		return uint64(int64(v))
	}
	panic("no encoding of " + dtype.String())
}

func encode16(dtype tensor.DType, v float64) uint64 {
	if v != v {
		return 0x7fff
	}
	sign := uint64(0)
	if math.Signbit(v) {
		sign, v = 0x8000, -v
	}
	infinity := uint64(0x7f80)
	if dtype == tensor.Float16 {
		infinity = 0x7c00
	}
	if math.IsInf(v, 1) {
		return sign | infinity
	}
	low, high := uint64(0), infinity // low <= v; positive numbers are ordered like their bits
	for high-low > 1 {
		middle := (low + high) / 2
		if decode(dtype, middle) <= v {
			low = middle
		} else {
			high = middle
		}
	}
	top := decode(dtype, high)
	if high == infinity { // the number that would follow the largest
		top = 2*decode(dtype, low) - decode(dtype, low-1)
	}
	switch below, above := v-decode(dtype, low), top-v; {
	case below < above, below == above && low%2 == 0:
		return sign | low
	}
	return sign | high
}

// decode gives the number that the bits of a dtype stand for.
func decode(dtype tensor.DType, bits uint64) float64 {
	switch dtype {
	case tensor.Float64:
		return math.Float64frombits(bits)
	case tensor.Float32:
		return float64(math.Float32frombits(uint32(bits)))
	case tensor.BFloat16:
		return float64(math.Float32frombits(uint32(bits) << 16))
	case tensor.Float16:
		return decodeHalf(bits)
	case tensor.Bool, tensor.Uint8:
		return float64(uint8(bits))
	case tensor.Int32:
		return float64(int32(bits))
	case tensor.Int64:
		return float64(int64(bits))
	}
	panic("no decoding of " + dtype.String())
}

func decodeHalf(bits uint64) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&0x3ff)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		v = math.Inf(1)
		if fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	return math.Copysign(v, 1-2*float64(bits>>15&1))
}

func getBits(e []byte) uint64 {
	var b [8]byte
	copy(b[:], e)
	return binary.LittleEndian.Uint64(b[:])
}

func putBits(e []byte, bits uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(e, b[:])
}

// ulps is the distance of two numbers of a dtype in units in the last place; NaNs are equal to each other and infinitely
// far from everything else, and so are zeros of different sign from each other when exact bits are asked for (max 0).
func ulps(dtype tensor.DType, a, b uint64) uint64 {
	x, y := decode(dtype, a), decode(dtype, b)
	if x != x || y != y {
		if x != x && y != y {
			return 0
		}
		return math.MaxUint64
	}
	if a == b {
		return 0
	}
	sign := uint64(1) << (8*dtype.Size() - 1)
	rank := func(bits uint64) int64 {
		if bits&sign != 0 {
			return -int64(bits &^ sign)
		}
		return int64(bits)
	}
	d := rank(a) - rank(b)
	if d < 0 {
		d = -d
	}
	return max(uint64(d), 1)
}

// expectBits compares results with what they should be, within so many ULPs, and reports the first that differ.
func expectBits(t *testing.T, dtype tensor.DType, got, want []uint64, max uint64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	var differ []string
	count := 0
	for i := range got {
		if ulps(dtype, got[i], want[i]) > max {
			if count++; count <= 5 {
				differ = append(differ, fmt.Sprintf("[%d] %#x (%g), want %#x (%g)", i, got[i], decode(dtype, got[i]), want[i], decode(dtype, want[i])))
			}
		}
	}
	if count > 0 {
		t.Errorf("%d of %d elements differ: %v", count, len(got), differ)
	}
}

// edges are numbers at which arithmetic goes wrong: signed zeros, denormals of each type, limits, infinities, NaN.
func edges() []float64 {
	list := []float64{0, 1, 1.5, 0.1, 3, 0.333, 127, 1e-3, 255.5, 1e-41, 6e-8, 1e-38, 65504, 65520, 3e38, 1e30, 88.5, 104, 17,
		math.Inf(1)}
	for _, v := range list[:len(list):len(list)] {
		list = append(list, -v)
	}
	return append(list, math.NaN())
}

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		dtype tensor.DType
		v     float64
		want  uint64
	}{
		{tensor.BFloat16, 1, 0x3f80}, {tensor.BFloat16, 1.00390625, 0x3f80}, {tensor.BFloat16, 1.01171875, 0x3f82},
		{tensor.BFloat16, 3.4e38, 0x7f80}, {tensor.BFloat16, -1e-45, 0x8000}, {tensor.BFloat16, 3.39e38, 0x7f7f},
		{tensor.Float16, 65504, 0x7bff}, {tensor.Float16, 65519.9, 0x7bff}, {tensor.Float16, 65520, 0x7c00},
		{tensor.Float16, math.Ldexp(1, -24), 1}, {tensor.Float16, math.Ldexp(1, -25), 0}, {tensor.Float16, math.NaN(), 0x7fff},
		{tensor.Float32, 0.1, 0x3dcccccd}, {tensor.Bool, 0.5, 1},
	} {
		if got := encode(c.dtype, c.v); got != c.want {
			t.Errorf("%s %g: %#x, want %#x", c.dtype, c.v, got, c.want)
		}
	}
	for bits := range uint64(1 << 16) { // what a type holds comes back as it was
		for _, dtype := range []tensor.DType{tensor.BFloat16, tensor.Float16} {
			if v := decode(dtype, bits); v == v && encode(dtype, v) != bits {
				t.Fatalf("%s %#x: %g gives %#x", dtype, bits, v, encode(dtype, v))
			}
		}
	}
}
