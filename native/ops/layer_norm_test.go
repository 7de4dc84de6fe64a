package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// moment is a running mean, with the sum of squared distances from it.
type moment struct{ mean, m2, count float32 }

// byRow is the order of PyTorch's RowwiseMoments kernel.
func byRow(v []float32, threads int) moment {
	join := func(a, b moment) moment {
		if a.count == 0 {
			return b
		}
		if b.count == 0 {
			return a
		}
		d, n := b.mean-a.mean, a.count+b.count
		q := b.count / n
		return moment{fma32(d, q, a.mean), fma32(d*d*a.count, q, a.m2+b.m2), n}
	}
	lanes := make([]moment, threads)
	for i, x := range v {
		m := &lanes[i%threads]
		m.count++
		d := x - m.mean
		m.mean += d / m.count
		m.m2 = fma32(d, x-m.mean, m.m2)
	}
	var warps []moment
	for ; len(lanes) > 0; lanes = lanes[32:] {
		warps = append(warps, down(lanes[:32], join))
	}
	if len(warps) == 1 {
		return warps[0]
	}
	return down(append(warps, make([]moment, 32-len(warps))...), join)
}

// byPacks is the order of PyTorch's vectorized_layer_norm_kernel.
func byPacks(v []float32) moment {
	join := func(mine, other moment) moment {
		n := mine.count + other.count
		if n == 0 {
			return moment{}
		}
		d, c := mine.mean-other.mean, 1/n
		a, b := other.count*c, mine.count*c
		return moment{fma32(a, other.mean, b*mine.mean), fma32(b, other.count*(d*d), other.m2+mine.m2), n}
	}
	lanes := make([]moment, 128)
	for i, x := range v {
		m := &lanes[i/4%128]
		m.count++
		d := x - m.mean
		m.mean = fma32(d, 1/m.count, m.mean)
		m.m2 = fma32(d, x-m.mean, m.m2)
	}
	var warps [4]moment
	for w := range warps {
		warps[w] = down(lanes[32*w:][:32], join)
	}
	return join(join(warps[0], warps[2]), join(warps[1], warps[3]))
}

// down is a tree of shuffles from 16 down; lane 0 has the result.
func down(lanes []moment, join func(a, b moment) moment) moment {
	lanes = append([]moment(nil), lanes...)
	for o := 16; o > 0; o /= 2 {
		for l := range o {
			lanes[l] = join(lanes[l], lanes[l+o])
		}
	}
	return lanes[0]
}

// inverse is the host's reciprocal square root.
func inverse(v float32) float32 { return 1 / float32(math.Sqrt(float64(v))) }

// The bits of the result, of mean and of rstd are those of an emulation of each kernel's order.
func TestLayerNorm(t *testing.T) {
	tests := []struct {
		name            string
		sizes           []int64
		strides         []int64
		offset          int64
		normalized      []int64
		packs           bool
		weightMisplaced bool
	}{
		{"a warp a row", []int64{7, 60}, nil, 0, []int64{60}, true, false},
		{"a whole warp a row", []int64{2, 3, 128}, nil, 0, []int64{128}, true, false},
		{"one vector", []int64{5, 4}, nil, 0, []int64{4}, true, false},
		{"part of a block", []int64{3, 192}, nil, 0, []int64{192}, true, false},
		{"a block", []int64{2, 512}, nil, 0, []int64{512}, true, false},
		{"two vectors a thread", []int64{3, 768}, nil, 0, []int64{768}, true, false},
		{"three vectors a thread", []int64{2, 1536}, nil, 0, []int64{1536}, true, false},
		{"many vectors a thread", []int64{2, 4100}, nil, 0, []int64{4100}, true, false},
		{"two dimensions", []int64{3, 6, 10}, nil, 0, []int64{6, 10}, true, false},
		{"a transposed input", []int64{1, 50, 96}, []int64{4800, 1, 50}, 0, []int64{96}, true, false},
		{"a misaligned transposed input", []int64{1, 50, 96}, []int64{4800, 1, 50}, 3, []int64{96}, true, false},
		{"an aligned part", []int64{4, 64}, nil, 128, []int64{64}, true, false},
		{"no whole vectors", []int64{3, 385}, nil, 0, []int64{385}, false, false},
		{"one element", []int64{5, 1}, nil, 0, []int64{1}, false, false},
		{"shorter than a warp", []int64{5, 7}, nil, 0, []int64{7}, false, false},
		{"more than a thread each", []int64{2, 1538}, nil, 0, []int64{1538}, false, false},
		{"a misaligned input", []int64{3, 384}, nil, 2, []int64{384}, false, false},
		{"a misaligned weight", []int64{3, 384}, nil, 0, []int64{384}, false, true},
	}
	for _, test := range tests {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			for parameters := range 4 {
				if test.weightMisplaced && parameters&1 == 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", test.name, d, parameters), func(t *testing.T) {
					b := newBench(t)
					x, y := b.tensorAt(d, test.sizes, orContiguous(test.sizes, test.strides), test.offset), b.tensor(d, test.sizes, nil)
					state := uint64(11)
					b.setFloats(x, randoms(&state, int(tensor.Numel(test.sizes))))
					rows := append([]int64(nil), test.sizes...)
					for i := range test.normalized {
						rows[len(rows)-1-i] = 1
					}
					mean, rstd := b.tensor(tensor.Float32, rows, nil), b.tensor(tensor.Float32, rows, nil)
					var values [2]any
					var p [2][]float32
					for i := range p {
						if parameters>>i&1 == 1 {
							at := int64(0)
							if test.weightMisplaced && i == 0 {
								at = 1
							}
							v := b.tensorAt(d, test.normalized, orContiguous(test.normalized, nil), at)
							b.setFloats(v, randoms(&state, int(tensor.Numel(test.normalized))))
							values[i], p[i] = v, singles(b.floats(v))
						}
					}
					const eps = 1e-5
					b.run(operation("aten::native_layer_norm", args("input", x, "normalized_shape", test.normalized,
						"weight", values[0], "bias", values[1], "eps", eps), results(y, mean, rstd)))
					checkLayerNorm(t, b, x, y, mean, rstd, p, int(tensor.Numel(test.normalized)), test.packs, eps)
				})
			}
		}
	}
}

