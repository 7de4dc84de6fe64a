//go:build linux && amd64

package host

import (
	"math"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

func matrix(seed uint64, d tensor.DType, rows, columns int64, columnMajor bool) view {
	v := randomView(seed, d, "nchw", []int64{rows, columns})
	if columnMajor {
		// The same numbers in another order of memory: only sizes and strides matter to the tests.
		v.strides = []int64{1, rows}
	}
	return v
}

// TestLinear compares bits with the sum of one chain a block of at most 256 k, and the bias added at its end.
func TestLinear(t *testing.T) {
	devices := []*Device{open(t, Threads(1)), open(t, Threads(3)), open(t, Threads(3), vectorBits(256))}
	for _, c := range []struct {
		name               string
		m, k, n            int64
		aColumns, bColumns bool
		transposedD        bool
	}{
		{name: "classifier", m: 1, k: 512, n: 100, bColumns: true},
		{name: "batch", m: 37, k: 65, n: 70, bColumns: true},
		{name: "row major", m: 5, k: 300, n: 33},
		{name: "transposed a", m: 14, k: 9, n: 20, aColumns: true},
		{name: "transposed d", m: 14, k: 9, n: 20, transposedD: true},
		{name: "one by one", m: 1, k: 1, n: 1},
		{name: "one column", m: 40, k: 12, n: 1, bColumns: true},
		{name: "one product", m: 3, k: 1, n: 5},
		{name: "no rows", m: 0, k: 4, n: 5},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64} {
			t.Run(c.name+"/"+d.String(), func(t *testing.T) {
				a, b := matrix(1, d, c.m, c.k, c.aColumns), matrix(2, d, c.k, c.n, c.bColumns)
				bias, want := randomView(3, d, "nchw", []int64{c.n}), matrix(4, d, c.m, c.n, c.transposedD)
				for i := range c.m {
					for j := range c.n {
						sum := newBlockSum(d, c.k)
						for k := range c.k {
							sum.add(a.get(i, k), b.get(k, j))
						}
						acc := sum.value()
						acc += bias.get(j)
						if d != tensor.Float64 {
							acc = float64(float32(acc))
						}
						encode(d, acc, want.at(i, j))
					}
				}
				for _, dev := range devices {
					got := runCommand(t, dev, []view{a, b, bias, want}, func(p []device.Tensor) device.Command {
						return &device.Linear{A: p[0], B: p[1], Bias: p[2], D: p[3]}
					})
					if at := differs(want, got); at != "" {
						t.Errorf("%v: %s", dev.Environment()[5], at)
					}
					// Without a bias it is a linear layer whose bias is zero, but for the sign of zeros.
					zero := bias
					zero.data = make([]byte, len(bias.data))
					linear := runCommand(t, dev, []view{a, b, zero, want}, func(p []device.Tensor) device.Command {
						return &device.Linear{A: p[0], B: p[1], Bias: p[2], D: p[3]}
					})
					matmul := runCommand(t, dev, []view{a, b, want}, func(p []device.Tensor) device.Command {
						return &device.Matmul{A: p[0], B: p[1], D: p[2]}
					})
					if at := differs(linear, matmul); at != "" {
						t.Errorf("%v: matmul: %s", dev.Environment()[5], at)
					}
				}
			})
		}
	}
}

// TestBatchNorm compares bits with fma(scale * (x - mean), 1 / sqrt(variance + epsilon), bias).
func TestBatchNorm(t *testing.T) {
	devices := []*Device{open(t, Threads(1)), open(t, Threads(3))}
	for _, c := range []struct {
		name, layout string
		sizes        []int64
	}{
		{"planes", "nchw", []int64{2, 5, 7, 9}},
		{"channels last", "nhwc", []int64{2, 5, 7, 9}},
		{"slice", "slice", []int64{2, 5, 7, 9}},
		{"padded rows", "padded", []int64{2, 5, 7, 9}},
		{"two dimensions", "nchw", []int64{6, 10}},
		{"three dimensions", "nchw", []int64{3, 4, 11}},
		{"five dimensions", "nchw", []int64{2, 3, 2, 3, 4}},
		{"nothing", "nchw", []int64{0, 3, 4, 4}},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(c.name+"/"+d.String(), func(t *testing.T) {
				const epsilon = 1e-5
				x, want := randomView(1, d, c.layout, c.sizes), randomView(2, d, c.layout, c.sizes)
				channels := []int64{c.sizes[1]}
				scale, bias := randomView(3, tensor.Float32, "", channels), randomView(4, tensor.Float32, "", channels)
				mean, variance := randomView(5, tensor.Float32, "", channels), randomView(6, tensor.Float32, "", channels)
				variance.each(func(e []byte) { encode(tensor.Float32, math.Abs(decode(tensor.Float32, e))+0.1, e) })
				var elements [][]byte
				x.each(func(e []byte) { elements = append(elements, e) })
				plane := tensor.Numel(c.sizes[2:])
				var i int64
				want.each(func(e []byte) {
					ch := i / plane % channels[0]
					invstd := 1 / float32(math.Sqrt(float64(float32(variance.get(ch))+float32(epsilon))))
					product := float32(scale.get(ch)) * (float32(decode(d, elements[i])) - float32(mean.get(ch)))
					encode(d, fused(tensor.Float32, float64(product), float64(invstd), bias.get(ch)), e)
					i++
				})
				for _, dev := range devices {
					got := runCommand(t, dev, []view{x, scale, bias, mean, variance, want}, func(p []device.Tensor) device.Command {
						return &device.BatchNorm{X: p[0], Scale: p[1], Bias: p[2], Mean: p[3], Variance: p[4], Y: p[5], Epsilon: epsilon}
					})
					if at := differs(want, got); at != "" {
						t.Error(at)
					}
				}
			})
		}
	}
}
