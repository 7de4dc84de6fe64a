package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

const (
	maxDims, maxSpatial = C.SB_MAX_DIMS, C.SB_MAX_SPATIAL
	mostKnobs           = C.SB_MAX_KNOBS
	mostEngineText      = C.SB_TAG - 1 // of that length a text may have been cut off
)

// described is a tensor as cuDNN is told about it.
type described struct {
	dtype     tensor.DType
	dims      int
	sizes     [maxDims]int64
	strides   [maxDims]int64
	alignment int64
}

// convolution is all that cuDNN's choice depends on; equal ones share a plan.
type convolution struct {
	direction                 device.Direction
	x, w, y                   described
	spatial                   int
	padding, stride, dilation [maxSpatial]int64
	deterministic             bool
	noTensorCore              bool
}

// String names everything of a convolution: two that differ have different names.
func (c convolution) String() string {
	var b strings.Builder
	b.WriteString(convolutionNames[c.direction])
	for _, t := range []struct {
		name string
		described
	}{{"x", c.x}, {"w", c.w}, {"y", c.y}} {
		fmt.Fprintf(&b, ", %s %s%v strides %v alignment %d", t.name, t.dtype, t.sizes[:t.dims], t.strides[:t.dims], t.alignment)
	}
	n := c.spatial
	fmt.Fprintf(&b, ", padding %v, stride %v, dilation %v", c.padding[:n], c.stride[:n], c.dilation[:n])
	if c.deterministic {
		b.WriteString(", deterministic")
	}
	if c.noTensorCore {
		b.WriteString(", no tensor cores")
	}
	return b.String()
}

// convolutionAlignment is the most that PyTorch tells cuDNN about an address.
const convolutionAlignment = 32

// describeConvolution checks a convolution and describes it as PyTorch would, with tensors at these addresses. In every
// direction x and w say whether the layout is channels last.
func describeConvolution(c *device.Convolution, x, w, y uint64, o device.Options) (convolution, error) {
	if err := checkConvolution(c); err != nil {
		return convolution{}, err
	}
	last := isChannelsLast(c.X.Sizes, c.X.Strides) || isChannelsLast(c.W.Sizes, c.W.Strides)
	out := convolution{
		direction:     c.Direction,
		x:             describe(c.X, x, last),
		w:             describe(c.W, w, last),
		y:             describe(c.Y, y, last),
		spatial:       len(c.X.Sizes) - 2,
		deterministic: o.Deterministic,
		noTensorCore:  c.X.DType == tensor.Float32 && !o.AllowTF32,
	}
	copy(out.padding[:], c.Padding)
	copy(out.stride[:], c.Stride)
	copy(out.dilation[:], c.Dilation)
	return out, nil
}

func describe(t device.Tensor, address uint64, channelsLast bool) described {
	d := described{dtype: t.DType, dims: len(t.Sizes), alignment: alignmentOf(address, convolutionAlignment)}
	copy(d.sizes[:], t.Sizes)
	copy(d.strides[:], canonicalStrides(t.Sizes, t.Strides, channelsLast))
	return d
}

// checkConvolution refuses what cuDNN would not be asked or would answer with a number only.
func checkConvolution(c *device.Convolution) error {
	if _, known := directions[c.Direction]; !known {
		return fmt.Errorf("direction %d", c.Direction)
	}
	dims := len(c.X.Sizes)
	if dims != 4 && dims != 5 {
		return fmt.Errorf("convolution of %d dimensions; 4 or 5 are possible", dims)
	}
	for _, t := range []struct {
		name string
		device.Tensor
	}{{"x", c.X}, {"w", c.W}, {"y", c.Y}} {
		if len(t.Sizes) != dims || len(t.Strides) != dims {
			return fmt.Errorf("%s has %d sizes and %d strides, x has %d sizes", t.name, len(t.Sizes), len(t.Strides), dims)
		}
		if _, known := cudnnTypes[t.DType]; !known || t.DType != c.X.DType {
			return fmt.Errorf("%s is %s, x is %s; all must be float32, bfloat16 or float16", t.name, t.DType, c.X.DType)
		}
		if slices.Min(t.Sizes) < 1 {
			return fmt.Errorf("%s is empty: %v", t.name, t.Sizes)
		}
	}
	spatial := dims - 2
	if len(c.Padding) != spatial || len(c.Stride) != spatial || len(c.Dilation) != spatial {
		return fmt.Errorf("padding %v, stride %v and dilation %v; %d of each are wanted", c.Padding, c.Stride, c.Dilation, spatial)
	}
	if c.Groups < 1 || c.X.Sizes[1] != c.W.Sizes[1]*c.Groups || c.W.Sizes[0]%c.Groups != 0 {
		return fmt.Errorf("x %v and w %v do not fit with %d groups", c.X.Sizes, c.W.Sizes, c.Groups)
	}
	want := []int64{c.X.Sizes[0], c.W.Sizes[0]}
	for i := range spatial {
		if c.Stride[i] < 1 || c.Dilation[i] < 1 || c.Padding[i] < 0 {
			return fmt.Errorf("padding %v, stride %v, dilation %v", c.Padding, c.Stride, c.Dilation)
		}
		filter := c.Dilation[i]*(c.W.Sizes[i+2]-1) + 1
		want = append(want, (c.X.Sizes[i+2]+2*c.Padding[i]-filter)/c.Stride[i]+1)
	}
	if !slices.Equal(c.Y.Sizes, want) {
		return fmt.Errorf("y is %v, x %v and w %v give %v", c.Y.Sizes, c.X.Sizes, c.W.Sizes, want)
	}
	return nil
}

var directions = map[device.Direction]C.int{
	device.Forward: C.SB_FORWARD, device.BackwardData: C.SB_BACKWARD_DATA, device.BackwardFilter: C.SB_BACKWARD_FILTER,
}

// cudnnTypes gives cudnnDataType_t.
var cudnnTypes = map[tensor.DType]C.int{
	tensor.Float32: C.SB_DNN_FLOAT, tensor.Float16: C.SB_DNN_HALF, tensor.BFloat16: C.SB_DNN_BFLOAT16,
}

func (t described) toC() C.sb_tensor {
	c := C.sb_tensor{_type: cudnnTypes[t.dtype], dims: C.int(t.dims), alignment: C.int64_t(t.alignment)}
	for i := range t.dims {
		c.sizes[i], c.strides[i] = C.int64_t(t.sizes[i]), C.int64_t(t.strides[i])
	}
	return c
}

func (s convolution) toC() C.sb_convolution {
	c := C.sb_convolution{direction: directions[s.direction], x: s.x.toC(), w: s.w.toC(), y: s.y.toC(),
		spatial:       C.int(s.spatial),
		deterministic: toInt(s.deterministic), no_tensor_core: toInt(s.noTensorCore)}
	for i := range s.spatial {
		c.padding[i], c.stride[i], c.dilation[i] = C.int64_t(s.padding[i]), C.int64_t(s.stride[i]), C.int64_t(s.dilation[i])
	}
	return c
}

func toInt(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
