package engine

import (
	"encoding/binary"

	"samebits/bridge/tensor"
)

// Scale doubles or halves contiguous floats where they lie, with the bits that a multiplication gives: exact, unless a number
// runs over or becomes too small, where it rounds to even. Other types stay as they are.
func Scale(dtype tensor.DType, data []byte, up bool) {
	var mantissa, bits uint
	switch dtype {
	case tensor.Float16:
		mantissa, bits = 10, 16
	case tensor.BFloat16:
		mantissa, bits = 7, 16
	case tensor.Float32:
		mantissa, bits = 23, 32
	case tensor.Float64:
		mantissa, bits = 52, 64
	default:
		return
	}
	step := int(bits / 8)
	for ; len(data) >= step; data = data[step:] {
		switch bits {
		case 16:
			binary.LittleEndian.PutUint16(data, uint16(scaled(uint64(binary.LittleEndian.Uint16(data)), mantissa, bits, up)))
		case 32:
			binary.LittleEndian.PutUint32(data, uint32(scaled(uint64(binary.LittleEndian.Uint32(data)), mantissa, bits, up)))
		case 64:
			binary.LittleEndian.PutUint64(data, scaled(binary.LittleEndian.Uint64(data), mantissa, bits, up))
		}
	}
}

func scaled(x uint64, mantissa, bits uint, up bool) uint64 {
	sign := x >> (bits - 1) << (bits - 1)
	size, one := x^sign, uint64(1)<<mantissa // one is the lowest bit of the exponent
	top := (uint64(1)<<(bits-1-mantissa) - 1) << mantissa
	switch {
	case size >= top: // infinite, or no number
		return x
	case up && size < one:
		size <<= 1
	case up:
		if size += one; size > top {
			size = top
		}
	case size >= 2*one:
		size -= one
	default: // it is below the normal numbers, or will be
		size = size>>1 + size&(size>>1)&1
	}
	return sign | size
}
