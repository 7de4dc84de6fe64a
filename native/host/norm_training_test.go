//go:build linux && amd64

package host

import (
	"math"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// runAll runs a command and gives all its tensors back.
func runAll(t *testing.T, d *Device, views []view, command func([]device.Tensor) device.Command) []view {
	t.Helper()
	memories, tensors, after := make([]device.Memory, len(views)), make([]device.Tensor, len(views)), make([]view, len(views))
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
	if err := p.Run(0, 1); err != nil {
		t.Fatal(err)
	}
	for i, v := range views {
		after[i] = v
		after[i].data = make([]byte, len(v.data))
		if err := memories[i].Read(0, after[i].data); err != nil {
			t.Fatal(err)
		}
	}
	return after
}

// near fails if a differs from b by more than so many parts of scale.
func near(t *testing.T, what string, a, b, relative, scale float64) {
	t.Helper()
	if !(math.Abs(a-b) <= relative*scale) {
		t.Fatalf("%s is %v, wanted %v", what, a, b)
	}
}

// TestBatchNormTraining compares with float64, and bits among numbers of threads.
func TestBatchNormTraining(t *testing.T) {
	const epsilon, momentum = 1e-5, 0.1
	one, three := open(t, Threads(1)), open(t, Threads(3))
	for _, c := range []struct {
		name, layout string
		sizes        []int64
	}{
		{"planes", "nchw", []int64{3, 5, 7, 9}},
		{"channels last", "nhwc", []int64{2, 5, 7, 9}},
		{"padded rows", "padded", []int64{2, 5, 7, 9}},
		{"two dimensions", "nchw", []int64{6, 10}},
		{"two elements", "nchw", []int64{2, 3, 1, 1}},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(c.name+"/"+d.String(), func(t *testing.T) {
				channels := []int64{c.sizes[1]}
				vector := func(seed uint64) view { return randomView(seed, tensor.Float32, "", channels) }
				x, y, dy := randomView(1, d, c.layout, c.sizes), randomView(2, d, c.layout, c.sizes), randomView(3, d, c.layout, c.sizes)
				scale, bias := vector(4), vector(5)
				before := []view{x, y, scale, bias, vector(6), vector(7), vector(8), vector(9)}
				train := func(p []device.Tensor) device.Command {
					return &device.BatchNormTraining{X: p[0], Y: p[1], Scale: p[2], Bias: p[3], RunningMean: p[4], RunningVariance: p[5],
						SaveMean: p[6], SaveInvstd: p[7], Momentum: momentum, Epsilon: epsilon}
				}
				after := runAll(t, one, before, train)
				for i, v := range runAll(t, three, before, train) {
					if at := differs(after[i], v); at != "" {
						t.Fatalf("tensor %d with 3 threads: %s", i, at)
					}
				}
				back := func(p []device.Tensor) device.Command {
					return &device.BatchNormBackward{X: p[0], DY: p[1], DX: p[2], Scale: p[3], SaveMean: p[4], SaveInvstd: p[5],
						DScale: p[6], DBias: p[7], Epsilon: epsilon}
				}
				given := []view{x, dy, y, scale, after[6], after[7], vector(8), vector(9)}
				gradients := runAll(t, one, given, back)
				for i, v := range runAll(t, three, given, back) {
					if at := differs(gradients[i], v); at != "" {
						t.Fatalf("gradient %d with 3 threads: %s", i, at)
					}
				}
				checkNorm(t, before, after, gradients, dy, momentum, epsilon)
			})
		}
	}
}

func checkNorm(t *testing.T, before, after, gradients []view, dy view, momentum, epsilon float64) {
	t.Helper()
	x, d := before[0], before[0].dtype
	relative := map[tensor.DType]float64{tensor.Float32: 0x1p-20, tensor.BFloat16: 0x1p-7, tensor.Float16: 0x1p-10}[d]
	var xs, ys, dys, dxs []float64
	collect := func(v view, to *[]float64) { v.each(func(e []byte) { *to = append(*to, decode(d, e)) }) }
	collect(x, &xs)
	collect(after[1], &ys)
	collect(dy, &dys)
	collect(gradients[2], &dxs)
	plane, channels := int(tensor.Numel(x.sizes[2:])), int(x.sizes[1])
	count := float64(len(xs) / channels)
	for c := range channels {
		var of []int
		mean, variance, sum, dot, size := 0.0, 0.0, 0.0, 0.0, 0.0
		for i := range xs {
			if i/plane%channels == c {
				of = append(of, i)
				mean += xs[i] / count
			}
		}
		for _, i := range of {
			variance += (xs[i] - mean) * (xs[i] - mean) / count
			sum += dys[i]
			dot += dys[i] * (xs[i] - mean)
			size += math.Abs(dys[i]) * (1 + math.Abs(xs[i]-mean))
		}
		at := int64(c)
		invstd, scale := 1/math.Sqrt(variance+epsilon), before[2].get(at)
		near(t, "save_mean", after[6].get(at), mean, 0x1p-22, 1+math.Abs(mean))
		near(t, "save_invstd", after[7].get(at), invstd, 0x1p-22, invstd)
		near(t, "running_mean", after[4].get(at), (1-momentum)*before[4].get(at)+momentum*mean, 0x1p-22, 1+math.Abs(mean))
		near(t, "running_var", after[5].get(at), (1-momentum)*before[5].get(at)+momentum*variance*count/(count-1), 0x1p-22, 2+2*variance)
		near(t, "dbias", gradients[7].get(at), sum, 0x1p-22, size)
		near(t, "dscale", gradients[6].get(at), dot*invstd, 0x1p-20, size*invstd)
		for _, i := range of {
			centred := (xs[i] - mean) * invstd
			near(t, "y", ys[i], scale*centred+before[3].get(at), relative, 1+math.Abs(scale*centred)+math.Abs(before[3].get(at)))
			want := scale * invstd * (dys[i] - sum/count - centred*invstd*dot/count)
			near(t, "dx", dxs[i], want, relative, math.Abs(scale*invstd)*(math.Abs(dys[i])+math.Abs(sum/count)+math.Abs(centred*invstd*dot/count)+1e-3))
		}
	}
}
