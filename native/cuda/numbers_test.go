package cuda

import (
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// Numbers for tests that compute: all inputs are multiples of 1/64 between -1 and 1, exact in every type.

func randoms(seed int64, n int64) []float64 {
	r := rand.New(rand.NewSource(seed))
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(r.Intn(129)-64) / 64
	}
	return out
}

func encode(d tensor.DType, values []float64) []byte {
	var out []byte
	for _, v := range values {
		f := float32(v)
		switch d {
		case tensor.Float32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
		case tensor.BFloat16:
			out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(f)>>16))
		case tensor.Float16:
			out = binary.LittleEndian.AppendUint16(out, halfBits(f))
		}
	}
	return out
}

// halfBits is for values that are exact and normal in float16, and zero.
func halfBits(f float32) uint16 {
	b := math.Float32bits(f)
	if f == 0 {
		return 0
	}
	return uint16(b>>31<<15) | uint16(int(b>>23&0xff)-127+15)<<10 | uint16(b>>13&0x3ff)
}

func decode(d tensor.DType, data []byte) []float64 {
	var out []float64
	for i := 0; i < len(data); i += int(d.Size()) {
		switch d {
		case tensor.Float32:
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))))
		case tensor.BFloat16:
			out = append(out, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[i:]))<<16)))
		case tensor.Float16:
			out = append(out, halfValue(binary.LittleEndian.Uint16(data[i:])))
		}
	}
	return out
}

func halfValue(b uint16) float64 {
	sign := 1 - 2*float64(b>>15)
	exponent, mantissa := int(b>>10&31), float64(b&0x3ff)
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

func TestNumbers(t *testing.T) {
	values := append(randoms(1, 1000), 0, 1, -1, 0.5, -1.0/64)
	for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
		for i, got := range decode(d, encode(d, values)) {
			if got != values[i] {
				t.Errorf("%s: %v became %v", d, values[i], got)
			}
		}
	}
}

// terms visits every product of a two-dimensional convolution of contiguous tensors: of which element of x and of w, for
// which of y.
func terms(c *device.Convolution, visit func(x, w, y int64)) {
	h, wide, channels := c.X.Sizes[2], c.X.Sizes[3], c.W.Sizes[1]
	kh, kw := c.W.Sizes[2], c.W.Sizes[3]
	perGroup := c.W.Sizes[0] / c.Groups
	y := int64(0)
	for n := range c.Y.Sizes[0] {
		for o := range c.Y.Sizes[1] {
			for i := range c.Y.Sizes[2] {
				for j := range c.Y.Sizes[3] {
					for ch := range channels {
						from := (n*c.X.Sizes[1] + o/perGroup*channels + ch) * h
						for a := range kh {
							for b := range kw {
								row := i*c.Stride[0] - c.Padding[0] + a*c.Dilation[0]
								col := j*c.Stride[1] - c.Padding[1] + b*c.Dilation[1]
								if row >= 0 && row < h && col >= 0 && col < wide {
									visit((from+row)*wide+col, ((o*channels+ch)*kh+a)*kw+b, y)
								}
							}
						}
					}
					y++
				}
			}
		}
	}
}

// convolve gives in double precision what a convolution computes from the other two of x, w and y, with the sums of
// absolute terms.
func convolve(c *device.Convolution, x, w, y []float64) (sums, absolute []float64) {
	n := tensor.Numel(written(c).Sizes)
	sums, absolute = make([]float64, n), make([]float64, n)
	add := func(i int64, term float64) {
		sums[i] += term
		absolute[i] += math.Abs(term)
	}
	terms(c, func(i, j, k int64) {
		switch c.Direction {
		case device.Forward:
			add(k, x[i]*w[j])
		case device.BackwardData:
			add(i, y[k]*w[j])
		case device.BackwardFilter:
			add(j, x[i]*y[k])
		}
	})
	return sums, absolute
}

// written is the tensor that a convolution computes.
func written(c *device.Convolution) device.Tensor {
	switch c.Direction {
	case device.BackwardData:
		return c.X
	case device.BackwardFilter:
		return c.W
	}
	return c.Y
}

func TestConvolveByHand(t *testing.T) {
	c := &device.Convolution{
		X: contiguous(0, tensor.Float32, 1, 2, 2, 3), W: contiguous(0, tensor.Float32, 2, 1, 2, 2), Y: contiguous(0, tensor.Float32, 1, 2, 2, 2),
		Padding: []int64{1, 0}, Stride: []int64{2, 1}, Dilation: []int64{1, 1}, Groups: 2,
	}
	x, w, y := []float64{1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6}, []float64{1, 2, 3, 4, 1, 1, 1, 1}, []float64{1, 0, 0, 2, 0, 1, 0, 0}
	for direction, want := range map[device.Direction][]float64{
		device.Forward:        {3*1 + 4*2, 3*2 + 4*3, 1*4 + 2*5, 1*5 + 2*6, -3, -5, -9, -11},
		device.BackwardData:   {3, 4, 0, 0, 2, 4, 0, 1, 1, 0, 0, 0},
		device.BackwardFilter: {2 * 5, 2 * 6, 1, 2, 0, 0, -2, -3},
	} {
		c.Direction = direction
		got, absolute := convolve(c, x, w, y)
		for i := range want {
			if got[i] != want[i] || absolute[i] != math.Abs(want[i]) {
				t.Errorf("direction %d: %d: %v of %v, want %v", direction, i, got[i], absolute[i], want[i])
			}
		}
	}
}
