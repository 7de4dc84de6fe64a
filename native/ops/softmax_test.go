package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// Which kernel, and how it is launched: PyTorch's own choice, seen in its profiler for the first two.
func TestSoftmaxLaunch(t *testing.T) {
	tests := []struct {
		name        string
		sizes       []int64
		dim         int64
		dtype       tensor.DType
		float       bool
		aligned     bool
		entry       string
		grid, block [3]uint32
	}{
		{"distances of boxes", []int64{1, 4, 16, 8400}, 2, tensor.Float32, false, true, "softmax_spatial", [3]uint32{4, 9, 1}, [3]uint32{1, 1024, 1}},
		{"of a batch of 4", []int64{4, 4, 16, 2100}, 2, tensor.Float32, false, true, "softmax_spatial", [3]uint32{16, 3, 1}, [3]uint32{1, 1024, 1}},
		{"threads share a position", []int64{3, 100, 50}, 1, tensor.Float32, false, true, "softmax_spatial", [3]uint32{3, 1, 1}, [3]uint32{16, 50, 1}},
		{"one element", []int64{5, 1}, 1, tensor.Float32, false, true, "softmax_rows1", [3]uint32{1, 1, 1}, [3]uint32{1, 128, 1}},
		{"a few", []int64{50, 5}, 1, tensor.BFloat16, false, true, "softmax_rows1", [3]uint32{4, 1, 1}, [3]uint32{8, 16, 1}},
		{"a warp", []int64{9, 33}, 1, tensor.Float32, false, true, "softmax_rows2", [3]uint32{3, 1, 1}, [3]uint32{32, 4, 1}},
		{"the longest row of a warp", []int64{1, 2048}, 1, tensor.Float32, false, true, "softmax_rows64", [3]uint32{1, 1, 1}, [3]uint32{32, 4, 1}},
		{"elements", []int64{2, 2049}, 1, tensor.Float32, false, true, "softmax_block 0", [3]uint32{2, 1, 1}, [3]uint32{1024, 1, 1}},
		{"vectors", []int64{2, 10000}, 1, tensor.Float32, false, true, "softmax_block 1", [3]uint32{2, 1, 1}, [3]uint32{1024, 1, 1}},
		{"too long for shared memory", []int64{2, 20000}, 1, tensor.Float32, false, true, "softmax_block 2", [3]uint32{2, 1, 1}, [3]uint32{1024, 1, 1}},
		{"misaligned", []int64{2, 10000}, 1, tensor.Float32, false, false, "softmax_block 2", [3]uint32{2, 1, 1}, [3]uint32{1024, 1, 1}},
		{"no whole vectors", []int64{2, 10001}, 1, tensor.Float32, false, true, "softmax_block 2", [3]uint32{2, 1, 1}, [3]uint32{1024, 1, 1}},
		{"half to float leaves a warp sooner", []int64{1, 1, 1600}, 2, tensor.Float16, true, true, "softmax_block 1", [3]uint32{1, 1, 1}, [3]uint32{1024, 1, 1}},
		{"its longest row of a warp", []int64{2, 1024}, 1, tensor.Float16, true, true, "softmax_rows32", [3]uint32{1, 1, 1}, [3]uint32{32, 4, 1}},
		{"half to float takes vectors sooner", []int64{2, 4096}, 1, tensor.Float16, true, true, "softmax_block 1", [3]uint32{2, 1, 1}, [3]uint32{1024, 1, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k := softmaxLaunch(test.sizes, test.dim, test.dtype, test.float, test.aligned)
			entry := k.Entry
			if entry == "softmax_block" {
				entry = fmt.Sprintf("%s %d", entry, k.Args[1])
			}
			if entry != test.entry || k.Grid != test.grid || k.Block != test.block {
				t.Errorf("%s grid %v block %v, wanted %s grid %v block %v", entry, k.Grid, k.Block, test.entry, test.grid, test.block)
			}
		})
	}
}

