// Package values makes the contents that operations are compared on: ordinary numbers, and those at which arithmetic goes
// wrong. Everything is made from a counter, so every machine makes the same bits, and any part of a tensor can be made
// by itself.
package values

import (
	"encoding/binary"
	"math"
	"slices"

	"samebits/bridge/tensor"
)

// Kind says what stands in a tensor.
type Kind string

const (
	// Ordinary numbers have magnitudes from 1/8 to 16, both signs, and random mantissas.
	Ordinary Kind = "ordinary"
	// Edges are signed zeros, denormals, infinities, NaNs with payloads, ties of rounding, halves and whole numbers, and
	// magnitudes up to the largest, among a few ordinary numbers.
	Edges Kind = "edges"
	// Sparse has one edge in 512 ordinary numbers: what sums many elements still gives numbers.
	Sparse Kind = "sparse"
)

// Kinds lists all, in the order in which they are used.
func Kinds() []Kind { return []Kind{Ordinary, Edges, Sparse} }

// sparseness is a power of two.
const sparseness = 512

const gamma = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Seed makes a seed of one tensor from that of a whole run.
func Seed(run uint64, name string) uint64 {
	s := mix(run + gamma)
	for _, c := range []byte(name) {
		s = mix(s ^ uint64(c)*gamma)
	}
	return s
}

// Fill writes elements from number first on over dst, which holds whole elements of dtype d.
func Fill(kind Kind, d tensor.DType, domain Domain, seed uint64, first int64, dst []byte) {
	draw := drawer(kind, d, domain)
	size := int(d.Size())
	state := seed + uint64(first)*gamma
	switch size {
	case 1:
		for i := range dst {
			state += gamma
			dst[i] = byte(draw(mix(state)))
		}
	case 2:
		for i := 0; i < len(dst); i += 2 {
			state += gamma
			binary.LittleEndian.PutUint16(dst[i:], uint16(draw(mix(state))))
		}
	case 4:
		for i := 0; i < len(dst); i += 4 {
			state += gamma
			binary.LittleEndian.PutUint32(dst[i:], uint32(draw(mix(state))))
		}
	case 8:
		for i := 0; i < len(dst); i += 8 {
			state += gamma
			binary.LittleEndian.PutUint64(dst[i:], draw(mix(state)))
		}
	}
}

// drawer gives what turns a random number into the bits of an element.
func drawer(kind Kind, d tensor.DType, domain Domain) func(h uint64) uint64 {
	switch {
	case d == tensor.Bool:
		return func(h uint64) uint64 { return h >> 63 }
	case !d.Float():
		return wholeDrawer(kind, d, domain)
	case domain.High > domain.Low:
		return rangeDrawer(kind, formats[d], domain)
	}
	f := formats[d]
	edge := edgeDrawer(f)
	if domain.NoNaN {
		all := edge
		edge = func(h uint64) uint64 {
			if bits := all(h); bits&^f.sign() <= f.infinity() {
				return bits
			}
			return f.signed(f.infinity(), h)
		}
	}
	ordinary := f.spread
	if domain.Positive {
		ordinary = func(h uint64) uint64 { return f.spread(h) &^ f.sign() }
	}
	switch kind {
	case Edges:
		return edge
	case Sparse:
		return func(h uint64) uint64 {
			if h>>32%sparseness == 0 {
				return edge(mix(h))
			}
			return ordinary(h)
		}
	}
	return ordinary
}

// format is how a floating-point type is laid out.
type format struct{ mantissa, bias, width uint64 }

var formats = map[tensor.DType]format{
	tensor.Float16: {10, 15, 16}, tensor.BFloat16: {7, 127, 16}, tensor.Float32: {23, 127, 32}, tensor.Float64: {52, 1023, 64},
}

func (f format) sign() uint64     { return 1 << (f.width - 1) }
func (f format) fraction() uint64 { return 1<<f.mantissa - 1 }
func (f format) infinity() uint64 { return (2*f.bias + 1) << f.mantissa }

// signed puts the top bit of h at the sign.
func (f format) signed(bits, h uint64) uint64 { return bits | h>>63<<(f.width-1) }

// spread is an ordinary number.
func (f format) spread(h uint64) uint64 {
	exponent := h>>55&0xff*7>>8 + f.bias - 3
	return f.signed(exponent<<f.mantissa|h&f.fraction(), h)
}

// table holds the numbers at which arithmetic goes wrong, without signs.
func (f format) table() []uint64 {
	one, half, inf := f.bias<<f.mantissa, uint64(1)<<(f.mantissa-1), f.infinity()
	return []uint64{0, 0, 1, f.fraction(), 1 << f.mantissa, one, one + 1, one - 1, one | half, (f.bias+1)<<f.mantissa | half,
		inf - 1, inf, inf | half, inf | 1, inf | half | 5, inf | f.fraction()}
}

