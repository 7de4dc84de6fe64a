package ops

import (
	"fmt"
	"slices"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// depthwise is PyTorch's test: every input channel has filters of its own.
func (c *convolution) depthwise() bool {
	in := c.x.Sizes[1]
	return !c.transposed && c.groups > 1 && c.groups == in && c.w.Sizes[0]%in == 0
}

// depthwiseByCuDNN tells which depthwise convolutions PyTorch gives to cuDNN: channels-last ones, and in NCHW those in
// float16 whose sizes were measured to be fast.
func (c *convolution) depthwiseByCuDNN() bool {
	if c.channelsLast() {
		return true
	}
	n, channels, h, w := c.x.Sizes[0], c.x.Sizes[1], c.x.Sizes[2], c.x.Sizes[3]
	if c.x.DType != tensor.Float16 || c.dilation[0] != 1 || c.dilation[1] != 1 || channels < 32 ||
		(c.stride[0] != c.stride[1] && h != 1) {
		return false
	}
	stride, filter := c.stride[1], c.w.Sizes[3]
	if h == 1 && stride == 1 {
		return true
	}
	if c.w.Sizes[2] != filter || (filter != 1 && filter != 3 && filter != 5) || w < 7 || stride > 2 {
		return false
	}
	if stride == 1 {
		return true
	}
	if n == 1 {
		return filter != 1 || w <= 28
	}
	if filter == 1 {
		return n <= 16 && channels >= 128 && w <= 7
	}
	return channels >= 512 || (channels >= 256 && w >= 28)
}

// emitDepthwise launches our copy of PyTorch's kernel, with the bias inside.
func (c *convolution) emitDepthwise(b *Builder) error {
	switch c.x.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16:
	default:
		return Refuse(c.op, "arguments[0]", "no kernel for a depthwise convolution of %s", c.x.DType)
	}
	const limit = 1<<31 - 1
	count := tensor.Numel(c.y.Sizes)
	if count > limit || tensor.Numel(c.x.Sizes) > limit {
		return Refuse(c.op, "arguments[0]", "%v elements need 64-bit offsets", c.x.Sizes)
	}
	if !inFormat(c.y.Sizes, c.y.Strides, false) {
		return Refuse(c.op, "results[0]", "a result with strides %v", c.y.Strides)
	}
	var err error
	if c.x, err = dense(b, c.op, c.x, false); err != nil {
		return err
	}
	if err := c.denseWeight(b, false); err != nil {
		return err
	}
	bias, has := c.w.Pointer, int32(0)
	if c.hasBias {
		if !inFormat(c.bias.Sizes, c.bias.Strides, false) {
			return Refuse(c.op, argumentPath(c.op, "bias"), "a bias with stride %d", c.bias.Strides[0])
		}
		bias, has = c.bias.Pointer, 1
	}
	suffix, err := Suffix(c.x.DType)
	if err != nil {
		return err
	}
	filter := int64(0)
	if k := c.w.Sizes[2]; k == c.w.Sizes[3] && (k == 3 || k == 5) {
		filter = k
	}
	args := []any{count, c.y.Pointer, c.x.Pointer, c.w.Pointer, bias, has}
	for _, n := range []int64{c.y.Sizes[1], c.y.Sizes[1] / c.x.Sizes[1], c.x.Sizes[2], c.x.Sizes[3], c.y.Sizes[2], c.y.Sizes[3],
		c.w.Sizes[2], c.w.Sizes[3], c.stride[0], c.stride[1], c.padding[0], c.padding[1], c.dilation[0], c.dilation[1]} {
		if n > limit {
			return Refuse(c.op, "arguments", "%d does not fit in 32 bits", n)
		}
		args = append(args, int32(n))
	}
	form, block, each := "", int64(256), int64(1)
	if rows := c.depthwiseRows(filter, count); rows > 0 {
		form, block, each = fmt.Sprintf("same%d_", rows), 128, 4*rows
	}
	b.Emit(&device.Kernel{File: "conv_depthwise2d", Entry: fmt.Sprintf("conv_depthwise2d_k%d_%s%s", filter, form, suffix),
		Grid: [3]uint32{uint32(ceilDiv(count, each*block)), 1, 1}, Block: [3]uint32{uint32(block), 1, 1}, Args: args})
	return nil
}

// manyOutputs still occupy every multiprocessor where each thread computes 16 of them.
var manyOutputs int64 = 1 << 21

// depthwiseRows is how many rows of 4 outputs a thread computes where the kernel has a form for it, else 0: one, unless
// so many outputs leave enough threads for every multiprocessor with four.
func (c *convolution) depthwiseRows(filter, count int64) int64 {
	around := filter / 2
	if filter == 0 || c.x.Sizes[3]%4 != 0 || !slices.Equal(c.x.Sizes[2:], c.y.Sizes[2:]) {
		return 0
	}
	for i := range 2 {
		if c.stride[i] != 1 || c.dilation[i] != 1 || c.padding[i] != around {
			return 0
		}
	}
	if count < manyOutputs {
		return 1
	}
	return 4
}
