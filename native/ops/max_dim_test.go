package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// foldShapes are inputs that each form of a kernel takes: a thread or a warp for each result.
var foldShapes = []struct {
	name string
	self operand
	dim  int64
	keep bool
}{
	{"rows", run(2, 30, 80), -1, false},
	{"short rows", run(50, 4), 1, true},
	{"rows of one", run(9, 1), 1, false},
	{"columns", run(3, 40, 50), 1, true},
	{"many columns", run(40, 5000), 0, false},
	{"strides", operand{[]int64{4, 33, 6}, []int64{198, 1, 33}, 3}, 1, false},
	{"a line", run(700), 0, false},
	{"a point", run(), 0, false},
}

// foldedSizes gives the sizes of the result, the element that an index of it and a place along dim stand for, and how many places
// there are.
func foldedSizes(self operand, dim int64, keep bool) (sizes []int64, element func(at []int64, i int64) []int64, count int64) {
	rank := int64(len(self.sizes))
	if rank == 0 {
		return nil, func(at []int64, _ int64) []int64 { return at }, 1
	}
	d := (dim + rank) % rank
	if keep {
		sizes = replaced(self.sizes, int(d), 1)
	} else {
		sizes = append(append([]int64{}, self.sizes[:d]...), self.sizes[d+1:]...)
	}
	return sizes, func(at []int64, i int64) []int64 {
		if keep {
			return replaced(at, int(d), i)
		}
		return insert(at, int(d), i)
	}, self.sizes[d]
}

func TestExtremes(t *testing.T) {
	types := []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Uint8}
	for _, dtype := range types {
		for _, name := range []string{"max", "min"} {
			for _, c := range foldShapes {
				t.Run(fmt.Sprintf("%s %s %s", name, dtype, c.name), func(t *testing.T) {
					b := newBench(t)
					x := c.self.in(b, dtype)
					data := make([]float64, 1009)
					for i := range data {
						data[i] = float64(i * i % 57)
						if i%100 == 50 && dtype.Float() {
							data[i] = math.NaN()
						}
						if i%11 == 5 && dtype.Float() {
							data[i] = math.Copysign(0, -1)
						}
					}
					b.setFloats(x, data)
					sizes, element, count := foldedSizes(c.self, c.dim, c.keep)
					values, places := b.tensor(dtype, sizes, nil), b.tensor(tensor.Int64, sizes, nil)
					b.run(operation("aten::"+name+".dim", args("self", x, "dim", c.dim, "keepdim", c.keep), results(values, places)))
					eachIndex(sizes, func(at []int64) {
						best, place := math.NaN(), int64(-1)
						for i := range count {
							v := decode(dtype, b.at(x, element(at, i)))
							if place < 0 || best == best && (v != v || name == "max" && v > best || name == "min" && v < best) {
								best, place = v, i
							}
						}
						if got := int64(b.at(places, at)); got != place {
							t.Errorf("%v: place %d, want %d", at, got, place)
						}
						if got, want := b.at(values, at), b.at(x, element(at, place)); got != want {
							t.Errorf("%v: %#x, want %#x", at, got, want)
						}
					})
				})
			}
		}
	}
}

func TestExtremeRefusals(t *testing.T) {
	b := newBench(t)
	x, empty := b.tensor(tensor.Float32, []int64{3, 4}, nil), b.tensor(tensor.Float32, []int64{3, 0}, nil)
	values, places := b.tensor(tensor.Float32, []int64{3}, nil), b.tensor(tensor.Int64, []int64{3}, nil)
	call := func(self, values int, dim int64, path string) {
		t.Helper()
		expectRefusal(t, b, operation("aten::max.dim", args("self", self, "dim", dim, "keepdim", false), results(values, places)), path)
	}
	call(empty, values, 1, "arguments[0]")
	call(x, values, 0, "results[0]")
	call(x, places, 1, "results[0]")
	call(x, values, 2, "arguments[1]")
}
