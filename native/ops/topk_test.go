package ops

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"samebits/bridge/tensor"
)

func topKArgs(self int, k, dim int64, largest, sorted bool) []any {
	return []any{"self", self, "k", k, "dim", dim, "largest", largest, "sorted", sorted}
}

// Values with many ties: the elements are right, each place is taken once, and what is sorted stably keeps the order of
// places. The order of the network and of NaNs is proved by operation cases.
func TestTopK(t *testing.T) {
	shapes := []struct {
		name  string
		self  operand
		dim   int64
		k     int64
		whole bool // nothing but the order is chosen
	}{
		{"few of short lines", run(9, 33), 1, 4, false},
		{"few along the first dimension", run(50, 6), 0, 7, false},
		{"strides", operand{[]int64{3, 60, 4}, []int64{240, 1, 60}, 5}, -2, 32, false},
		{"a whole network", run(3, 32), 1, 32, true},
		{"stable from 33 on", run(3, 100), 1, 33, false},
		{"many", run(2, 3000), 1, 300, false},
		{"all of a long line", run(1, 1500), 1, 1500, true},
		{"one", run(4, 90), 1, 1, false},
		{"one of one", run(1), 0, 1, true},
	}
	types := []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Uint8}
	for _, dtype := range types {
		for _, c := range shapes {
			for _, largest := range []bool{true, false} {
				for _, ordered := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s %s %v %v", dtype, c.name, largest, ordered), func(t *testing.T) {
						b := newBench(t)
						x := c.self.in(b, dtype)
						data := make([]float64, 301)
						for i := range data {
							data[i] = float64(i * 37 % 41)
							if dtype != tensor.Uint8 {
								data[i] -= 20
							}
						}
						b.setFloats(x, data)
						dim := int(c.dim+int64(len(c.self.sizes))) % len(c.self.sizes)
						sizes := replaced(c.self.sizes, dim, c.k)
						values, places := b.tensor(dtype, sizes, nil), b.tensor(tensor.Int64, sizes, nil)
						b.run(operation("aten::topk", args(topKArgs(x, c.k, c.dim, largest, ordered)...), results(values, places)))
						eachIndex(replaced(sizes, dim, 1), func(line []int64) {
							checkTopK(t, b, x, values, places, dim, slices.Clone(line), largest, ordered)
						})
					})
				}
			}
		}
	}
}

// checkTopK holds one line against a stable sort of its input.
func checkTopK(t *testing.T, b *bench, x, values, places, dim int, line []int64, largest, ordered bool) {
	t.Helper()
	v := &b.recording.Values[x]
	k := b.recording.Values[values].Sizes[dim]
	read := func(i int64) float64 { return decode(v.DType, b.at(x, replaced(line, dim, i))) }
	order := make([]int64, v.Sizes[dim])
	for i := range order {
		order[i] = int64(i)
	}
	before := func(p, q float64) bool { return largest && p > q || !largest && p < q }
	sort.SliceStable(order, func(i, j int) bool { return before(read(order[i]), read(order[j])) })
	last := read(order[k-1])
	if !ordered { // those beyond the last one, then those that equal it, by place
		want := slices.Clone(order[:k])
		slices.SortFunc(want, func(p, q int64) int {
			if (read(p) == last) != (read(q) == last) {
				return map[bool]int{true: 1, false: -1}[read(p) == last]
			}
			return int(p - q)
		})
		order = want
	}
	taken := map[int64]bool{}
	for i := range k {
		at := replaced(line, dim, i)
		place := int64(b.at(places, at))
		if taken[place] || place < 0 || place >= v.Sizes[dim] {
			t.Fatalf("line %v: place %d is there twice or is none", line, place)
		}
		taken[place] = true
		if got := b.at(values, at); got != b.at(x, replaced(line, dim, place)) {
			t.Errorf("line %v: element %d is not that of place %d", line, i, place)
		}
		if (k > topKNetwork || !ordered) && place != order[i] {
			t.Errorf("line %v: place %d is %d, want %d", line, i, place, order[i])
		}
		if got, want := decode(v.DType, b.at(values, at)), read(order[i]); got != want {
			t.Errorf("line %v: element %d is %v, want %v", line, i, got, want)
		}
	}
}

// All NaNs are above infinity when it is chosen which elements are taken; -0 is below +0 then, and equals it in the order.
func TestTopKEdges(t *testing.T) {
	negative := math.Copysign(0, -1)
	nan := math.NaN()
	b := newBench(t)
	x := b.tensor(tensor.Float32, []int64{6}, nil)
	b.setFloats(x, []float64{negative, 1, nan, 0, math.Inf(1), negative})
	values, places := b.tensor(tensor.Float32, []int64{4}, nil), b.tensor(tensor.Int64, []int64{4}, nil)
	b.run(operation("aten::topk", args(topKArgs(x, 4, 0, true, false)...), results(values, places)))
	if got, want := b.bits(places), []uint64{1, 2, 4, 3}; !slices.Equal(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
	b.run(operation("aten::topk", args(topKArgs(x, 4, 0, false, false)...), results(values, places)))
	if got, want := b.bits(places), []uint64{0, 3, 5, 1}; !slices.Equal(got, want) {
		t.Errorf("smallest places %v, want %v", got, want)
	}
}

func TestTopKRefusals(t *testing.T) {
	b := newBench(t)
	x, truths := b.tensor(tensor.Float32, []int64{2, 9}, nil), b.tensor(tensor.Bool, []int64{2, 9}, nil)
	values, places := b.tensor(tensor.Float32, []int64{2, 3}, nil), b.tensor(tensor.Int64, []int64{2, 3}, nil)
	booleans := b.tensor(tensor.Bool, []int64{2, 3}, nil)
	call := func(self, values int, k int64, path string) {
		t.Helper()
		expectRefusal(t, b, operation("aten::topk", args(topKArgs(self, k, 1, true, true)...), results(values, places)), path)
	}
	call(x, values, 10, "arguments[1]")
	call(x, values, 4, "results[0]")
	call(x, places, 3, "results[0]")
	call(truths, booleans, 3, "arguments[0]")
	long := b.tensor(tensor.Float32, []int64{2, 100000}, nil)
	call(long, values, 3, "arguments[0]") // PyTorch sorts the whole line
}
