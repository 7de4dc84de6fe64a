package ops

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"samebits/bridge/tensor"
)

// floatFormat says how a floating-point type lies in its bits.
type floatFormat struct{ mantissa, bias, width uint }

var floatFormats = map[tensor.DType]floatFormat{
	tensor.Float32: {23, 127, 32}, tensor.BFloat16: {7, 127, 16}, tensor.Float16: {10, 15, 16},
}

// mixed is splitmix64's hash of seed * 2^32 + i.
func mixed(seed, i uint64) uint64 {
	z := seed<<32 + i + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill gives the bits of element i of a buffer; goldens/ops/README.md describes it.
func fill(dtype tensor.DType, kind string, seed, i uint64) (uint64, error) {
	switch dtype {
	case tensor.Int64, tensor.Int32, tensor.Uint8:
		return fillInteger(kind, mixed(seed, i)>>32)
	case tensor.Bool:
		v, err := fillInteger(kind, mixed(seed, i)>>32)
		return min(v, 1), err
	}
	f, ok := floatFormats[dtype]
	if !ok {
		return 0, fmt.Errorf("no fills of %s", dtype)
	}
	h := mixed(seed, i)
	number := func(span, low, sign uint64) uint64 {
		exponent := h>>32%span + uint64(f.bias) - low
		return sign<<(f.width-1) | exponent<<f.mantissa | h&(1<<f.mantissa-1)
	}
	switch kind {
	case "spread":
		return number(7, 3, h>>63), nil
	case "wide":
		return number(25, 12, h>>63), nil
	case "unit":
		return number(7, 6, h>>63), nil
	case "positive":
		return number(7, 3, 0), nil
	case "ties":
		return number(3, 1, h>>63) &^ (1<<(f.mantissa-2) - 1), nil
	case "bits":
		return h & (1<<f.width - 1), nil
	case "quarters":
		return []uint64{0x3f7fc000, 0x407ff000, 0x3e7f0000, 0x417ffc00}[i%4], nil
	case "edges", "finite":
		table := edgeBits(f)
		if kind == "finite" {
			table = table[:len(table)-4]
		}
		for ; seed > 0; seed-- {
			i /= uint64(len(table))
		}
		return table[i%uint64(len(table))], nil
	}
	return 0, fmt.Errorf("no fill is called %q", kind)
}

// fillInteger gives an integer from 32 bits of the hash; a negative one is stored in as many bytes as the type has.
func fillInteger(kind string, h uint64) (uint64, error) {
	if kind == "small" {
		return h % 7, nil
	}
	name, text, _ := strings.Cut(kind, " ")
	bound, err := strconv.ParseUint(text, 10, 32)
	switch {
	case err != nil || bound == 0:
	case name == "below":
		return h % bound, nil
	case name == "around":
		return h%(2*bound) - bound, nil
	}
	return 0, fmt.Errorf("no fill of integers is called %q", kind)
}

func edgeBits(f floatFormat) []uint64 {
	one, half := uint64(f.bias)<<f.mantissa, uint64(1)<<(f.mantissa-1)
	infinity := (uint64(1)<<(f.width-1-f.mantissa) - 1) << f.mantissa
	var table []uint64
	for _, bits := range []uint64{0, 1, 1<<f.mantissa - 1, 1 << f.mantissa, one, one + 1, one | half,
		uint64(f.bias+1)<<f.mantissa | half, infinity - 1, infinity, infinity | half} {
		table = append(table, bits, bits|1<<(f.width-1))
	}
	return table
}

// The same numbers are in the tests of samebits_reference.fills.
func TestFills(t *testing.T) {
	tests := []struct {
		dtype tensor.DType
		kind  string
		seed  uint64
		want  []uint64
	}{
		{tensor.Float32, "spread", 1, []uint64{0xc0820138, 0x3f59956f, 0xc0507022, 0xc03caf9b}},
		{tensor.BFloat16, "wide", 2, []uint64{0xbbb2, 0xc2c9, 0xc0ff, 0xbfa7}},
		{tensor.Float32, "unit", 1, []uint64{0xbf020138, 0x3dd9956f, 0xbed07022, 0xbebcaf9b}},
		{tensor.Float16, "positive", 3, []uint64{0x45fb, 0x3d82, 0x42dd, 0x4578}},
		{tensor.Float32, "bits", 4, []uint64{0x237557cf, 0x94418f03, 0x8d5a1dd7, 0xa1e35b7d}},
		{tensor.Float16, "edges", 1, []uint64{0x0, 0x0, 0x0, 0x0}},
		{tensor.Float32, "finite", 0, []uint64{0x0, 0x80000000, 0x1, 0x80000001}},
		{tensor.Int64, "small", 5, []uint64{1, 3, 1, 5}},
		{tensor.Int64, "below 300", 5, []uint64{104, 243, 267, 143}},
		{tensor.Int32, "around 40", 5, []uint64{4, 1<<64 - 17, 1<<64 - 33, 23}},
		{tensor.Float32, "ties", 7, []uint64{0xbf800000, 0x3f400000, 0xc0400000, 0xbfc00000}},
		{tensor.Float32, "quarters", 9, []uint64{0x3f7fc000, 0x407ff000, 0x3e7f0000, 0x417ffc00}},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s/%s", test.dtype, test.kind), func(t *testing.T) {
			for i, want := range test.want {
				got, err := fill(test.dtype, test.kind, test.seed, uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("element %d is %#x, wanted %#x", i, got, want)
				}
			}
		})
	}
}
