package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

type product struct {
	name              string
	bias, a, w        []int64
	aStrides, wStride []int64
	beta, alpha       float64
}

func (p product) place(t *testing.T, dtype tensor.DType) (b *bench, bias, a, w, d int) {
	b = newBench(t)
	bias, a, w = b.tensor(dtype, p.bias, nil), b.tensor(dtype, p.a, p.aStrides), b.tensor(dtype, p.w, p.wStride)
	d = b.tensor(dtype, []int64{p.a[0], p.w[1]}, nil)
	state := uint64(9)
	for _, v := range []int{bias, a, w} {
		b.setFloats(v, randoms(&state, int(b.recording.Values[v].Numel())))
	}
	return b, bias, a, w, d
}

func TestAddmm(t *testing.T) {
	tests := []product{
		{name: "a layer on one row", bias: []int64{10}, a: []int64{1, 32}, w: []int64{32, 10}, wStride: []int64{1, 32}, beta: 1, alpha: 1},
		{name: "a layer on four rows", bias: []int64{10}, a: []int64{4, 32}, w: []int64{32, 10}, wStride: []int64{1, 32}, beta: 1, alpha: 1},
		{name: "row-major", bias: []int64{6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1},
	}
	relative := map[tensor.DType]float64{tensor.Float32: 0x1p-20, tensor.BFloat16: 0x1p-8, tensor.Float16: 0x1p-10}
	for _, p := range tests {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%s/%s", p.name, dtype), func(t *testing.T) {
				b, bias, a, w, d := p.place(t, dtype)
				b.run(operation("aten::addmm", args("self", bias, "mat1", a, "mat2", w, "beta", p.beta, "alpha", p.alpha), results(d)))
				as, ws, bs, got := b.floats(a), b.floats(w), b.floats(bias), b.floats(d)
				rows, depth, columns := p.a[0], p.a[1], p.w[1]
				for r := range rows {
					for c := range columns {
						sum := bs[c]
						magnitude := math.Abs(sum)
						for k := range depth {
							v := as[r*depth+k] * ws[k*columns+c]
							sum, magnitude = sum+v, magnitude+math.Abs(v)
						}
						if v := got[r*columns+c]; math.Abs(v-sum) > relative[dtype]*magnitude {
							t.Errorf("row %d, column %d is %v, wanted %v", r, c, v, sum)
						}
					}
				}
			})
		}
	}
}

// What PyTorch does by another call is refused.
func TestAddmmRefusals(t *testing.T) {
	tests := []product{
		{name: "beta", bias: []int64{6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 0.5, alpha: 1},
		{name: "alpha", bias: []int64{6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 2},
		{name: "a bias of two dimensions", bias: []int64{1, 6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1},
		{name: "a bias that is repeated", bias: []int64{1}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1},
		{name: "one column", bias: []int64{1}, a: []int64{5, 7}, w: []int64{7, 1}, beta: 1, alpha: 1},
		{name: "one row", bias: []int64{6}, a: []int64{5, 1}, w: []int64{1, 6}, beta: 1, alpha: 1},
		{name: "a factor with gaps in both directions", bias: []int64{6}, a: []int64{5, 7}, aStrides: []int64{20, 2}, w: []int64{7, 6}, beta: 1, alpha: 1},
	}
	for _, p := range tests {
		t.Run(p.name, func(t *testing.T) {
			b, bias, a, w, d := p.place(t, tensor.Float32)
			op := operation("aten::addmm", args("self", bias, "mat1", a, "mat2", w, "beta", p.beta, "alpha", p.alpha), results(d))
			if commands, err := b.lower(op); err == nil {
				t.Errorf("it became %s", describe(commands))
			}
		})
	}
}
