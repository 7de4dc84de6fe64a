package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// product is an operation on matrices under test: d = alpha * a * w + beta * bias.
type product struct {
	name               string
	operation          string // without aten::
	bias, a, w         []int64
	biasStrides        []int64
	aStrides, wStrides []int64
	beta, alpha        float64
	commands           string // of bfloat16
}

func (p product) place(t *testing.T, dtype tensor.DType) (b *bench, bias, a, w, d int) {
	b = newBench(t)
	bias = -1
	state := uint64(9)
	if p.bias != nil {
		bias = b.tensor(dtype, p.bias, p.biasStrides)
		b.setFloats(bias, randoms(&state, int(tensor.Numel(p.bias))))
	}
	a, w = b.tensor(dtype, p.a, p.aStrides), b.tensor(dtype, p.w, p.wStrides)
	for _, v := range []int{a, w} {
		b.setFloats(v, randoms(&state, int(b.recording.Values[v].Numel())))
	}
	d = b.tensor(dtype, p.result(), nil)
	return b, bias, a, w, d
}

func (p product) result() []int64 {
	n := len(p.a)
	if len(p.w) == 1 {
		return p.a[:1]
	}
	return append(append([]int64{}, p.a[:n-1]...), p.w[n-1])
}

// lower gives the commands, and runs them if they are no refusal.
func (p product) lower(b *bench, bias, a, w, d int) ([]device.Command, error) {
	list := args("self", a, "mat2", w)
	switch p.operation {
	case "mv":
		list = args("self", a, "vec", w)
	case "addmm":
		list = args("self", bias, "mat1", a, "mat2", w, "beta", p.beta, "alpha", p.alpha)
	case "baddbmm":
		list = args("self", bias, "batch1", a, "batch2", w, "beta", p.beta, "alpha", p.alpha)
	}
	op := operation("aten::"+p.operation, list, results(d))
	commands, err := b.lower(op)
	b.extra = nil
	if err == nil {
		b.run(op)
	}
	return commands, err
}

// at is element i of a tensor that broadcasts to the result.
func at(values []float64, sizes []int64, index []int64) float64 {
	place := int64(0)
	for d, size := range sizes {
		i := index[len(index)-len(sizes)+d]
		if size == 1 {
			i = 0
		}
		place = place*size + i
	}
	return values[place]
}

