//go:build linux && amd64

package host

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// vectors are the widths that this CPU has.
func vectors() []int {
	d, err := Open(Threads(1), Cache("/nonexistent"))
	if err != nil {
		return nil
	}
	defer d.Close()
	if d.options.vector == 512 {
		return []int{256, 512}
	}
	return []int{256}
}

// layoutStrides gives strides: nchw and nhwc are dense, slice takes every second channel's place in a larger nchw
// tensor, padded leaves a gap after each row.
func layoutStrides(layout string, sizes []int64) []int64 {
	s := tensor.ContiguousStrides(sizes)
	if len(sizes) != 4 {
		return s
	}
	c, h, w := sizes[1], sizes[2], sizes[3]
	switch layout {
	case "nhwc":
		return []int64{c * h * w, 1, w * c, c}
	case "slice":
		return []int64{2*c*h*w + 7, 2 * h * w, w, 1}
	case "padded":
		return []int64{c * h * (w + 3), h * (w + 3), w + 3, 1}
	}
	return s
}

type convolutionCase struct {
	name                      string
	x, w                      []int64 // sizes
	padding, stride, dilation []int64
	groups                    int64
}

var convolutionCases = []convolutionCase{
	{"3x3", []int64{1, 5, 9, 11}, []int64{7, 5, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 1},
	{"3x3 stride 2", []int64{2, 4, 13, 17}, []int64{13, 4, 3, 3}, []int64{1, 1}, []int64{2, 2}, []int64{1, 1}, 1},
	{"7x7 stride 2", []int64{1, 3, 31, 33}, []int64{24, 3, 7, 7}, []int64{3, 3}, []int64{2, 2}, []int64{1, 1}, 1},
	{"1x1", []int64{2, 19, 8, 21}, []int64{25, 19, 1, 1}, []int64{0, 0}, []int64{1, 1}, []int64{1, 1}, 1},
	{"1x1 stride 2", []int64{1, 6, 9, 10}, []int64{3, 6, 1, 1}, []int64{0, 0}, []int64{2, 2}, []int64{1, 1}, 1},
	{"dilated", []int64{1, 3, 14, 12}, []int64{4, 3, 3, 3}, []int64{2, 2}, []int64{1, 1}, []int64{2, 2}, 1},
	{"lopsided", []int64{1, 3, 12, 15}, []int64{5, 3, 2, 4}, []int64{0, 3}, []int64{3, 1}, []int64{1, 2}, 1},
	{"much padding", []int64{1, 2, 2, 2}, []int64{3, 2, 3, 3}, []int64{5, 6}, []int64{1, 2}, []int64{1, 1}, 1},
	{"stride past the kernel", []int64{1, 2, 20, 20}, []int64{3, 2, 2, 2}, []int64{0, 1}, []int64{5, 4}, []int64{1, 1}, 1},
	{"4 groups", []int64{2, 16, 10, 10}, []int64{20, 4, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 4},
	{"depthwise", []int64{2, 9, 12, 37}, []int64{9, 1, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 9},
	{"depthwise stride 2 dilated", []int64{1, 5, 21, 40}, []int64{5, 1, 5, 3}, []int64{2, 4}, []int64{2, 2}, []int64{2, 3}, 5},
	{"depthwise by 1x1", []int64{1, 4, 5, 6}, []int64{4, 1, 1, 1}, []int64{0, 0}, []int64{1, 1}, []int64{1, 1}, 4},
	{"depthwise doubled", []int64{1, 4, 9, 9}, []int64{8, 1, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 4},
	{"one channel out", []int64{1, 20, 9, 40}, []int64{1, 20, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 1},
	{"one by one", []int64{1, 1, 1, 1}, []int64{1, 1, 1, 1}, []int64{0, 0}, []int64{1, 1}, []int64{1, 1}, 1},
	{"several blocks of k", []int64{1, 70, 6, 6}, []int64{14, 70, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 1},
	{"several tiles of rows", []int64{1, 3, 4, 5}, []int64{401, 3, 1, 2}, []int64{0, 0}, []int64{1, 1}, []int64{1, 1}, 1},
	{"several tiles of columns", []int64{1, 2, 40, 41}, []int64{3, 2, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 1},
	{"long row", []int64{1, 2, 1, 700}, []int64{3, 2, 1, 9}, []int64{0, 4}, []int64{1, 1}, []int64{1, 1}, 1},
	{"column", []int64{1, 3, 600, 1}, []int64{2, 3, 5, 1}, []int64{2, 0}, []int64{1, 1}, []int64{1, 1}, 1},
	{"one dimension", []int64{2, 4, 50}, []int64{6, 4, 5}, []int64{2}, []int64{2}, []int64{1}, 1},
	{"no images", []int64{0, 4, 5, 5}, []int64{6, 4, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 1},
}

func (c convolutionCase) outSizes() []int64 {
	y := []int64{c.x[0], c.w[0]}
	for i := range c.padding {
		y = append(y, (c.x[2+i]+2*c.padding[i]-c.dilation[i]*(c.w[2+i]-1)-1)/c.stride[i]+1)
	}
	return y
}

// TestConvolution compares bits with a plain loop, for every type, layout, number of threads and width of vectors.
func TestConvolution(t *testing.T) {
	devices := map[string]*Device{}
	for _, vector := range vectors() {
		for _, threads := range []int{1, 3} {
			devices[fmt.Sprintf("%d threads of %d bits", threads, vector)] = open(t, Threads(threads), vectorBits(vector))
		}
	}
	layouts := [][3]string{{"nchw", "nchw", "nchw"}, {"nhwc", "nhwc", "nhwc"}, {"slice", "nhwc", "padded"}, {"padded", "nchw", "nhwc"}, {"nhwc", "nchw", "slice"}}
	for _, c := range convolutionCases {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64} {
			var first view
			for i, layout := range layouts {
				x, w, y := randomView(1, d, layout[0], c.x), randomView(2, d, layout[1], c.w), randomView(3, d, layout[2], c.outSizes())
				// The values do not depend on the layout, so one reference is enough.
				if i == 0 {
					first = y
					c.reference(t, x, w, y)
				}
				for name, dev := range devices {
					got := c.run(t, dev, x, w, y)
					if at := differs(first, got); at != "" {
						t.Errorf("%s/%s/%v/%s: %s", c.name, d, layout, name, at)
					}
				}
			}
		}
	}
}

// randomView makes a tensor whose values depend on the seed alone, not on the layout.
func randomView(seed uint64, d tensor.DType, layout string, sizes []int64) view {
	v := view{dtype: d, sizes: sizes, strides: layoutStrides(layout, sizes), offset: 3}
	last := v.offset
	for i, s := range sizes {
		last += max(s-1, 0) * v.strides[i]
	}
	r := rand.New(rand.NewPCG(seed, 0))
	v.data = random(r, d, last+9)
	r = rand.New(rand.NewPCG(seed, 1))
	v.each(func(element []byte) { copy(element, random(r, d, 1)) })
	return v
}

// each visits the elements in logical order.
func (v view) each(f func(element []byte)) {
	index := make([]int64, len(v.sizes))
	for range tensor.Numel(v.sizes) {
		f(v.at(index...)[:v.dtype.Size()])
		for i := len(index) - 1; i >= 0; i-- {
			if index[i]++; index[i] < v.sizes[i] {
				break
			}
			index[i] = 0
		}
	}
}

// differs says where two tensors of the same sizes have different bits.
func differs(want, got view) string {
	var elements [][]byte
	got.each(func(e []byte) { elements = append(elements, e) })
	var wrong, i int
	say := ""
	want.each(func(e []byte) {
		if !bytes.Equal(e, elements[i]) {
			if wrong++; wrong == 1 {
				say = fmt.Sprintf("element %d is %v (%x), wanted %v (%x)", i, decode(got.dtype, elements[i]), elements[i], decode(want.dtype, e), e)
			}
		}
		i++
	})
	if wrong > 0 {
		say += fmt.Sprintf("; %d of %d differ", wrong, i)
	}
	return say
}

// reference computes y by the arithmetic of host.h, and checks that against a sum in float64.
func (c convolutionCase) reference(t *testing.T, x, w, y view) {
	t.Helper()
	four := func(v view) view {
		v.sizes, v.strides = spatial(v.sizes, 1), spatial(v.strides, 0)
		return v
	}
	x, w, y = four(x), four(w), four(y)
	padding, stride, dilation := spatial([]int64{0, 0, c.padding[len(c.padding)-1]}, 0), []int64{1, c.stride[len(c.stride)-1]}, []int64{1, c.dilation[len(c.dilation)-1]}
	padding = padding[2:]
	if len(c.padding) == 2 {
		padding, stride, dilation = c.padding, c.stride, c.dilation
	}
	out := w.sizes[0] / c.groups
	for n := range y.sizes[0] {
		for m := range y.sizes[1] {
			for oy := range y.sizes[2] {
				for ox := range y.sizes[3] {
					sum, magnitude := 0.0, 0.0
					blocks := newBlockSum(x.dtype, w.sizes[1]*w.sizes[2]*w.sizes[3])
					for ci := range w.sizes[1] {
						for ky := range w.sizes[2] {
							for kx := range w.sizes[3] {
								iy, ix := oy*stride[0]+ky*dilation[0]-padding[0], ox*stride[1]+kx*dilation[1]-padding[1]
								in, weight := 0.0, w.get(m, ci, ky, kx)
								if iy >= 0 && iy < x.sizes[2] && ix >= 0 && ix < x.sizes[3] {
									in = x.get(n, m/out*w.sizes[1]+ci, iy, ix)
								}
								blocks.add(weight, in)
								sum += weight * in
								magnitude += math.Abs(weight * in)
							}
						}
					}
					k := float64(w.sizes[1] * w.sizes[2] * w.sizes[3])
					acc := blocks.value()
					if math.Abs(acc-sum) > k*magnitude/(1<<24) {
						t.Fatalf("%s: the reference itself is wrong: %v, by float64 %v", c.name, acc, sum)
					}
					encode(x.dtype, acc, y.at(n, m, oy, ox))
				}
			}
		}
	}
}

// run gives y as the device computes it, eagerly and by a replay.
func (c convolutionCase) run(t *testing.T, d *Device, x, w, y view) view {
	t.Helper()
	return runCommand(t, d, []view{x, w, y}, func(p []device.Tensor) device.Command {
		return &device.Convolution{X: p[0], W: p[1], Y: p[2], Padding: c.padding, Stride: c.stride, Dilation: c.dilation, Groups: c.groups}
	})
}

// runCommand runs a command whose last tensor is its result. Bytes around the result must stay as they are.
func runCommand(t *testing.T, d *Device, views []view, command func([]device.Tensor) device.Command) view {
	t.Helper()
	memories := make([]device.Memory, len(views))
	tensors := make([]device.Tensor, len(views))
	for i, v := range views {
		m, err := d.Alloc(int64(len(v.data)))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		if err := m.Write(0, v.data); err != nil {
			t.Fatal(err)
		}
		memories[i] = m
		tensors[i] = device.Tensor{Pointer: device.Pointer{Storage: i, Offset: v.offset * v.dtype.Size()}, DType: v.dtype, Sizes: v.sizes, Strides: v.strides}
	}
	resolve := func(p device.Pointer) uintptr { return memories[p.Storage].Address() + uintptr(p.Offset) }
	p, err := d.Prepare([]device.Command{command(tensors)}, resolve, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out := views[len(views)-1]
	last := memories[len(memories)-1]
	results := make([]view, 2)
	for i, run := range []func() error{func() error { return p.Run(0, 1) }, p.Replay} {
		if _, err := p.Capture(); err != nil {
			t.Fatal(err)
		}
		poisoned := bytes.Clone(out.data)
		results[i] = out
		results[i].data = poisoned
		results[i].each(func(e []byte) {
			for j := range e {
				e[j] = 0xff
			}
		})
		untouched := bytes.Clone(poisoned)
		if err := last.Write(0, poisoned); err != nil {
			t.Fatal(err)
		}
		if err := run(); err != nil {
			t.Fatal(err)
		}
		if err := last.Read(0, poisoned); err != nil {
			t.Fatal(err)
		}
		// With the elements poisoned again, all bytes are as before.
		again := results[i]
		again.data = bytes.Clone(poisoned)
		again.each(func(e []byte) {
			for j := range e {
				e[j] = 0xff
			}
		})
		if !bytes.Equal(again.data, untouched) {
			t.Errorf("bytes around the result were written")
		}
	}
	if !bytes.Equal(results[0].data, results[1].data) {
		t.Errorf("the replay differs from the eager run")
	}
	return results[0]
}

// An infinite weight times the zeros of padding is NaN: padding takes part like any other pixel. The NaN is stored as every
// NaN is.
func TestConvolutionPaddingTakesPart(t *testing.T) {
	d := open(t)
	for _, groups := range []int64{1, 4} {
		c := convolutionCase{"infinite", []int64{1, 4, 5, 20}, []int64{4, 4 / groups, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, groups}
		for dtype, nan := range map[tensor.DType]string{tensor.Float32: "", tensor.BFloat16: "ff7f", tensor.Float16: "ff7f"} {
			x, w, y := randomView(1, dtype, "nchw", c.x), randomView(2, dtype, "nchw", c.w), randomView(3, dtype, "nchw", c.outSizes())
			encode(dtype, math.Inf(1), w.at(0, 0, 0, 0))
			got := c.run(t, d, x, w, y)
			for _, ox := range []int64{0, 7, 19} {
				bits := got.at(0, 0, 0, ox)[:dtype.Size()]
				if v := decode(dtype, bits); !math.IsNaN(v) || (nan != "" && fmt.Sprintf("%x", bits) != nan) {
					t.Errorf("%s, %d groups: pixel %d of the first row is %v (%x), wanted NaN", dtype, groups, ox, v, bits)
				}
			}
			if v := got.get(0, 0, 2, 7); !math.IsInf(v, 0) {
				t.Errorf("%s, %d groups: the middle is %v, wanted an infinity", dtype, groups, v)
			}
		}
	}
}