func orContiguous(sizes, strides []int64) []int64 {
	if strides == nil {
		return tensor.ContiguousStrides(sizes)
	}
	return strides
}

func singles(v []float64) []float32 {
	list := make([]float32, len(v))
	for i := range v {
		list[i] = float32(v[i])
	}
	return list
}

func checkLayerNorm(t *testing.T, b *bench, x, y, mean, rstd int, p [2][]float32, n int, packs bool, eps float32) {
	t.Helper()
	d := b.recording.Values[x].DType
	in, out := singles(b.floats(x)), b.bits(y)
	means, rstds := b.bits(mean), b.bits(rstd)
	for row := range means {
		v := in[row*n:][:n]
		m := byRow(v, 512)
		if packs {
			m = byPacks(v)
		}
		r := inverse(m.m2/float32(n) + eps)
		if want := math.Float32bits(m.mean); means[row] != uint64(want) {
			t.Fatalf("mean of row %d is %#x, wanted %#x", row, means[row], want)
		}
		if want := math.Float32bits(r); rstds[row] != uint64(want) {
			t.Fatalf("rstd of row %d is %#x, wanted %#x", row, rstds[row], want)
		}
		for i, e := range v {
			want := encode(d, float64(scaledElement(e-m.mean, r, i, p, packs)))
			if got := out[row*n+i]; got != want {
				t.Fatalf("element %d of row %d is %#x, wanted %#x", i, row, got, want)
			}
		}
	}
}

// scaledElement applies a weight and a bias, each of which may be missing, to element i of a row.
func scaledElement(centred, rstd float32, i int, p [2][]float32, packs bool) float32 {
	w, b := float32(1), float32(0)
	if p[0] != nil {
		w = p[0][i]
	}
	if p[1] != nil {
		b = p[1][i]
	}
	switch {
	case !packs && p[0] == nil:
		return fma32(centred, rstd, b)
	case !packs || p[0] != nil && p[1] != nil:
		return fma32(w, centred*rstd, b)
	case p[1] == nil:
		return centred * rstd * w
	case i%4 == 0:
		return centred*rstd + b
	}
	return fma32(centred, rstd, b)
}

// Nobody reads the statistics: they are not written.
func TestLayerNormAlone(t *testing.T) {
	b := newBench(t)
	x, y := b.tensor(tensor.Float32, []int64{2, 8}, nil), b.tensor(tensor.Float32, []int64{2, 8}, nil)
	mean, rstd := b.tensor(tensor.Float32, []int64{2, 1}, nil), b.tensor(tensor.Float32, []int64{2, 1}, nil)
	b.unneeded(mean)
	b.unneeded(rstd)
	b.setFloats(x, []float64{1, -1})
	b.run(operation("aten::native_layer_norm", args("input", x, "normalized_shape", []int64{8}, "weight", nil, "bias", nil,
		"eps", 0.0), results(y, mean, rstd)))
	for i, v := range b.floats(y) {
		if want := float64(1 - i%2*2); v != want {
			t.Errorf("element %d is %v, wanted %v", i, v, want)
		}
	}
}

func TestLayerNormRefusals(t *testing.T) {
	tests := []struct {
		name       string
		in, weight tensor.DType
		normalized []int64
	}{
		{"integers", tensor.Int64, tensor.Int64, []int64{8}},
		{"a weight of another type", tensor.BFloat16, tensor.Float32, []int64{8}},
		{"another shape", tensor.Float32, tensor.Float32, []int64{4}},
		{"too many dimensions", tensor.Float32, tensor.Float32, []int64{1, 2, 8}},
		{"no dimension", tensor.Float32, tensor.Float32, []int64{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			x, y := b.tensor(test.in, []int64{2, 8}, nil), b.tensor(test.in, []int64{2, 8}, nil)
			w := b.tensor(test.weight, test.normalized, nil)
			mean, rstd := b.tensor(tensor.Float32, []int64{2, 1}, nil), b.tensor(tensor.Float32, []int64{2, 1}, nil)
			op := operation("aten::native_layer_norm", args("input", x, "normalized_shape", test.normalized, "weight", w,
				"bias", nil, "eps", 1e-5), results(y, mean, rstd))
			if _, err := b.lower(op); err == nil {
				t.Error("it was not refused")
			}
		})
	}
}
