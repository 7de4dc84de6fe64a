package engine

import (
	"encoding/binary"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

func TestScale(t *testing.T) {
	for bits := range uint32(1 << 16) { // all exponents, with mantissas at the ends and in the middle
		for _, low := range []uint32{0, 1, 2, 3, 0x7fff, 0x8000, 0xffff} {
			x := bits<<16 | low
			f := math.Float32frombits(x)
			if f != f {
				continue
			}
			var data [4]byte
			for _, up := range []bool{true, false} {
				want := f * 0.5
				if up {
					want = f * 2
				}
				binary.LittleEndian.PutUint32(data[:], x)
				Scale(tensor.Float32, data[:], up)
				if got := binary.LittleEndian.Uint32(data[:]); got != math.Float32bits(want) {
					t.Fatalf("%#x (%g), up %t: %#x instead of %#x", x, f, up, got, math.Float32bits(want))
				}
			}
		}
	}
	for _, c := range []struct {
		dtype      tensor.DType
		from, want uint64
		up         bool
	}{
		{tensor.Float16, 0x3c00, 0x3800, false}, {tensor.Float16, 0x7bff, 0x7c00, true}, {tensor.Float16, 0x0003, 0x0002, false},
		{tensor.Float16, 0x0001, 0x0000, false}, {tensor.Float16, 0x07ff, 0x0400, false}, {tensor.BFloat16, 0xbf80, 0xbf00, false},
		{tensor.BFloat16, 0x0080, 0x0040, false}, {tensor.Float64, math.Float64bits(-3), math.Float64bits(-6), true},
		{tensor.Int64, 7, 7, true},
	} {
		data := binary.LittleEndian.AppendUint64(nil, c.from)
		Scale(c.dtype, data[:c.dtype.Size()], c.up)
		if got := binary.LittleEndian.Uint64(data); got != c.want {
			t.Errorf("%s %#x, up %t: %#x instead of %#x", c.dtype, c.from, c.up, got, c.want)
		}
	}
}
