package tensor_test

import (
	"slices"
	"testing"

	"samebits/bridge/tensor"
)

func TestDTypes(t *testing.T) {
	names := []string{"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"}
	sizes := []int64{1, 1, 1, 2, 4, 8, 2, 2, 4, 8}
	for i, name := range names {
		d, err := tensor.ParseDType(name)
		if err != nil || !d.Valid() || d.String() != name || d.Size() != sizes[i] || d.Float() != (i >= 6) {
			t.Errorf("%s is %v of %d bytes, float %v (%v)", name, d, d.Size(), d.Float(), err)
		}
	}
	for _, name := range []string{"", "invalid", "float8_e4m3fn", "Float32"} {
		if d, err := tensor.ParseDType(name); err == nil {
			t.Errorf("%q is %v", name, d)
		}
	}
	for d, name := range map[tensor.DType]string{tensor.Invalid: "dtype(0)", tensor.Float64 + 1: "dtype(11)", 255: "dtype(255)"} {
		if d.Valid() || d.Size() != 0 || d.Float() || d.String() != name {
			t.Errorf("%v counts as a type", d)
		}
	}
}

func TestContiguity(t *testing.T) {
	for _, c := range []struct {
		name           string
		sizes, strides []int64
		own            []int64 // the strides that PyTorch gives such a tensor
		contiguous     bool
	}{
		{"scalar", nil, nil, []int64{}, true},
		{"matrix", []int64{2, 3}, []int64{3, 1}, []int64{3, 1}, true},
		{"transposed", []int64{2, 3}, []int64{1, 2}, []int64{3, 1}, false},
		{"any stride where the size is one", []int64{2, 1, 3}, []int64{3, 77, 1}, []int64{3, 3, 1}, true},
		{"expanded", []int64{2, 3}, []int64{0, 1}, []int64{3, 1}, false},
		{"empty", []int64{2, 0, 3}, []int64{9, 9, 9}, []int64{3, 3, 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tensor.IsContiguous(c.sizes, c.strides); got != c.contiguous {
				t.Errorf("contiguous %v", got)
			}
			own := tensor.ContiguousStrides(c.sizes)
			if !slices.Equal(own, c.own) || !tensor.IsContiguous(c.sizes, own) {
				t.Errorf("own strides %v, want %v", own, c.own)
			}
		})
	}
}

func TestSpec(t *testing.T) {
	s := tensor.Spec{Name: "images", DType: tensor.BFloat16, Sizes: []int64{4, 3, 320, 320}}
	if s.Numel() != 1228800 || s.Bytes() != 2457600 {
		t.Errorf("%d elements, %d bytes", s.Numel(), s.Bytes())
	}
}
