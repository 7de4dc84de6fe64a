package compare

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"samebits/bridge/tensor"
)

// A reader sees one element of a tensor's bytes.
//
// key puts the numbers of the type in their order, one step from each to its neighbour: the distance of two keys is the
// distance in ULP. -0.0 and 0.0 are neighbours, not equal; NaNs lie beyond the infinities, ordered by their payload.
type reader struct {
	key func(b []byte, i int64) uint64
	num func(b []byte, i int64) float64
}

// ordered maps the bits of a float of the given width to a key: positive numbers above the middle, negative ones mirrored
// below it.
func ordered(bits uint64, width uint) uint64 {
	sign := uint64(1) << (width - 1)
	if bits&sign != 0 {
		return sign - 1 - bits&(sign-1)
	}
	return sign + bits
}

func signed(v int64) uint64 { return uint64(v) ^ 1<<63 }

func u16(b []byte, i int64) uint16 { return binary.LittleEndian.Uint16(b[2*i:]) }
func u32(b []byte, i int64) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
func u64(b []byte, i int64) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

var readers = map[tensor.DType]reader{
	tensor.Bool: {
		func(b []byte, i int64) uint64 { return uint64(b[i]) },
		func(b []byte, i int64) float64 { return float64(b[i]) }},
	tensor.Uint8: {
		func(b []byte, i int64) uint64 { return uint64(b[i]) },
		func(b []byte, i int64) float64 { return float64(b[i]) }},
	tensor.Int8: {
		func(b []byte, i int64) uint64 { return signed(int64(int8(b[i]))) },
		func(b []byte, i int64) float64 { return float64(int8(b[i])) }},
	tensor.Int16: {
		func(b []byte, i int64) uint64 { return signed(int64(int16(u16(b, i)))) },
		func(b []byte, i int64) float64 { return float64(int16(u16(b, i))) }},
	tensor.Int32: {
		func(b []byte, i int64) uint64 { return signed(int64(int32(u32(b, i)))) },
		func(b []byte, i int64) float64 { return float64(int32(u32(b, i))) }},
	tensor.Int64: {
		func(b []byte, i int64) uint64 { return signed(int64(u64(b, i))) },
		func(b []byte, i int64) float64 { return float64(int64(u64(b, i))) }},
	tensor.Float16: {
		func(b []byte, i int64) uint64 { return ordered(uint64(u16(b, i)), 16) },
		func(b []byte, i int64) float64 { return half(u16(b, i)) }},
	tensor.BFloat16: {
		func(b []byte, i int64) uint64 { return ordered(uint64(u16(b, i)), 16) },
		func(b []byte, i int64) float64 { return float64(math.Float32frombits(uint32(u16(b, i)) << 16)) }},
	tensor.Float32: {
		func(b []byte, i int64) uint64 { return ordered(uint64(u32(b, i)), 32) },
		func(b []byte, i int64) float64 { return float64(math.Float32frombits(u32(b, i))) }},
	tensor.Float64: {
		func(b []byte, i int64) uint64 { return ordered(u64(b, i), 64) },
		func(b []byte, i int64) float64 { return math.Float64frombits(u64(b, i)) }},
}

// half gives the number that a float16 stands for.
func half(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exponent, fraction := int(h>>10&31), float64(h&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// read finds the reader of a dtype and checks that data holds whole elements.
func read(d tensor.DType, data []byte) (reader, int64, error) {
	r, ok := readers[d]
	if !ok {
		return reader{}, 0, fmt.Errorf("compare: unknown dtype %v", d)
	}
	if int64(len(data))%d.Size() != 0 {
		return reader{}, 0, fmt.Errorf("compare: %d bytes are not whole elements of %v", len(data), d)
	}
	return r, int64(len(data)) / d.Size(), nil
}

// Text is the number that element i of a tensor's bytes stands for.
func Text(d tensor.DType, data []byte, i int64) string {
	r, n, err := read(d, data)
	switch {
	case err != nil || i >= n:
		return ""
	case d == tensor.Int64:
		return strconv.FormatInt(int64(u64(data, i)), 10)
	case d == tensor.Float32:
		return strconv.FormatFloat(r.num(data, i), 'g', -1, 32)
	}
	return strconv.FormatFloat(r.num(data, i), 'g', -1, 64)
}

// EqualNumbers reports whether two tensors hold the same bits but for NaNs, which count as equal.
func EqualNumbers(d tensor.DType, a, b []byte) bool {
	r := readers[d]
	return equal(d, a, b, func(i int64) bool { return r.key(a, i) == r.key(b, i) })
}

// EqualValues reports whether two tensors hold equal numbers: zeros of either sign are equal, and so are NaNs.
func EqualValues(d tensor.DType, a, b []byte) bool {
	r := readers[d]
	return equal(d, a, b, func(i int64) bool { return r.key(a, i) == r.key(b, i) || d.Float() && r.num(a, i) == r.num(b, i) })
}

func equal(d tensor.DType, a, b []byte, same func(i int64) bool) bool {
	r, n, err := read(d, a)
	if err != nil || len(a) != len(b) {
		return false
	}
	for i := range n {
		if !same(i) && !(math.IsNaN(r.num(a, i)) && math.IsNaN(r.num(b, i))) {
			return false
		}
	}
	return true
}
