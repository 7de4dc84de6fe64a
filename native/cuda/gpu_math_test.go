//go:build gpu

package cuda

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

func TestGPUConvolutions(t *testing.T) {
	d := openGPU(t)
	for _, shape := range []struct {
		name                                             string
		n, c, h, w, k, r, s                              int64
		pad0, pad1, stride0, stride1, dil0, dil1, groups int64
	}{
		{"3x3", 1, 64, 40, 40, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1},
		{"first layer", 1, 3, 64, 64, 16, 3, 3, 1, 1, 2, 2, 1, 1, 1},
		{"1x1", 2, 48, 20, 20, 96, 1, 1, 0, 0, 1, 1, 1, 1, 1},
		{"7x7 of ResNet", 1, 3, 56, 56, 64, 7, 7, 3, 3, 2, 2, 1, 1, 1},
		{"groups", 2, 32, 17, 19, 64, 3, 3, 1, 1, 1, 1, 1, 1, 4},
		{"dilated, not square", 1, 16, 23, 31, 24, 3, 5, 2, 4, 1, 2, 2, 2, 1},
	} {
		outH := (shape.h+2*shape.pad0-shape.dil0*(shape.r-1)-1)/shape.stride0 + 1
		outW := (shape.w+2*shape.pad1-shape.dil1*(shape.s-1)-1)/shape.stride1 + 1
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			for _, direction := range []device.Direction{device.Forward, device.BackwardData, device.BackwardFilter} {
				t.Run(fmt.Sprintf("%s %s %s", shape.name, dtype, convolutionNames[direction]), func(t *testing.T) {
					holdConvolution(t, d, &device.Convolution{
						Direction: direction,
						X:         contiguous(0, dtype, shape.n, shape.c, shape.h, shape.w),
						W:         contiguous(4<<20, dtype, shape.k, shape.c/shape.groups, shape.r, shape.s),
						Y:         contiguous(8<<20, dtype, shape.n, shape.k, outH, outW),
						Padding:   []int64{shape.pad0, shape.pad1}, Stride: []int64{shape.stride0, shape.stride1},
						Dilation: []int64{shape.dil0, shape.dil1}, Groups: shape.groups,
					})
				})
			}
		}
	}
}

// holdConvolution compares with double precision, and replays with the eager run.
func holdConvolution(t *testing.T, d *Device, c *device.Convolution) {
	t.Helper()
	m, resolve := arena(t, d, 12<<20)
	var values [3][]float64
	for i, of := range []device.Tensor{c.X, c.W, c.Y} {
		values[i] = randoms(int64(3+i), tensor.Numel(of.Sizes))
		if err := m.Write(of.Offset, encode(of.DType, values[i])); err != nil {
			t.Fatal(err)
		}
	}
	p := prepare(t, d, resolve, exact, c)
	t.Logf("%s", p.Choices()[0])
	result := written(c)
	finish(t, p, 1)
	eager := read(t, m, result.Offset, tensor.Numel(result.Sizes)*result.DType.Size())
	want, absolute := convolve(c, values[0], values[1], values[2])
	near(t, result.DType, decode(result.DType, eager), want, absolute)
	sameOnReplay(t, p, m, result.Offset, eager)
}

// tolerance bounds an error: of the store, relative to the result, and of the sum, relative to its absolute terms.
func tolerance(d tensor.DType, result, absolute float64) float64 {
	store := map[tensor.DType]float64{tensor.Float32: 0x1p-24, tensor.BFloat16: 0x1p-8, tensor.Float16: 0x1p-11}[d]
	return store*math.Abs(result) + 0x1p-19*absolute + 1e-7
}

// near compares with double precision.
func near(t *testing.T, dtype tensor.DType, got, want, absolute []float64) {
	t.Helper()
	wrong, worst := 0, 0.0
	for i := range want {
		off := math.Abs(got[i] - want[i])
		if !(off <= tolerance(dtype, want[i], absolute[i])) {
			if wrong++; wrong < 4 {
				t.Errorf("element %d is %v, want %v", i, got[i], want[i])
			}
		}
		worst = max(worst, off)
	}
	if wrong > 0 {
		t.Errorf("%d of %d elements are wrong, by up to %g", wrong, len(want), worst)
	}
}

// sameOnReplay captures and holds three replays, over poison, against the eager bits.
func sameOnReplay(t *testing.T, p device.Program, m device.Memory, offset int64, eager []byte) {
	t.Helper()
	nodes, err := p.Capture()
	if err != nil {
		t.Fatal(err)
	}
	if nodes < 1 {
		t.Errorf("%d nodes", nodes)
	}
	for range 3 {
		if err := m.Fill(offset, int64(len(eager)), 0xff); err != nil {
			t.Fatal(err)
		}
		if err := p.Replay(); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, m, offset, int64(len(eager))), eager) {
			t.Fatal("a replay differs from eager")
		}
	}
}