// Every kernel agrees with float64 up to the errors of expf and of a float sum.
func TestSoftmax(t *testing.T) {
	tests := []struct {
		name    string
		sizes   []int64
		strides []int64
		offset  int64
		dim     int64
	}{
		{"spatial", []int64{2, 16, 300}, nil, 0, 1},
		{"spatial, shared positions", []int64{2, 100, 50}, nil, 0, 1},
		{"rows of 1", []int64{7, 1}, nil, 0, 1},
		{"rows of 5", []int64{50, 5}, nil, 0, -1},
		{"rows of 33", []int64{9, 33}, nil, 0, 1},
		{"rows of 1000", []int64{3, 1000}, nil, 0, 1},
		{"rows of 2048", []int64{2, 2048}, nil, 0, 1},
		{"elements", []int64{2, 2500}, nil, 0, 1},
		{"vectors", []int64{2, 9232}, nil, 0, 1},
		{"vectors from aligned", []int64{2, 9223}, nil, 1, 1},
		{"long, with a tail of vectors", []int64{1, 28000}, nil, 0, 1},
		{"a transposed input", []int64{6, 40}, []int64{1, 6}, 0, 1},
		{"a vector", []int64{100}, nil, 0, 0},
	}
	types := []struct {
		in, out tensor.DType
	}{{tensor.Float32, tensor.Float32}, {tensor.BFloat16, tensor.BFloat16}, {tensor.Float16, tensor.Float16}, {tensor.Float16, tensor.Float32}}
	for _, test := range tests {
		for _, d := range types {
			t.Run(fmt.Sprintf("%s/%s to %s", test.name, d.in, d.out), func(t *testing.T) {
				checkSoftmax(t, test.sizes, test.strides, test.offset, test.dim, d.in, d.out)
			})
		}
	}
}

func checkSoftmax(t *testing.T, sizes, strides []int64, offset, dim int64, in, out tensor.DType) {
	if strides == nil {
		strides = tensor.ContiguousStrides(sizes)
	}
	b := newBench(t)
	x, y := b.tensorAt(in, sizes, strides, offset), b.tensor(out, sizes, nil)
	state := uint64(3)
	b.setFloats(x, randoms(&state, int(tensor.Numel(sizes))))
	b.run(operation("aten::_softmax", args("self", x, "dim", dim, "half_to_float", in != out), results(y)))
	inputs, got := b.floats(x), b.floats(y)
	if dim < 0 {
		dim += int64(len(sizes))
	}
	inner := int(tensor.Numel(sizes[dim+1:]))
	width := int(sizes[dim])
	for row := range len(inputs) / width {
		first := row/inner*inner*width + row%inner
		most, sum := math.Inf(-1), 0.0
		for d := range width {
			most = max(most, inputs[first+d*inner])
		}
		for d := range width {
			sum += math.Exp(inputs[first+d*inner] - most)
		}
		for d := range width {
			i := first + d*inner
			want := math.Exp(inputs[i]-most) / sum
			rounding := map[tensor.DType]float64{tensor.Float32: 0x1p-24, tensor.BFloat16: 0x1p-8, tensor.Float16: 0x1p-11}[out]
			tolerance := want*(rounding+16*0x1p-24) + 0x1p-25 // float16 is denormal below 2^-14
			if math.Abs(got[i]-want) > tolerance {
				t.Fatalf("element %d: %v, wanted %v within %g", i, got[i], want, tolerance)
			}
		}
	}
}

// A NaN spreads over its row and nowhere else; a row of -Inf is NaN.
func TestSoftmaxNaN(t *testing.T) {
	for _, width := range []int64{4, 40, 3000} {
		for _, inner := range []int64{1, 3} {
			t.Run(fmt.Sprintf("%d by %d", width, inner), func(t *testing.T) {
				b := newBench(t)
				sizes := []int64{3, width, inner}
				x, y := b.tensor(tensor.Float32, sizes, nil), b.tensor(tensor.Float32, sizes, nil)
				data := make([]float64, 3*width*inner)
				data[width*inner/2] = math.NaN()
				for d := range width {
					data[(width+d)*inner] = math.Inf(-1)
				}
				b.setFloats(x, data)
				b.run(operation("aten::_softmax", args("self", x, "dim", int64(1), "half_to_float", false), results(y)))
				for i, v := range b.floats(y) {
					row, position := int64(i)/(width*inner), int64(i)%inner
					bad := (row == 0 && position == width*inner/2%inner) || (row == 1 && position == 0)
					if (v != v) != bad {
						t.Fatalf("element %d is %v", i, v)
					}
				}
			})
		}
	}
}

func TestSoftmaxRefusals(t *testing.T) {
	tests := []struct {
		name    string
		in, out tensor.DType
		dim     int64
		float   bool
	}{
		{"integers", tensor.Int64, tensor.Int64, 1, false},
		{"a result of another type", tensor.Float16, tensor.Float32, 1, false},
		{"a dimension that is not there", tensor.Float32, tensor.Float32, 2, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			x, y := b.tensor(test.in, []int64{2, 3}, nil), b.tensor(test.out, []int64{2, 3}, nil)
			op := operation("aten::_softmax", args("self", x, "dim", test.dim, "half_to_float", test.float), results(y))
			if _, err := b.lower(op); err == nil {
				t.Error("it was not refused")
			}
		})
	}
}
