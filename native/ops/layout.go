package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// This file is PyTorch's notion of memory formats. A tensor carries no format: it is guessed from strides, and which
// format a library is called with decides its algorithm.

// looksChannelsLast reports whether PyTorch would guess that channels are innermost.
func looksChannelsLast(t device.Tensor) bool {
	return channelsLast(&recording.Value{Sizes: t.Sizes, Strides: t.Strides})
}

// channelsLastStrides gives the strides of a dense NHWC tensor whose sizes are in NCHW order.
func channelsLastStrides(sizes []int64) []int64 {
	c, h, w := max(sizes[1], 1), max(sizes[2], 1), max(sizes[3], 1)
	return []int64{h * w * c, 1, w * c, c}
}

// formatStrides gives the strides of a dense tensor. They are those that PyTorch tells cuDNN, which it gives a canonical
// stride for every dimension of size 1.
func formatStrides(sizes []int64, last bool) []int64 {
	if last {
		return channelsLastStrides(sizes)
	}
	return tensor.ContiguousStrides(sizes)
}

// inFormat reports whether a tensor is dense in a format; strides of dimensions of size 1 do not count.
func inFormat(sizes, strides []int64, last bool) bool {
	want := formatStrides(sizes, last)
	for d, size := range sizes {
		if size == 0 {
			return true
		}
		if size != 1 && strides[d] != want[d] {
			return false
		}
	}
	return true
}

// dense gives t in a format, with canonical strides: as it is, or, as PyTorch's contiguous does, copied into scratch.
func dense(b *Builder, op *recording.Operation, t device.Tensor, last bool) (device.Tensor, error) {
	want := formatStrides(t.Sizes, last)
	if inFormat(t.Sizes, t.Strides, last) {
		t.Strides = want
		return t, nil
	}
	to := t
	to.Pointer, to.Strides = b.Scratch(tensor.Numel(t.Sizes)*t.DType.Size()), want
	return to, copyTensor(b, op, to, t)
}
