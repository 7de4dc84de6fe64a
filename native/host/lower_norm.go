//go:build linux && amd64

package host

// #include "host.h"
import "C"

import (
	"slices"

	"samebits/native/device"
)

// Batch norm of a training step.

// image is a tensor that a batch norm walks.
type image struct {
	name    string
	t       device.Tensor
	strides *[4]C.int64_t
}

// images checks that tensors have one type and one shape, and gives these; it sets the strides.
func (l *lowering) images(list ...image) (code C.int32_t, sizes []int64, ok bool) {
	first := list[0].t
	for _, i := range list {
		if code, ok = l.sameType(first, i.t); !ok {
			return 0, nil, false
		}
		dims := len(first.Sizes)
		if dims < 2 || dims > 5 || code == C.SB_FLOAT64 {
			l.problem("UNSUPPORTED", "batch norm of %s with %d dimensions", first.DType, dims)
			return 0, nil, false
		}
		if !l.geometry(i.name, i.t, dims) {
			return 0, nil, false
		}
		if !slices.Equal(i.t.Sizes, first.Sizes) {
			l.problem("BAD_SHAPE", "%s is %v and %s is %v", list[0].name, first.Sizes, i.name, i.t.Sizes)
			return 0, nil, false
		}
		size, stride, fits := planes(i.t)
		if !fits {
			l.problem("UNSUPPORTED", "batch norm with sizes %v and strides %v", i.t.Sizes, i.t.Strides)
			return 0, nil, false
		}
		sizes, *i.strides = size, strides(stride)
	}
	return code, sizes, true
}

func (l *lowering) normTraining(c *device.BatchNormTraining, to *C.struct_sb_norm_training) {
	code, sizes, ok := l.images(image{"x", c.X, &to.xs}, image{"y", c.Y, &to.ys})
	if !ok {
		return
	}
	to._type = code
	to.n, to.c, to.h, to.w = C.int64_t(sizes[0]), C.int64_t(sizes[1]), C.int64_t(sizes[2]), C.int64_t(sizes[3])
	to.momentum, to.epsilon = C.double(c.Momentum), C.float(c.Epsilon)
	to.x, to.y = l.tensorAddress("x", c.X), l.tensorAddress("y", c.Y)
	to.scale, to.bias = l.channels("scale", c.Scale, sizes[1]), l.channels("bias", c.Bias, sizes[1])
	to.running_mean = l.channels("running mean", c.RunningMean, sizes[1])
	to.running_variance = l.channels("running variance", c.RunningVariance, sizes[1])
	to.save_mean, to.save_invstd = l.channels("save mean", c.SaveMean, sizes[1]), l.channels("save invstd", c.SaveInvstd, sizes[1])
}

func (l *lowering) normBackward(c *device.BatchNormBackward, to *C.struct_sb_norm_backward) {
	code, sizes, ok := l.images(image{"x", c.X, &to.xs}, image{"dy", c.DY, &to.dys}, image{"dx", c.DX, &to.dxs})
	if !ok {
		return
	}
	to._type = code
	to.n, to.c, to.h, to.w = C.int64_t(sizes[0]), C.int64_t(sizes[1]), C.int64_t(sizes[2]), C.int64_t(sizes[3])
	to.x, to.dy, to.dx = l.tensorAddress("x", c.X), l.tensorAddress("dy", c.DY), l.tensorAddress("dx", c.DX)
	to.scale = l.channels("scale", c.Scale, sizes[1])
	to.save_mean, to.save_invstd = l.channels("save mean", c.SaveMean, sizes[1]), l.channels("save invstd", c.SaveInvstd, sizes[1])
	to.dscale, to.dbias = l.channels("dscale", c.DScale, sizes[1]), l.channels("dbias", c.DBias, sizes[1])
}
