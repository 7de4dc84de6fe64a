package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"samebits/bridge/tensor"
)

// A safe softmax has the bits of a softmax, but zeros where a row is nothing but -Inf. A NaN is something.
func TestSafeSoftmax(t *testing.T) {
	tests := []struct {
		name  string
		sizes []int64
		dim   int64
	}{
		{"rows of 1", []int64{70, 1}, 1},
		{"rows of 5", []int64{50, 5}, -1},
		{"rows of 18", []int64{9, 18}, 1},
		{"rows of 50", []int64{1, 3, 7, 50}, -1},
		{"rows of 300", []int64{9, 300}, 1},
		{"rows of 2048", []int64{9, 2048}, 1},
		{"elements", []int64{9, 2500}, 1},
		{"vectors", []int64{9, 9232}, 1},
		{"spatial", []int64{2, 16, 9}, 1},
		{"spatial, shared positions", []int64{2, 100, 9}, 1},
	}
	for _, test := range tests {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			for _, out := range []tensor.DType{d, tensor.Float32} {
				if out != d && d == tensor.BFloat16 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s to %s", test.name, d, out), func(t *testing.T) {
					checkSafeSoftmax(t, test.sizes, test.dim, d, out)
				})
			}
		}
	}
}

func checkSafeSoftmax(t *testing.T, sizes []int64, dim int64, d, out tensor.DType) {
	b := newBench(t)
	x, y, plain := b.tensor(d, sizes, nil), b.tensor(out, sizes, nil), b.tensor(out, sizes, nil)
	at := (int(dim) + len(sizes)) % len(sizes)
	width, inner := int(sizes[at]), int(tensor.Numel(sizes[at+1:]))
	row := func(i int) int { return i/(width*inner)*inner + i%inner }
	state := uint64(17)
	data := randoms(&state, int(tensor.Numel(sizes)))
	seen := map[int]int{}
	for i := range data {
		r := row(i)
		switch d := seen[r]; {
		case r%4 == 1, r%4 == 2 && d != width/2, r%4 == 3 && d != width-1:
			data[i] = math.Inf(-1)
		case r%4 == 3:
			data[i] = math.NaN()
		}
		seen[r]++
	}
	b.setFloats(x, data)
	var dtype any
	if out != d {
		dtype = out
	}
	b.run(operation("aten::_safe_softmax", args("self", x, "dim", dim, "dtype", dtype), results(y)))
	b.run(operation("aten::_softmax", args("self", x, "dim", dim, "half_to_float", out != d), results(plain)))
	got, want := b.bits(y), slices.Clone(b.bits(plain))
	for i := range want {
		if row(i)%4 == 1 {
			want[i] = 0
		}
		if got[i] != want[i] {
			t.Fatalf("element %d of row %d is %#x, wanted %#x", i, row(i), got[i], want[i])
		}
	}
}

func TestSafeSoftmaxRefusals(t *testing.T) {
	b := newBench(t)
	x, y := b.tensor(tensor.BFloat16, []int64{2, 3}, nil), b.tensor(tensor.Float32, []int64{2, 3}, nil)
	op := operation("aten::_safe_softmax", args("self", x, "dim", int64(1), "dtype", tensor.Float32), results(y))
	if _, err := b.lower(op); err == nil {
		t.Error("a conversion was not refused")
	}
}
