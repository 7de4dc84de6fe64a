package ops

import (
	"fmt"
	"testing"

	"samebits/bridge/tensor"
)

// The bits of the result and of both statistics are those of an emulation of the order.
func TestGroupNorm(t *testing.T) {
	tests := []struct {
		name          string
		sizes         []int64
		groups, inner int64
	}{
		{"one warp", []int64{2, 12, 5, 7}, 4, 35},
		{"just below a block", []int64{1, 4, 7, 73}, 4, 511},
		{"just a block", []int64{1, 4, 8, 32}, 2, 256},
		{"packs", []int64{2, 8, 20, 20}, 2, 400},
		{"elements", []int64{3, 6, 23, 17}, 3, 391},
		{"one group", []int64{2, 5, 3}, 1, 3},
		{"as many groups as channels", []int64{2, 6, 40}, 6, 40},
		{"vectors", []int64{3, 16}, 4, 1},
		{"long vectors", []int64{2, 1040}, 2, 1},
	}
	for _, test := range tests {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			for parameters := range 4 {
				t.Run(fmt.Sprintf("%s/%s/%d", test.name, d, parameters), func(t *testing.T) {
					checkGroupNorm(t, d, test.sizes, test.groups, test.inner, parameters)
				})
			}
		}
	}
}

func checkGroupNorm(t *testing.T, d tensor.DType, sizes []int64, groups, inner int64, parameters int) {
	b := newBench(t)
	x, y := b.tensor(d, sizes, nil), b.tensor(d, sizes, nil)
	state := uint64(13)
	b.setFloats(x, randoms(&state, int(tensor.Numel(sizes))))
	n, c := sizes[0], sizes[1]
	mean, rstd := b.tensor(d, []int64{n, groups}, nil), b.tensor(d, []int64{n, groups}, nil)
	var values [2]any
	var p [2][]float32
	for i := range p {
		if parameters>>i&1 == 1 {
			v := b.tensor(d, []int64{c}, nil)
			b.setFloats(v, randoms(&state, int(c)))
			values[i], p[i] = v, singles(b.floats(v))
		}
	}
	const eps = 1e-5
	b.run(operation("aten::native_group_norm", args("input", x, "weight", values[0], "bias", values[1],
		"N", n, "C", c, "HxW", inner, "group", groups, "eps", eps), results(y, mean, rstd)))

	rounded := func(v float32) float32 { return float32(decode(d, encode(d, float64(v)))) }
	in, out, means, rstds := singles(b.floats(x)), b.bits(y), b.bits(mean), b.bits(rstd)
	size := int(c / groups * inner)
	threads := 512
	if size < 512 {
		threads = 32
	}
	for g := range means {
		stats := byRow(in[g*size:][:size], threads)
		m, r := rounded(stats.mean), rounded(inverse(stats.m2/float32(size)+rounded(eps)))
		if want := encode(d, float64(m)); means[g] != want {
			t.Fatalf("mean of group %d is %#x, wanted %#x", g, means[g], want)
		}
		if want := encode(d, float64(r)); rstds[g] != want {
			t.Fatalf("rstd of group %d is %#x, wanted %#x", g, rstds[g], want)
		}
		for i := g * size; i < (g+1)*size; i++ {
			channel := i / int(inner) % int(c)
			want := encode(d, float64(groupElement(in[i], m, r, channel, p, inner == 1)))
			if out[i] != want {
				t.Fatalf("element %d is %#x, wanted %#x", i, out[i], want)
			}
		}
	}
}

func groupElement(v, mean, rstd float32, channel int, p [2][]float32, single bool) float32 {
	switch {
	case p[0] == nil && p[1] == nil:
		return (v - mean) * rstd
	case single && p[1] == nil:
		return (v - mean) * rstd * p[0][channel]
	case single && p[0] == nil:
		return fma32(v-mean, rstd, p[1][channel])
	case single:
		return fma32((v-mean)*rstd, p[0][channel], p[1][channel])
	}
	a, b := rstd, float32(0)
	if p[0] != nil {
		a *= p[0][channel]
	}
	if p[1] != nil {
		b = p[1][channel]
	}
	product := mean * a
	return fma32(a, v, b-product)
}

// Statistics that nobody reads are kept elsewhere.
func TestGroupNormAlone(t *testing.T) {
	b := newBench(t)
	sizes := []int64{1, 4, 2, 2}
	x, y := b.tensor(tensor.Float32, sizes, nil), b.tensor(tensor.Float32, sizes, nil)
	mean, rstd := b.tensor(tensor.Float32, []int64{1, 2}, nil), b.tensor(tensor.Float32, []int64{1, 2}, nil)
	b.unneeded(mean)
	b.unneeded(rstd)
	b.setFloats(x, []float64{1, -1})
	b.run(operation("aten::native_group_norm", args("input", x, "weight", nil, "bias", nil, "N", int64(1), "C", int64(4),
		"HxW", int64(4), "group", int64(2), "eps", 0.0), results(y, mean, rstd)))
	for i, v := range b.floats(y) {
		if want := float64(1 - i%2*2); v != want {
			t.Errorf("element %d is %v, wanted %v", i, v, want)
		}
	}
}

func TestGroupNormRefusals(t *testing.T) {
	tests := []struct {
		name       string
		in, weight tensor.DType
		groups     int64
	}{
		{"integers", tensor.Int64, tensor.Int64, 2},
		{"a weight of another type", tensor.BFloat16, tensor.Float32, 2},
		{"groups that do not divide", tensor.Float32, tensor.Float32, 3},
		{"no groups", tensor.Float32, tensor.Float32, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			sizes := []int64{1, 4, 2, 2}
			x, y, w := b.tensor(test.in, sizes, nil), b.tensor(test.in, sizes, nil), b.tensor(test.weight, []int64{4}, nil)
			mean, rstd := b.tensor(test.in, []int64{1, 2}, nil), b.tensor(test.in, []int64{1, 2}, nil)
			op := operation("aten::native_group_norm", args("input", x, "weight", w, "bias", nil, "N", int64(1), "C", int64(4),
				"HxW", int64(4), "group", test.groups, "eps", 1e-5), results(y, mean, rstd))
			if _, err := b.lower(op); err == nil {
				t.Error("it was not refused")
			}
		})
	}
}
