//go:build gpu

package cuda

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// physical puts numbers that are in NCHW order at their places in a dense tensor.
func physical(t device.Tensor, values []float64) []float64 {
	out := make([]float64, len(values))
	each(t, func(logical, place int64) { out[place] = values[logical] })
	return out
}

// logical is the way back.
func logical(t device.Tensor, values []float64) []float64 {
	out := make([]float64, len(values))
	each(t, func(logical, place int64) { out[logical] = values[place] })
	return out
}

func each(t device.Tensor, f func(logical, place int64)) {
	for i := range tensor.Numel(t.Sizes) {
		place, rest := int64(0), i
		for d := len(t.Sizes) - 1; d >= 0; d-- {
			place += rest % t.Sizes[d] * t.Strides[d]
			rest /= t.Sizes[d]
		}
		f(i, place)
	}
}

// trained is a batch norm in training and its gradient in double precision, by name; absolute bounds the terms.
func trained(f *device.BatchNormTraining, x, dy, scale, bias, mean, variance []float64) (want, absolute map[string][]float64) {
	channels, plane := f.X.Sizes[1], f.X.Sizes[2]*f.X.Sizes[3]
	count := float64(f.X.Sizes[0] * plane)
	want, absolute = map[string][]float64{}, map[string][]float64{}
	for name, n := range map[string]int{"y": len(x), "dx": len(x), "running mean": 64, "running variance": 64, "save mean": 64,
		"save invstd": 64, "dscale": 64, "dbias": 64} {
		want[name], absolute[name] = make([]float64, n), make([]float64, n)
	}
	put := func(name string, i int, value, bound float64) { want[name][i], absolute[name][i] = value, bound }
	of := func(c int, visit func(i int)) {
		for i := range x {
			if i/int(plane)%int(channels) == c {
				visit(i)
			}
		}
	}
	for c := range int(channels) {
		var m, v, sum, sumAbsolute, dot, dotAbsolute float64
		of(c, func(i int) { m += x[i] / count })
		of(c, func(i int) { v += (x[i] - m) * (x[i] - m) / count })
		invstd := 1 / math.Sqrt(v+f.Epsilon)
		of(c, func(i int) {
			h := (x[i] - m) * invstd
			put("y", i, scale[c]*h+bias[c], 4*(math.Abs(scale[c]*h)+math.Abs(bias[c])+1))
			sum, sumAbsolute = sum+dy[i], sumAbsolute+math.Abs(dy[i])
			dot, dotAbsolute = dot+dy[i]*h, dotAbsolute+math.Abs(dy[i]*h)
		})
		of(c, func(i int) {
			h := (x[i] - m) * invstd
			put("dx", i, scale[c]*invstd*(dy[i]-sum/count-h*dot/count), 8*math.Abs(scale[c]*invstd)*(1+math.Abs(dy[i])+math.Abs(h)))
		})
		put("running mean", c, (1-f.Momentum)*mean[c]+f.Momentum*m, 8)
		put("running variance", c, (1-f.Momentum)*variance[c]+f.Momentum*v*count/(count-1), 8)
		put("save mean", c, m, 4)
		put("save invstd", c, invstd, 8*invstd)
		put("dbias", c, sum, 2*sumAbsolute+1)
		put("dscale", c, dot, 4*dotAbsolute+1)
	}
	return want, absolute
}

