package ops

import (
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func TestChannelsLast(t *testing.T) {
	for _, c := range []struct {
		sizes, strides []int64
		want           bool
	}{
		{[]int64{2, 3, 4, 5}, []int64{60, 20, 5, 1}, false},
		{[]int64{2, 3, 4, 5}, []int64{60, 1, 15, 3}, true},
		{[]int64{2, 3, 4, 5}, []int64{120, 1, 30, 6}, true},
		{[]int64{1, 3, 4, 5}, []int64{60, 1, 15, 3}, true},
		{[]int64{4, 1, 5, 6}, []int64{30, 30, 6, 1}, false},
		{[]int64{4, 1, 5, 6}, []int64{30, 1, 6, 1}, true},
		{[]int64{4, 7, 1, 1}, []int64{7, 1, 1, 1}, false},
		{[]int64{4, 7, 1, 1}, []int64{7, 1, 7, 7}, true},
		{[]int64{4, 1, 1, 1}, []int64{1, 1, 1, 1}, false},
		{[]int64{2, 3, 4}, []int64{12, 1, 3}, false},
		{[]int64{2, 0, 4, 5}, []int64{0, 1, 0, 0}, false},
		{[]int64{2, 3, 4, 5}, []int64{20, 0, 5, 1}, false},
	} {
		if got := channelsLast(&recording.Value{Sizes: c.sizes, Strides: c.strides}); got != c.want {
			t.Errorf("%v of strides %v: %v", c.sizes, c.strides, got)
		}
	}
}

// pooling is a window and the input it slides over.
type pooling struct {
	name                              string
	input                             operand
	kernel, stride, padding, dilation []int64
	ceil                              bool
}

var poolings = []pooling{
	{"plain", run(2, 3, 7, 9), []int64{2, 2}, nil, []int64{0, 0}, []int64{1, 1}, false},
	{"stem", run(1, 4, 21, 20), []int64{3, 3}, []int64{2, 2}, []int64{1, 1}, []int64{1, 1}, false},
	{"same size", run(1, 2, 10, 10), []int64{5, 5}, []int64{1, 1}, []int64{2, 2}, []int64{1, 1}, false},
	{"one number each", run(2, 3, 12, 12), []int64{3}, []int64{2}, []int64{1}, []int64{1}, false},
	{"hanging over", run(2, 3, 8, 11), []int64{3, 2}, []int64{2, 3}, []int64{1, 0}, []int64{1, 1}, true},
	{"wide steps", run(1, 3, 9, 9), []int64{2, 2}, []int64{4, 3}, []int64{0, 1}, []int64{1, 1}, true},
	{"channels last", operand{[]int64{2, 5, 6, 7}, []int64{210, 1, 35, 5}, 0}, []int64{3, 3}, []int64{1, 2}, []int64{1, 1}, []int64{1, 1}, false},
	{"three dimensions", run(3, 8, 8), []int64{2, 2}, []int64{1, 1}, []int64{0, 0}, []int64{1, 1}, false},
	{"slice", operand{[]int64{2, 3, 6, 6}, []int64{432, 36, 6, 1}, 108}, []int64{2, 2}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, false},
	{"every second column", operand{[]int64{1, 2, 6, 6}, []int64{144, 72, 12, 2}, 1}, []int64{2, 3}, []int64{2, 1}, []int64{0, 1}, []int64{1, 1}, false},
}

func both(list []int64) (int64, int64) { return list[0], list[len(list)-1] }

// shape is PyTorch's size of a pooling's result.
func (p *pooling) shape() []int64 {
	sizes := append([]int64{}, p.input.sizes...)
	one := func(in, k, s, pad, d int64) int64 {
		reach := in + 2*pad - d*(k-1) - 1
		if p.ceil {
			reach += s - 1
		}
		out := reach/s + 1
		if p.ceil && (out-1)*s >= in+pad {
			out--
		}
		return out
	}
	stride := p.stride
	if stride == nil {
		stride = p.kernel
	}
	k0, k1 := both(p.kernel)
	s0, s1 := both(stride)
	p0, p1 := both(p.padding)
	d0, d1 := both(p.dilation)
	n := len(sizes)
	sizes[n-2], sizes[n-1] = one(sizes[n-2], k0, s0, p0, d0), one(sizes[n-1], k1, s1, p1, d1)
	return sizes
}

// like gives a result the layout of the input.
func (p *pooling) like(sizes []int64) operand {
	v := &recording.Value{Sizes: p.input.sizes, Strides: p.input.strides}
	if p.input.strides != nil && channelsLast(v) {
		return operand{sizes, []int64{sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]}, 0}
	}
	return run(sizes...)
}

// windows visits every output in logical order with the logical positions of its window's elements and their places in
// the plane (row * width + column); rows and columns are the extent of the window in the padded input.
func (p *pooling) windows(visit func(elements, places []int64, rows, columns int64)) {
	in, out := p.input.sizes, p.shape()
	n := len(in)
	height, width := in[n-2], in[n-1]
	stride := p.stride
	if stride == nil {
		stride = p.kernel
	}
	k0, k1 := both(p.kernel)
	s0, s1 := both(stride)
	p0, p1 := both(p.padding)
	d0, d1 := both(p.dilation)
	for plane := range tensor.Numel(in[:n-2]) {
		for y := range out[n-2] {
			for x := range out[n-1] {
				var elements, places []int64
				var rows, columns int64
				for i := range k0 {
					h := y*s0 - p0 + i*d0
					if h >= height+p0 {
						continue
					}
					rows++
					for j := range k1 {
						w := x*s1 - p1 + j*d1
						if i == 0 && w < width+p1 {
							columns++
						}
						if h >= 0 && h < height && w >= 0 && w < width {
							elements = append(elements, (plane*height+h)*width+w)
							places = append(places, h*width+w)
						}
					}
				}
				visit(elements, places, rows, columns)
			}
		}
	}
}
