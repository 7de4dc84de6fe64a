//go:build linux && amd64

package host

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// gradients gives the gradients of x and w in float64, with the sums of the magnitudes of what was added.
func (c convolutionCase) gradients(x, w, y view) (dx, dw, xSize, wSize map[[4]int64]float64) {
	four := func(v view) view {
		v.sizes, v.strides = spatial(v.sizes, 1), spatial(v.strides, 0)
		return v
	}
	x, w, y = four(x), four(w), four(y)
	padding, stride, dilation := c.padding, c.stride, c.dilation
	if len(padding) == 1 {
		padding, stride, dilation = []int64{0, padding[0]}, []int64{1, stride[0]}, []int64{1, dilation[0]}
	}
	dx, dw, xSize, wSize = map[[4]int64]float64{}, map[[4]int64]float64{}, map[[4]int64]float64{}, map[[4]int64]float64{}
	out := w.sizes[0] / c.groups
	for n := range y.sizes[0] {
		for m := range y.sizes[1] {
			for oy := range y.sizes[2] {
				for ox := range y.sizes[3] {
					g := y.get(n, m, oy, ox)
					for ci := range w.sizes[1] {
						for ky := range w.sizes[2] {
							for kx := range w.sizes[3] {
								iy, ix := oy*stride[0]+ky*dilation[0]-padding[0], ox*stride[1]+kx*dilation[1]-padding[1]
								if iy < 0 || iy >= x.sizes[2] || ix < 0 || ix >= x.sizes[3] {
									continue
								}
								channel := m/out*w.sizes[1] + ci
								at, tap := [4]int64{n, channel, iy, ix}, [4]int64{m, ci, ky, kx}
								a, b := g*w.get(m, ci, ky, kx), g*x.get(n, channel, iy, ix)
								dx[at] += a
								xSize[at] += math.Abs(a)
								dw[tap] += b
								wSize[tap] += math.Abs(b)
							}
						}
					}
				}
			}
		}
	}
	return dx, dw, xSize, wSize
}

// checkGradient compares with float64: sums in float, cut in blocks, stay within a few ULPs of the sum of magnitudes.
func checkGradient(t *testing.T, name string, got view, want, size map[[4]int64]float64) {
	t.Helper()
	relative := map[tensor.DType]float64{
		tensor.Float32: 0x1p-20, tensor.BFloat16: 0x1p-8, tensor.Float16: 0x1p-10, tensor.Float64: 0x1p-49,
	}[got.dtype]
	got.sizes, got.strides = spatial(got.sizes, 1), spatial(got.strides, 0)
	for n := range got.sizes[0] {
		for c := range got.sizes[1] {
			for y := range got.sizes[2] {
				for x := range got.sizes[3] {
					at := [4]int64{n, c, y, x}
					if v := got.get(n, c, y, x); !(math.Abs(v-want[at]) <= relative*size[at]+1e-7) {
						t.Fatalf("%s: element %v is %v, wanted %v", name, at, v, want[at])
					}
				}
			}
		}
	}
}

func (c convolutionCase) backward(t *testing.T, d *Device, direction device.Direction, x, w, y view) view {
	t.Helper()
	views := []view{w, y, x}
	if direction == device.BackwardFilter {
		views = []view{x, y, w}
	}
	return runCommand(t, d, views, func(p []device.Tensor) device.Command {
		command := &device.Convolution{Direction: direction, X: p[2], W: p[0], Y: p[1],
			Padding: c.padding, Stride: c.stride, Dilation: c.dilation, Groups: c.groups}
		if direction == device.BackwardFilter {
			command.X, command.W = p[0], p[2]
		}
		return command
	})
}

// TestConvolutionBackward compares with float64, and bits among layouts, numbers of threads and widths of vectors.
func TestConvolutionBackward(t *testing.T) {
	devices := map[string]*Device{}
	for _, vector := range vectors() {
		for _, threads := range []int{1, 3} {
			devices[fmt.Sprintf("%d threads of %d bits", threads, vector)] = open(t, Threads(threads), vectorBits(vector))
		}
	}
	layouts := [][3]string{{"nchw", "nchw", "nchw"}, {"nhwc", "nhwc", "nhwc"}, {"slice", "nhwc", "padded"}}
	cases := append([]convolutionCase{
		{"long sum", []int64{3, 2, 40, 40}, []int64{3, 2, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 1},
		{"stride and dilation", []int64{1, 3, 17, 19}, []int64{4, 3, 3, 3}, []int64{1, 2}, []int64{2, 4}, []int64{3, 2}, 1},
	}, convolutionCases...)
	for _, c := range cases {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64} {
			x, w, y := randomView(1, d, "nchw", c.x), randomView(2, d, "nchw", c.w), randomView(3, d, "nchw", c.outSizes())
			dx, dw, xSize, wSize := c.gradients(x, w, y)
			var first [2]view
			for _, layout := range layouts {
				x, w, y := randomView(1, d, layout[0], c.x), randomView(2, d, layout[1], c.w), randomView(3, d, layout[2], c.outSizes())
				for name, dev := range devices {
					name = fmt.Sprintf("%s/%s/%v/%s", c.name, d, layout, name)
					data, weight := c.backward(t, dev, device.BackwardData, x, w, y), c.backward(t, dev, device.BackwardFilter, x, w, y)
					if first[0].data == nil {
						first = [2]view{data, weight}
						checkGradient(t, name+" x", data, dx, xSize)
						checkGradient(t, name+" w", weight, dw, wSize)
					}
					for i, got := range []view{data, weight} {
						if at := differs(first[i], got); at != "" {
							t.Fatalf("%s: gradient %d: %s", name, i, at)
						}
					}
				}
			}
		}
	}
}
