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

// named is a tensor with what errors call it.
type named struct {
	name string
	device.Tensor
}

// describeBatchNorm checks a batch norm and describes it as PyTorch would.
func describeBatchNorm(b *device.BatchNorm) (batchNorm, error) {
	x, err := describeNorm(b.X, []named{{"y", b.Y}},
		[]named{{"scale", b.Scale}, {"bias", b.Bias}, {"mean", b.Mean}, {"variance", b.Variance}})
	return batchNorm{x: x, epsilon: b.Epsilon}, err
}

// describeNorm describes x. One description must hold for it and for all that are like it, and another one for all that
// have an element a channel.
func describeNorm(x device.Tensor, alike, channels []named) (described, error) {
	dims := len(x.Sizes)
	if dims < 3 || dims > maxDims || len(x.Strides) != dims {
		return described{}, fmt.Errorf("batch norm of %d dimensions; 3 to %d are possible", dims, maxDims)
	}
	if x.DType != tensor.Float32 && x.DType != tensor.Float16 {
		return described{}, fmt.Errorf("x is %s; it must be float32 or float16", x.DType)
	}
	if slices.Min(x.Sizes) < 1 || tensor.Numel(x.Sizes) > math.MaxInt32 {
		return described{}, fmt.Errorf("x is %v; 1 to 2^31-1 elements are possible", x.Sizes)
	}
	last := isChannelsLast(x.Sizes, x.Strides)
	sizes, strides := padTo4(x.Sizes, x.Strides)
	strides = canonicalStrides(sizes, strides, last)
	for _, t := range alike {
		if t.DType != x.DType || !slices.Equal(t.Sizes, x.Sizes) || len(t.Strides) != dims {
			return described{}, fmt.Errorf("%s is %s %v, x is %s %v", t.name, t.DType, t.Sizes, x.DType, x.Sizes)
		}
		if _, own := padTo4(t.Sizes, t.Strides); !slices.Equal(canonicalStrides(sizes, own, last), strides) {
			return described{}, fmt.Errorf("%s has strides %v, x %v; one description holds for both", t.name, t.Strides, x.Strides)
		}
	}
	for _, t := range channels {
		if t.DType != tensor.Float32 || tensor.Numel(t.Sizes) != x.Sizes[1] || !tensor.IsContiguous(t.Sizes, t.Strides) {
			return described{}, fmt.Errorf("%s is %s %v; a contiguous float32 [%d] is wanted", t.name, t.DType, t.Sizes, x.Sizes[1])
		}
	}
	out := described{dtype: x.DType, dims: len(sizes)}
	copy(out.sizes[:], sizes)
	copy(out.strides[:], strides)
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
