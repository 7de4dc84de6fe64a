package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

func (n *normed) cudnn(training bool) ([]device.Command, error) {
	empty := n.tensor(tensor.Float32, []int64{0}, nil)
	return n.lower(operation("aten::cudnn_batch_norm", args("input", n.x, "weight", n.weight, "bias", n.bias,
		"running_mean", n.mean, "running_var", n.varian, "training", training,
		"exponential_average_factor", 0.1, "epsilon", testEps), results(n.y, empty, empty, empty)))
}

// The library is told canonical strides, and four dimensions.
func TestCudnnBatchNormGeometry(t *testing.T) {
	tests := []struct {
		name                   string
		sizes, strides         []int64
		wantSizes, wantStrides []int64
	}{
		{"an image", []int64{2, 3, 4, 5}, nil, []int64{2, 3, 4, 5}, []int64{60, 20, 5, 1}},
		{"a slice of channels of one image", []int64{1, 3, 4, 5}, []int64{120, 20, 5, 1}, []int64{1, 3, 4, 5}, []int64{60, 20, 5, 1}},
		{"channels-last", []int64{2, 3, 4, 5}, []int64{60, 1, 15, 3}, []int64{2, 3, 4, 5}, []int64{60, 1, 15, 3}},
		{"a sequence", []int64{2, 3, 7}, nil, []int64{2, 3, 7, 1}, []int64{21, 7, 1, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := newNormed(t, tensor.Float32, test.sizes, test.strides, test.strides)
			n.options.LibraryNorms = true
			commands, err := n.cudnn(false)
			if err != nil {
				t.Fatal(err)
			}
			bn, ok := commands[0].(*device.BatchNorm)
			if len(commands) != 1 || !ok {
				t.Fatalf("commands %s", describe(commands))
			}
			if !slices.Equal(bn.X.Sizes, test.wantSizes) || !slices.Equal(bn.X.Strides, test.wantStrides) ||
				!slices.Equal(bn.Y.Sizes, test.wantSizes) || !slices.Equal(bn.Y.Strides, test.wantStrides) {
				t.Errorf("input %v %v, result %v %v", bn.X.Sizes, bn.X.Strides, bn.Y.Sizes, bn.Y.Strides)
			}
			if bn.Epsilon != testEps || bn.Mean.Storage == bn.Variance.Storage {
				t.Errorf("epsilon %v, mean and variance on storages %d and %d", bn.Epsilon, bn.Mean.Storage, bn.Variance.Storage)
			}
		})
	}
}

// NCHW is done by kernels of ours, channels-last by the library.
func TestCudnnBatchNormByPlanes(t *testing.T) {
	tests := []struct {
		name           string
		dtype          tensor.DType
		sizes, strides []int64
		entry          string // "": the library's
		grid, block    uint32
	}{
		{"packs", tensor.Float32, []int64{1, 24, 40, 40}, nil, "bn_inference_f32_packs", 4, 128},
		{"half precision", tensor.Float16, []int64{1, 24, 40, 40}, nil, "bn_inference_f16_packs", 2, 128},
		{"single elements", tensor.Float32, []int64{1, 3, 7, 7}, nil, "bn_inference_f32", 1, 64},
		{"a large plane", tensor.Float32, []int64{1, 64, 640, 640}, nil, "bn_inference_f32_packs", 200, 128},
		{"channels-last", tensor.Float32, []int64{2, 3, 4, 5}, []int64{60, 1, 15, 3}, "", 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := newNormed(t, test.dtype, []int64{1, test.sizes[1], 1}, nil, nil)
			n.x, n.y = n.described(test.dtype, test.sizes, test.strides), n.described(test.dtype, test.sizes, test.strides)
			commands, err := n.cudnn(false)
			if err != nil {
				t.Fatal(err)
			}
			if test.entry == "" {
				if _, ok := commands[0].(*device.BatchNorm); !ok || len(commands) != 1 {
					t.Fatalf("commands %s, wanted the library's", describe(commands))
				}
				return
			}
			k := commands[len(commands)-1].(*device.Kernel)
			planes := uint32(test.sizes[0] * test.sizes[1])
			if k.Entry != test.entry || k.Grid != [3]uint32{planes, test.grid, 1} || k.Block != [3]uint32{test.block, 1, 1} {
				t.Errorf("%s with %v blocks of %v, wanted %s with %d a plane of %d", k.Entry, k.Grid, k.Block, test.entry, test.grid, test.block)
			}
		})
	}
}

func TestCudnnBatchNorm(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16} {
		t.Run(fmt.Sprint(dtype), func(t *testing.T) {
			n := newNormed(t, dtype, []int64{2, 3, 4, 5}, nil, nil)
			empty := n.tensor(tensor.Float32, []int64{0}, nil)
			n.run(operation("aten::cudnn_batch_norm", args("input", n.x, "weight", n.weight, "bias", n.bias,
				"running_mean", n.mean, "running_var", n.varian, "training", false,
				"exponential_average_factor", 0.1, "epsilon", testEps), results(n.y, empty, empty, empty)))
			relative := map[tensor.DType]float64{tensor.Float32: 0x1p-21, tensor.Float16: 0x1p-10}[dtype]
			got := n.floats(n.y)
			for i, x := range n.floats(n.x) {
				c := i / 20 % 3
				product := n.floats(n.weight)[c] * (x - n.floats(n.mean)[c]) / math.Sqrt(n.floats(n.varian)[c]+testEps)
				want := product + n.floats(n.bias)[c]
				if math.Abs(got[i]-want) > relative*(math.Abs(product)+math.Abs(want)) {
					t.Errorf("element %d is %v, wanted %v", i, got[i], want)
				}
			}
		})
	}
}

func TestBatchNormRefusals(t *testing.T) {
	n := newNormed(t, tensor.Float32, []int64{2, 3, 4, 5}, nil, nil)
	if _, err := n.cudnn(true); err == nil {
		t.Error("training without saved statistics was not refused")
	}
	gaps := newNormed(t, tensor.Float32, []int64{2, 3, 4, 5}, []int64{120, 40, 10, 2}, nil)
	if _, err := gaps.cudnn(false); err == nil {
		t.Error("an input with gaps was not refused")
	}
	bf16 := newNormed(t, tensor.BFloat16, []int64{2, 3, 4, 5}, nil, nil)
	if _, err := bf16.cudnn(false); err == nil {
		t.Error("bfloat16, which PyTorch never gives to cuDNN, was not refused")
	}
	n.varian = n.tensor(tensor.BFloat16, []int64{3}, nil)
	if _, err := n.cudnn(false); err == nil {
		t.Error("a variance in bfloat16 was not refused")
	}
}
