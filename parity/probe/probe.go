// Package probe makes the inputs that tell arms apart. Every machine makes the same bits of them.
//
//	noise  uniform in [0, 1), from a counter: element i of the input named n is the top 24 bits, times 2^-24, of
//	       SplitMix64's output for state mix(seed xor FNV-1a(n)) + (i+1)*0x9e3779b97f4a7c15
//	twin   the same noise times 0.5 plus 0.25: the same picture in another contrast
//	photo  real photographs (goldens/images), resized by bilinear interpolation in whole numbers, divided by 255
//
// Values are made as float32; a float64 input gets the same numbers, a narrower one gets them rounded to nearest even.
package probe

import (
	"encoding/binary"
	"hash/fnv"
	"math"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

// The probes, in the order in which they are used.
const (
	Noise = "noise"
	Twin  = "twin"
	Photo = "photo"
)

// Names lists all probes.
func Names() []string { return []string{Noise, Twin, Photo} }

// Fill writes the probe's bits for the input that spec describes over dst, which holds spec.Bytes() bytes.
func Fill(name string, spec tensor.Spec, seed uint64, dst []byte) error {
	path := "inputs/" + spec.Name
	if int64(len(dst)) != spec.Bytes() {
		return diag.New("WRONG_LENGTH", path, "%d bytes for %v%v", len(dst), spec.DType, spec.Sizes)
	}
	put, ok := writers[spec.DType]
	if !ok {
		return diag.New("UNSUPPORTED_INPUT", path, "no probe has inputs of dtype %v", spec.DType)
	}
	switch name {
	case Noise, Twin:
		noise(spec, seed, func(i int64, x float32) {
			if name == Twin {
				x = float32(x*0.5) + 0.25 // the product is exact, and converted so that it is never fused with the sum
			}
			put(dst, i, x)
		})
	case Photo:
		if len(spec.Sizes) != 4 || spec.Sizes[1] != 3 {
			return diag.New("UNSUPPORTED_INPUT", path, "the photograph needs sizes [batch 3 height width], not %v", spec.Sizes)
		}
		return photo(spec, func(i int64, x float32) { put(dst, i, x) })
	default:
		return diag.New("UNKNOWN_PROBE", "", "no probe %q; there are noise, twin and photo", name)
	}
	return nil
}

const gamma = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// counter gives the numbers of an input, one after the other.
func counter(name string, seed uint64) func() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	state := mix(seed ^ h.Sum64())
	return func() uint64 {
		state += gamma
		return mix(state)
	}
}

func noise(spec tensor.Spec, seed uint64, put func(int64, float32)) {
	draws := counter(spec.Name, seed)
	for i := range spec.Numel() {
		put(i, float32(draws()>>40)*(1.0/(1<<24)))
	}
}

var writers = map[tensor.DType]func(dst []byte, i int64, x float32){
	tensor.Float32: func(dst []byte, i int64, x float32) {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	},
	tensor.Float64: func(dst []byte, i int64, x float32) {
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(float64(x)))
	},
	tensor.BFloat16: func(dst []byte, i int64, x float32) {
		b := math.Float32bits(x)
		binary.LittleEndian.PutUint16(dst[2*i:], uint16((b+0x7fff+b>>16&1)>>16))
	},
	tensor.Float16: func(dst []byte, i int64, x float32) {
		binary.LittleEndian.PutUint16(dst[2*i:], toHalf(x))
	},
}

// toHalf rounds x, which lies in [0, 1], to the nearest float16, ties to even.
func toHalf(x float32) uint16 {
	if x < 1.0/(1<<14) { // subnormal: whole multiples of 2^-24
		return uint16(math.RoundToEven(float64(x) * (1 << 24)))
	}
	b := math.Float32bits(x) - (127-15)<<23
	return uint16((b + 0xfff + b>>13&1) >> 13)
}