func TestProducts(t *testing.T) {
	const linear, matmul, vector = "*device.Linear", "*device.Matmul", "*device.MatVec"
	tests := []product{
		{operation: "addmm", name: "a layer on one row", bias: []int64{10}, a: []int64{1, 32}, w: []int64{32, 10}, wStrides: []int64{1, 32}, beta: 1, alpha: 1, commands: linear},
		{operation: "addmm", name: "a layer on four rows", bias: []int64{10}, a: []int64{4, 32}, w: []int64{32, 10}, wStrides: []int64{1, 32}, beta: 1, alpha: 1, commands: linear},
		{operation: "addmm", name: "row-major", bias: []int64{6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1, commands: linear},
		{operation: "addmm", name: "alpha", bias: []int64{6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 2.5, commands: linear},
		{operation: "addmm", name: "a bias of one row", bias: []int64{1, 6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1, commands: "copy_2 " + linear},
		{operation: "addmm", name: "a factor with gaps in both directions", bias: []int64{6}, a: []int64{5, 7}, aStrides: []int64{20, 2}, w: []int64{7, 6}, beta: 1, alpha: 1, commands: "copy_2 " + linear},
		{operation: "addmm", name: "a matrix as bias", bias: []int64{5, 6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1, commands: "*device.Copy " + matmul},
		{operation: "addmm", name: "a turned matrix as bias", bias: []int64{5, 6}, biasStrides: []int64{1, 5}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1, commands: "copy_2 " + matmul},
		{operation: "addmm", name: "beta and alpha", bias: []int64{6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 0.5, alpha: -2, commands: "copy_2 " + matmul},
		{operation: "addmm", name: "no beta", bias: []int64{6}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 0, alpha: 1, commands: matmul},
		{operation: "addmm", name: "a bias that is repeated", bias: []int64{1}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1, commands: "copy_2 " + matmul},
		{operation: "addmm", name: "a bias with gaps", bias: []int64{6}, biasStrides: []int64{3}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1, commands: "copy_2 " + matmul},
		{operation: "addmm", name: "one column", bias: []int64{1}, a: []int64{300, 64}, w: []int64{64, 1}, wStrides: []int64{1, 64}, beta: 1, alpha: 1, commands: "copy_2 " + matmul},
		{operation: "addmm", name: "one term", bias: []int64{6}, a: []int64{5, 1}, w: []int64{1, 6}, beta: 1, alpha: 1, commands: "copy_2 " + matmul},
		{operation: "mm", name: "as it lies", a: []int64{5, 7}, w: []int64{7, 6}, commands: matmul},
		{operation: "mm", name: "both turned", a: []int64{5, 7}, aStrides: []int64{1, 5}, w: []int64{7, 6}, wStrides: []int64{1, 7}, commands: matmul},
		{operation: "mm", name: "rows of a wider matrix", a: []int64{5, 7}, aStrides: []int64{30, 1}, w: []int64{7, 2}, wStrides: []int64{1, 7}, commands: matmul},
		{operation: "mm", name: "one row repeated", a: []int64{5, 7}, aStrides: []int64{0, 1}, w: []int64{7, 2}, commands: "copy_2 " + matmul},
		{operation: "mm", name: "one term", a: []int64{40, 1}, w: []int64{1, 64}, commands: matmul},
		{operation: "bmm", name: "as they lie", a: []int64{3, 5, 7}, w: []int64{3, 7, 6}, commands: matmul},
		{operation: "bmm", name: "heads of one matrix", a: []int64{3, 5, 4}, aStrides: []int64{4, 12, 1}, w: []int64{3, 4, 5}, wStrides: []int64{4, 1, 12}, commands: matmul},
		{operation: "bmm", name: "one factor for all", a: []int64{3, 5, 4}, w: []int64{3, 4, 6}, wStrides: []int64{0, 1, 4}, commands: matmul},
		{operation: "bmm", name: "one row with odd strides", a: []int64{4, 1, 8}, aStrides: []int64{1, 32, 4}, w: []int64{4, 8, 6}, wStrides: []int64{0, 1, 8}, commands: "copy_2 " + matmul},
		{operation: "bmm", name: "one column", a: []int64{1, 5, 70}, w: []int64{1, 70, 1}, wStrides: []int64{70, 1, 70}, commands: matmul},
		{operation: "bmm", name: "gaps in both directions", a: []int64{2, 5, 7}, aStrides: []int64{100, 20, 2}, w: []int64{2, 7, 6}, commands: "copy_2 " + matmul},
		{operation: "bmm", name: "many small ones", a: []int64{70, 9, 8}, w: []int64{70, 8, 9}, commands: matmul},
		{operation: "baddbmm", name: "beta and alpha", bias: []int64{3, 5, 6}, a: []int64{3, 5, 7}, w: []int64{3, 7, 6}, beta: 0.5, alpha: 3, commands: "*device.Copy " + matmul},
		{operation: "baddbmm", name: "a bias for all", bias: []int64{5, 6}, a: []int64{3, 5, 7}, w: []int64{3, 7, 6}, beta: 1, alpha: 1, commands: "copy_2 " + matmul},
		{operation: "baddbmm", name: "no beta", bias: []int64{6}, a: []int64{3, 5, 7}, w: []int64{3, 7, 6}, beta: 0, alpha: 1, commands: matmul},
		{operation: "mv", name: "rows", a: []int64{50, 33}, w: []int64{33}, commands: vector},
		{operation: "mv", name: "columns", a: []int64{50, 33}, aStrides: []int64{1, 50}, w: []int64{33}, wStrides: []int64{2}, commands: vector},
		{operation: "mv", name: "gaps and one element repeated", a: []int64{5, 7}, aStrides: []int64{20, 2}, w: []int64{7}, wStrides: []int64{0}, commands: "copy_2 copy_2 " + vector},
		{operation: "mv", name: "one column", a: []int64{5, 1}, w: []int64{1}, commands: vector},
	}
	relative := map[tensor.DType]float64{tensor.Float64: 0x1p-50, tensor.Float32: 0x1p-20, tensor.BFloat16: 0x1p-8, tensor.Float16: 0x1p-10}
	for _, p := range tests {
		if p.bias == nil {
			p.alpha = 1
		}
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%s, %s/%s", p.operation, p.name, dtype), func(t *testing.T) {
				b, bias, a, w, d := p.place(t, dtype)
				commands, err := p.lower(b, bias, a, w, d)
				if err != nil {
					t.Fatal(err)
				}
				if got := describe(commands); dtype == tensor.BFloat16 && got != "["+p.commands+"]" {
					t.Errorf("commands %s, wanted %s", got, p.commands)
				}
				as, ws, got := b.floats(a), b.floats(w), b.floats(d)
				var added []float64
				if bias >= 0 {
					added = b.floats(bias)
				}
				depth := p.a[len(p.a)-1]
				i := 0
				each(p.result(), nil, func(index []int64) {
					sum := 0.0
					if p.beta != 0 {
						sum = p.beta * at(added, p.bias, index)
					}
					magnitude := math.Abs(sum)
					row, column := append([]int64{}, index...), append([]int64{}, index...)
					if p.operation == "mv" {
						row, column = append(row, 0), []int64{0}
					}
					for k := range depth {
						row[len(row)-1] = k
						column[max(0, len(column)-2)] = k
						v := p.alpha * at(as, p.a, row) * at(ws, p.w, column)
						sum, magnitude = sum+v, magnitude+math.Abs(v)
					}
					if math.Abs(got[i]-sum) > relative[dtype]*magnitude {
						t.Errorf("element %v is %v, wanted %v", index, got[i], sum)
					}
					i++
				})
			})
		}
	}
}

// each visits every index of a tensor in logical order.
func each(sizes, prefix []int64, visit func([]int64)) {
	if len(sizes) == 0 {
		visit(prefix)
		return
	}
	for i := range sizes[0] {
		each(sizes[1:], append(prefix[:len(prefix):len(prefix)], i), visit)
	}
}

// What a result holds before does not count where beta is 0, not even a NaN: in a recording it is memory of before.
func TestProductsIgnoreWhatTheResultHeld(t *testing.T) {
	for _, p := range []product{
		{operation: "mm", a: []int64{3, 4}, w: []int64{4, 5}}, {operation: "bmm", a: []int64{2, 3, 4}, w: []int64{2, 4, 5}},
		{operation: "mv", a: []int64{3, 4}, w: []int64{4}},
		{operation: "addmm", bias: []int64{5}, a: []int64{3, 4}, w: []int64{4, 5}, alpha: 1},
	} {
		b, bias, a, w, d := p.place(t, tensor.Float32)
		b.setFloats(d, []float64{math.NaN()})
		if bias >= 0 {
			b.setFloats(bias, []float64{math.NaN()})
		}
		if _, err := p.lower(b, bias, a, w, d); err != nil {
			t.Fatal(err)
		}
		for i, v := range b.floats(d) {
			if math.IsNaN(v) {
				t.Errorf("%s: element %d is NaN", p.operation, i)
			}
		}
	}
}

func TestProductsOverNoTerms(t *testing.T) {
	for _, p := range []product{{operation: "mm", a: []int64{3, 0}, w: []int64{0, 5}}, {operation: "bmm", a: []int64{2, 3, 0}, w: []int64{2, 0, 5}},
		{operation: "mv", a: []int64{3, 0}, w: []int64{0}}} {
		b, bias, a, w, d := p.place(t, tensor.Float32)
		if _, err := p.lower(b, bias, a, w, d); err != nil {
			t.Fatal(err)
		}
		for i, v := range b.bits(d) {
			if v != 0 {
				t.Errorf("%s: element %d is %#x", p.operation, i, v)
			}
		}
	}
}

func TestProductRefusals(t *testing.T) {
	tests := []product{
		{operation: "mm", name: "sizes that do not fit", a: []int64{4, 5}, w: []int64{4, 5}},
		{operation: "bmm", name: "batches that do not fit", a: []int64{2, 4, 5}, w: []int64{3, 5, 6}},
		{operation: "addmm", name: "a bias that does not fit", bias: []int64{7}, a: []int64{5, 7}, w: []int64{7, 6}, beta: 1, alpha: 1},
		{operation: "addmm", name: "no terms", bias: []int64{6}, a: []int64{5, 0}, w: []int64{0, 6}, beta: 1, alpha: 1},
	}
	for _, p := range tests {
		t.Run(p.operation+", "+p.name, func(t *testing.T) {
			b, bias, a, w, d := p.place(t, tensor.Float32)
			if commands, err := p.lower(b, bias, a, w, d); err == nil {
				t.Errorf("it became %s", describe(commands))
			}
		})
	}
}
