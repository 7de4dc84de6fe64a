package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"math"
	"slices"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// batchNorm is all but the addresses of a batch norm.
type batchNorm struct {
	x       described // without alignment: cuDNN is not told
	epsilon float64
}

// describeBatchNorm checks a batch norm and describes it as PyTorch would.
func describeBatchNorm(b *device.BatchNorm) (batchNorm, error) {
	dims := len(b.X.Sizes)
	if dims < 3 || dims > maxDims || len(b.X.Strides) != dims {
		return batchNorm{}, fmt.Errorf("batch norm of %d dimensions; 3 to %d are possible", dims, maxDims)
	}
	if (b.X.DType != tensor.Float32 && b.X.DType != tensor.Float16) || b.Y.DType != b.X.DType {
		return batchNorm{}, fmt.Errorf("x is %s and y %s; both must be float32 or float16", b.X.DType, b.Y.DType)
	}
	if slices.Min(b.X.Sizes) < 1 || tensor.Numel(b.X.Sizes) > math.MaxInt32 {
		return batchNorm{}, fmt.Errorf("x is %v; 1 to 2^31-1 elements are possible", b.X.Sizes)
	}
	last := isChannelsLast(b.X.Sizes, b.X.Strides)
	sizes, strides := padTo4(b.X.Sizes, b.X.Strides)
	strides = canonicalStrides(sizes, strides, last)
	if !slices.Equal(b.Y.Sizes, b.X.Sizes) || len(b.Y.Strides) != dims {
		return batchNorm{}, fmt.Errorf("y is %v, x is %v", b.Y.Sizes, b.X.Sizes)
	}
	if _, y := padTo4(b.Y.Sizes, b.Y.Strides); !slices.Equal(canonicalStrides(sizes, y, last), strides) {
		return batchNorm{}, fmt.Errorf("y has strides %v, x %v; one description holds for both", b.Y.Strides, b.X.Strides)
	}
	for _, p := range []struct {
		name string
		device.Tensor
	}{{"scale", b.Scale}, {"bias", b.Bias}, {"mean", b.Mean}, {"variance", b.Variance}} {
		if p.DType != tensor.Float32 || tensor.Numel(p.Sizes) != b.X.Sizes[1] || !tensor.IsContiguous(p.Sizes, p.Strides) {
			return batchNorm{}, fmt.Errorf("%s is %s %v; a contiguous float32 [%d] is wanted", p.name, p.DType, p.Sizes, b.X.Sizes[1])
		}
	}
	out := batchNorm{x: described{dtype: b.X.DType, dims: len(sizes)}, epsilon: b.Epsilon}
	copy(out.x.sizes[:], sizes)
	copy(out.x.strides[:], strides)
	return out, nil
}

// padTo4 appends dimensions of size 1: cuDNN wants at least 4.
func padTo4(sizes, strides []int64) (s, t []int64) {
	s, t = slices.Clone(sizes), slices.Clone(strides)
	for len(s) < 4 {
		s, t = append(s, 1), append(t, 1)
	}
	return s, t
}

func (b batchNorm) toC() C.sb_batch_norm {
	c := C.sb_batch_norm{_type: cudnnTypes[b.x.dtype], dims: C.int(b.x.dims), epsilon: C.double(b.epsilon)}
	for i := range b.x.dims {
		c.sizes[i], c.strides[i] = C.int(b.x.sizes[i]), C.int(b.x.strides[i])
	}
	return c
}