// edgeDrawer gives numbers of all the kinds that Edges names.
func edgeDrawer(f format) func(h uint64) uint64 {
	table := f.table()
	halves := make([]uint64, 17)
	for i := range halves {
		halves[i] = f.encode(float64(i) / 2)
	}
	return func(h uint64) uint64 {
		pick := h >> 8
		switch h >> 60 & 7 {
		case 0, 1, 2:
			return f.signed(table[pick%uint64(len(table))], h)
		case 3:
			return f.signed(f.tie(h), h)
		case 4:
			return f.signed(halves[pick%uint64(len(halves))], h)
		case 5:
			return f.signed(pick%f.infinity(), h)
		case 6:
			return f.signed(pick&f.fraction(), h)
		}
		return f.spread(h)
	}
}

// tie has a mantissa that lies just between two numbers of a narrower type; in a narrow type it has few bits, so that
// sums and products of two such numbers lie between two of its own.
func (f format) tie(h uint64) uint64 {
	keep := []uint64{7, 10, 2, 3}[h>>4&3]
	if keep >= f.mantissa {
		keep = 2
	}
	low := f.mantissa - keep
	return f.spread(h)&^f.sign()>>low<<low | 1<<(low-1)
}

// encode gives the bits of a number that the format holds exactly, and that is no denormal.
func (f format) encode(x float64) uint64 {
	if x == 0 {
		return math.Float64bits(x) >> 63 << (f.width - 1)
	}
	bits := math.Float64bits(x)
	exponent := bits>>52&0x7ff - 1023 + f.bias
	return bits>>63<<(f.width-1) | exponent<<f.mantissa | bits&(1<<52-1)>>(52-f.mantissa)
}

// rangeDrawer gives numbers of a range, at the edges whole ones, halves and zeros of both signs. They are multiples of
// 1/64, which every type holds; of wide types they have more bits.
func rangeDrawer(kind Kind, f format, domain Domain) func(h uint64) uint64 {
	span := domain.High - domain.Low
	return func(h uint64) uint64 {
		steps := 64.0
		if f.width > 16 {
			steps = 1 << 20
		}
		if kind == Edges && h&1 == 0 || kind == Sparse && h>>32%sparseness == 0 {
			steps = 2
		}
		x := domain.Low + math.Floor(float64(h>>11)/(1<<53)*span*steps)/steps
		if x == 0 {
			return f.signed(0, h<<1)
		}
		return f.encode(x)
	}
}

// wholeDrawer gives whole numbers.
func wholeDrawer(kind Kind, d tensor.DType, domain Domain) func(h uint64) uint64 {
	bits := uint64(d.Size() * 8)
	signed := d != tensor.Uint8
	plain := func(h uint64) uint64 {
		if !signed {
			return h >> 32 & 0xff
		}
		return h>>32%200 - 100
	}
	switch {
	case domain.Index > 0:
		n := uint64(domain.Index)
		plain = func(h uint64) uint64 { return h >> 16 % n }
		if domain.Negative {
			plain = func(h uint64) uint64 { return h>>16%(2*n) - n }
		}
		if len(domain.Also) == 0 || kind == Ordinary {
			return plain
		}
		inside := plain
		return func(h uint64) uint64 {
			if h&7 == 0 {
				return uint64(domain.Also[h>>3%uint64(len(domain.Also))])
			}
			return inside(h)
		}
	case domain.High > domain.Low:
		low, n := int64(domain.Low), uint64(domain.High-domain.Low)
		return func(h uint64) uint64 { return uint64(low) + h>>16%n }
	case kind == Edges || kind == Sparse:
		table := []uint64{0, 1, ^uint64(0), 1 << (bits - 1), 1<<(bits-1) - 1}
		inner := plain
		plain = func(h uint64) uint64 {
			switch {
			case kind == Sparse && h%sparseness != 0, h>>40&3 == 0:
				return inner(h)
			case h>>40&3 == 1:
				return mix(h)
			}
			return table[h>>44%uint64(len(table))]
		}
	}
	if domain.NonZero {
		inner, mask := plain, uint64(1)<<(bits-1)<<1-1
		plain = func(h uint64) uint64 {
			if x := inner(h); x&mask != 0 && x&mask != mask { // -1 overflows the least number
				return x
			}
			return 3
		}
	}
	return plain
}

// Parse finds a kind by name.
func Parse(name string) (Kind, bool) {
	k := Kind(name)
	return k, slices.Contains(Kinds(), k)
}
