//go:build linux && amd64

package host

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"samebits/bridge/tensor"
)

// The references of the tests compute in exactly the arithmetic that host.h and norm.cpp promise.

// encode rounds a value of the accumulator's type to an element of type d: to nearest even, every NaN to 0x7fff.
func encode(d tensor.DType, v float64, to []byte) {
	switch d {
	case tensor.Float64:
		binary.LittleEndian.PutUint64(to, math.Float64bits(v))
	case tensor.Float32:
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(v)))
	case tensor.BFloat16:
		u := math.Float32bits(float32(v))
		if v != v {
			u = 0x7fff0000
		} else {
			u += 0x7fff + u>>16&1
		}
		binary.LittleEndian.PutUint16(to, uint16(u>>16))
	case tensor.Float16:
		binary.LittleEndian.PutUint16(to, float16Bits(float32(v)))
	default:
		panic(d)
	}
}

func float16Bits(f float32) uint16 {
	sign := uint16(math.Float32bits(f) >> 16 & 0x8000)
	a := math.Abs(float64(f))
	switch {
	case f != f:
		return 0x7fff
	case a >= 65520:
		return sign | 0x7c00
	case a < 1.0/(1<<14): // subnormal or zero: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	}
	fraction, exponent := math.Frexp(a) // 0.5 <= fraction < 1
	mantissa := int(math.RoundToEven(fraction * (1 << 11)))
	return sign | uint16(mantissa-(1<<10)+(exponent+14)<<10)
}

func decode(d tensor.DType, from []byte) float64 {
	switch d {
	case tensor.Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(from))
	case tensor.Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(from)))
	case tensor.BFloat16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(from)) << 16))
	case tensor.Float16:
		h := binary.LittleEndian.Uint16(from)
		sign, exponent, mantissa := 1.0, int(h>>10&31), float64(h&0x3ff)
		if h&0x8000 != 0 {
			sign = -1
		}
		switch exponent {
		case 0:
			return sign * math.Ldexp(mantissa, -24)
		case 31:
			if mantissa != 0 {
				return math.NaN()
			}
			return sign * math.Inf(1)
		}
		return sign * math.Ldexp(1024+mantissa, exponent-25)
	}
	panic(d)
}

// blockSum adds k products as the matrix product does: a chain from zero for each block of at most 256, then the sum of
// the blocks in their order.
type blockSum struct {
	d              tensor.DType
	k, blocks      int64
	done, block    int64
	sum, ofEarlier float64
}

func newBlockSum(d tensor.DType, k int64) *blockSum {
	return &blockSum{d: d, k: k, blocks: (k + 255) / 256}
}

func (s *blockSum) add(a, b float64) {
	s.sum = fused(s.d, a, b, s.sum)
	if s.done++; s.done < s.k*(s.block+1)/s.blocks {
		return
	}
	if s.block > 0 {
		s.sum = fused(s.d, 1, s.sum, s.ofEarlier)
	}
	s.ofEarlier, s.sum = s.sum, 0
	s.block++
}

func (s *blockSum) value() float64 { return s.ofEarlier }

// fused is a*b + c rounded once to the accumulator's type: float64 for Float64, float32 else, whose values all three are.
func fused(d tensor.DType, a, b, c float64) float64 {
	if d == tensor.Float64 {
		return math.FMA(a, b, c)
	}
	// The product is exact. The sum is rounded to odd, so that rounding it again to float32 is right.
	p := a * b
	s := p + c
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return float64(float32(s))
	}
	z := s - p
	if e := (p - (s - z)) + (c - z); e != 0 {
		if u := math.Float64bits(s); u&1 == 0 {
			if (e > 0) == (s > 0) {
				s = math.Float64frombits(u + 1)
			} else {
				s = math.Float64frombits(u - 1)
			}
		}
	}
	return float64(float32(s))
}

// random fills n elements with values from -1 to 1.
func random(r *rand.Rand, d tensor.DType, n int64) []byte {
	data := make([]byte, n*d.Size())
	for i := range n {
		encode(d, float64(float32(r.Float64()*2-1)), data[i*d.Size():])
	}
	return data
}

// view is a tensor with its elements.
type view struct {
	data           []byte
	dtype          tensor.DType
	sizes, strides []int64
	offset         int64 // elements
}

func (v view) at(index ...int64) []byte {
	i := v.offset
	for k, x := range index {
		i += x * v.strides[k]
	}
	return v.data[i*v.dtype.Size():]
}

func (v view) get(index ...int64) float64 { return decode(v.dtype, v.at(index...)) }