func TestGPUBatchNorm(t *testing.T) {
	d := openGPU(t)
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16} {
		t.Run(dtype.String(), func(t *testing.T) {
			m, resolve := arena(t, d, 4<<20)
			b := torchBatchNorm()
			b.X.DType, b.Y.DType = dtype, dtype
			x := randoms(5, 64*1600)
			parameters := [4][]float64{randoms(6, 64), randoms(7, 64), randoms(8, 64), randoms(9, 64)}
			for i, v := range parameters[3] {
				parameters[3][i] = math.Abs(v) + 0.5
			}
			for i, values := range parameters {
				if err := m.Write(2<<20+512*int64(i), encode(tensor.Float32, values)); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.Write(0, encode(dtype, x)); err != nil {
				t.Fatal(err)
			}
			p := prepare(t, d, resolve, exact, b)
			finish(t, p, 1)
			want, absolute := make([]float64, len(x)), make([]float64, len(x))
			for i := range x {
				c := i / 1600
				scaled := parameters[0][c] * (x[i] - parameters[2][c]) / math.Sqrt(parameters[3][c]+b.Epsilon)
				want[i] = scaled + parameters[1][c]
				absolute[i] = 4 * (math.Abs(scaled) + math.Abs(parameters[1][c]) + 1)
			}
			eager := read(t, m, 1<<20, int64(len(x))*dtype.Size())
			near(t, dtype, decode(dtype, eager), want, absolute)
			sameOnReplay(t, p, m, 1<<20, eager)
		})
	}
}

func TestGPULinear(t *testing.T) {
	d := openGPU(t)
	for _, rows := range []int64{1, 4, 64} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%d rows %s", rows, dtype), func(t *testing.T) {
				l := torchLinear(dtype, rows)
				l.B.Offset, l.Bias.Offset, l.D.Offset = 1<<20, 4<<20, 5<<20
				m, resolve := arena(t, d, 8<<20)
				a, w, bias := randoms(10, rows*512), randoms(11, 512*1000), randoms(12, 1000)
				for offset, values := range map[int64][]float64{0: a, 1 << 20: w, 4 << 20: bias} {
					if err := m.Write(offset, encode(dtype, values)); err != nil {
						t.Fatal(err)
					}
				}
				p := prepare(t, d, resolve, exact, l)
				t.Logf("%s", p.Choices()[0])
				finish(t, p, 1)
				var want, absolute []float64
				for i := range rows {
					for j := range int64(1000) {
						sum, sumAbsolute := bias[j], math.Abs(bias[j])
						for k := range int64(512) {
							term := a[i*512+k] * w[j*512+k]
							sum, sumAbsolute = sum+term, sumAbsolute+math.Abs(term)
						}
						want, absolute = append(want, sum), append(absolute, sumAbsolute)
					}
				}
				eager := read(t, m, 5<<20, rows*1000*dtype.Size())
				near(t, dtype, decode(dtype, eager), want, absolute)
				sameOnReplay(t, p, m, 5<<20, eager)
			})
		}
	}
}

// TestGPUChoicesAreTorchs holds the choices for calls whose choice PyTorch 2.11 wrote to the libraries' logs on an H200.
func TestGPUChoicesAreTorchs(t *testing.T) {
	d := openGPU(t)
	for _, s := range d.Environment() {
		want := map[string]string{"gpu": "NVIDIA H200", "cudnn": "9.19.0", "cublas": "13.1.0"}[s.Key]
		if want != "" && s.Value != want {
			t.Skipf("%s is %s here; the choices are those of %s", s.Key, s.Value, want)
		}
	}
	_, resolve := arena(t, d, 8<<20)
	moved := func(rows int64, dtype tensor.DType) *device.Linear {
		l := torchLinear(dtype, rows)
		l.B.Offset, l.Bias.Offset, l.D.Offset = 1<<20, 4<<20, 5<<20
		return l
	}
	p := prepare(t, d, resolve, exact, torchConvolution(tensor.Float32), torchConvolution(tensor.BFloat16),
		moved(1, tensor.Float32), moved(4, tensor.Float32), moved(1, tensor.BFloat16), moved(4, tensor.BFloat16))
	for i, want := range [][]string{
		{"ConvFwd_eng70_", "_k2=12", "_k18=0"},
		{"ConvFwd_eng45_", "_k2=5", "_k5=4", "_k14=4"},
		{"cublasLt TN algo=13 ", " custom=74"},
		{"cublasLt TN algo=11 "},
		{"cublasLt TN algo=66 "},
		{"cublasLt TN algo=66 "},
	} {
		for _, part := range want {
			if got := p.Choices()[i]; !strings.Contains(got, part) {
				t.Errorf("command %d: %q, PyTorch's choice has %q", i, got, part)
			}
		}
	}
}