func TestGPUBatchNormTraining(t *testing.T) {
	d := openGPU(t)
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16} {
		for _, last := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s channels last %v", dtype, last), func(t *testing.T) {
				f, b := torchTraining(dtype, 512<<10)
				if last {
					inChannelsLast(f, b)
				}
				m, resolve := arena(t, d, 10<<20)
				n := tensor.Numel(f.X.Sizes)
				x, dy := randoms(21, n), randoms(22, n)
				scale, bias, mean, variance := randoms(23, 64), randoms(24, 64), randoms(25, 64), randoms(26, 64)
				for i := range variance {
					variance[i] = math.Abs(variance[i]) + 0.5
				}
				set := func(to device.Tensor, values []float64) {
					t.Helper()
					if err := m.Write(to.Offset, encode(to.DType, values)); err != nil {
						t.Fatal(err)
					}
				}
				set(f.X, physical(f.X, x))
				set(b.DY, physical(b.DY, dy))
				set(f.Scale, scale)
				set(f.Bias, bias)
				p := prepare(t, d, resolve, exact, f, b)
				t.Logf("workspace %d", p.WorkspaceBytes())
				results := map[string]device.Tensor{"y": f.Y, "dx": b.DX, "running mean": f.RunningMean,
					"running variance": f.RunningVariance, "save mean": f.SaveMean, "save invstd": f.SaveInvstd,
					"dscale": b.DScale, "dbias": b.DBias}
				// step runs once from the same statistics and gives every result.
				step := func(run func() error) map[string][]byte {
					t.Helper()
					set(f.RunningMean, mean)
					set(f.RunningVariance, variance)
					if err := run(); err != nil {
						t.Fatal(err)
					}
					if err := p.Wait(); err != nil {
						t.Fatal(err)
					}
					out := map[string][]byte{}
					for name, r := range results {
						out[name] = read(t, m, r.Offset, tensor.Numel(r.Sizes)*r.DType.Size())
					}
					return out
				}
				eager := step(func() error { return p.Run(0, 2) })
				want, absolute := trained(f, x, dy, scale, bias, mean, variance)
				for name, r := range results {
					got := decode(r.DType, eager[name])
					if len(r.Sizes) == 4 {
						got = logical(r, got)
					}
					t.Run(name, func(t *testing.T) { near(t, r.DType, got, want[name], absolute[name]) })
				}
				if nodes, err := p.Capture(); err != nil || nodes < 2 {
					t.Fatalf("%d nodes, %v", nodes, err)
				}
				for range 3 {
					for _, place := range []device.Tensor{f.Y, b.DX, f.Reserve} {
						if err := m.Fill(place.Offset, 1<<19, 0xff); err != nil {
							t.Fatal(err)
						}
					}
					for name, got := range step(p.Replay) {
						if !bytes.Equal(got, eager[name]) {
							t.Errorf("%s of a replay differs from eager", name)
						}
					}
				}
			})
		}
	}
}

func TestGPUMatmul(t *testing.T) {
	d := openGPU(t)
	for _, shape := range []struct {
		name    string
		m, k, n int64
		a, b, d bool // column-major
	}{
		{"gradient of an input", 4, 1000, 512, false, false, false},
		{"gradient of a weight", 1000, 4, 512, true, false, false},
		{"gradient of a weight, batch of one", 1000, 1, 512, true, false, false},
		{"larger", 128, 512, 1000, false, true, false},
		{"one row", 1, 512, 100, false, true, false},
		{"one column", 100, 512, 1, false, false, false},
		{"column-major result", 96, 64, 80, false, false, true},
	} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(shape.name+" "+dtype.String(), func(t *testing.T) {
				side := func(offset, rows, cols int64, columnMajor bool) device.Tensor {
					out := contiguous(offset, dtype, rows, cols)
					if columnMajor {
						out.Strides = []int64{1, rows}
					}
					return out
				}
				c := &device.Matmul{A: side(0, shape.m, shape.k, shape.a), B: side(4<<20, shape.k, shape.n, shape.b),
					D: side(8<<20, shape.m, shape.n, shape.d)}
				m, resolve := arena(t, d, 12<<20)
				a, b := randoms(31, shape.m*shape.k), randoms(32, shape.k*shape.n)
				for _, w := range []struct {
					device.Tensor
					values []float64
				}{{c.A, a}, {c.B, b}} {
					if err := m.Write(w.Offset, encode(dtype, physical(w.Tensor, w.values))); err != nil {
						t.Fatal(err)
					}
				}
				p := prepare(t, d, resolve, exact, c)
				t.Logf("%s", p.Choices()[0])
				finish(t, p, 1)
				var want, absolute []float64
				for i := range shape.m {
					for j := range shape.n {
						var sum, sumAbsolute float64
						for k := range shape.k {
							term := a[i*shape.k+k] * b[k*shape.n+j]
							sum, sumAbsolute = sum+term, sumAbsolute+math.Abs(term)
						}
						if dtype != tensor.Float32 {
							sumAbsolute *= 64 // parts of a sum may be added in the type of the result
						}
						want, absolute = append(want, sum), append(absolute, sumAbsolute)
					}
				}
				eager := read(t, m, c.D.Offset, shape.m*shape.n*dtype.Size())
				near(t, dtype, logical(c.D, decode(dtype, eager)), want, absolute)
				sameOnReplay(t, p, m, c.D.Offset, eager)
			})
		}
	}
}
