package ops

import (
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

const batchNormThreads = 512 // MAX_BLOCK_SIZE of PyTorch's Normalization.cuh

// batchNormBlock gives the block that reduces one channel: threads along pixels and along images, and so the order of sums.
func batchNormBlock(inner int64) [3]uint32 {
	x := int64(32)
	for x < inner && x < batchNormThreads {
		x *= 2
	}
	return [3]uint32{uint32(x), uint32(batchNormThreads / x), 1}
}

// trainsByPlanes refuses what PyTorch gives to other kernels than those for NCHW: channels-last tensors, and images of one
// pixel, which it takes for such.
func trainsByPlanes(op *recording.Operation, x device.Tensor) error {
	switch x.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16:
	default:
		return Refuse(op, "arguments[0]", "no kernel for %s", x.DType)
	}
	if tensor.Numel(x.Sizes) > math.MaxInt32 {
		return Refuse(op, "arguments[0]", "%v elements need 64-bit offsets", x.Sizes)
	}
	if tensor.Numel(x.Sizes) == 0 {
		return Refuse(op, "arguments[0]", "statistics of no elements")
	}
	if len(x.Sizes) < 2 || !tensor.IsContiguous(x.Sizes, x.Strides) || x.Strides[1] == 1 {
		return Refuse(op, "arguments[0]", "an input of sizes %v with strides %v; in training only NCHW without gaps, with more than one pixel, is done",
			x.Sizes, x.Strides)
	}
	return nil
}

// emitNativeTraining launches three kernels as PyTorch does: mean and variance of each channel; the running statistics and
// 1/sqrt(variance+eps), which takes the variance's place; the normalisation.
func (s *statistics) emitNativeTraining(b *Builder, op *recording.Operation) error {
	x, y := b.Tensor(s.x), b.Tensor(s.y)
	if err := trainsByPlanes(op, x); err != nil {
		return err
	}
	if !inFormat(y.Sizes, y.Strides, false) {
		return Refuse(op, "results[0]", "a result with strides %v", y.Strides)
	}
	saved, err := s.saved(b, op)
	if err != nil {
		return err
	}
	momentum, err := number(op, "momentum")
	if err != nil {
		return err
	}
	suffix, err := Suffix(x.DType)
	if err != nil {
		return err
	}
	const file = "native_batch_norm_training"
	images, channels := x.Sizes[0], x.Sizes[1]
	count := tensor.Numel(x.Sizes) / channels
	mean, invstd := b.Pointer(saved[0]), b.Pointer(saved[1])
	b.Emit(&device.Kernel{File: file, Entry: "batch_norm_statistics_" + suffix,
		Grid: [3]uint32{uint32(channels), 1, 1}, Block: batchNormBlock(count / images),
		Args: []any{x.Pointer, mean, invstd, uint32(images), uint32(channels), uint32(count / images)}})
	runningMean, hasMean := s.values["running_mean"]
	runningVariance, hasVariance := s.values["running_var"]
	switch {
	case hasMean && hasVariance:
		b.launch(file, "batch_norm_update", channels, []any{channels, b.Pointer(runningMean), b.Pointer(runningVariance), mean, invstd,
			float32(momentum), float32(float64(count) / float64(count-1)), float32(s.epsilon)})
	case hasMean || hasVariance:
		return Refuse(op, argumentPath(op, "running_var"), "only one of the running statistics")
	default:
		b.launch("native_batch_norm", "batch_norm_invstd", channels, []any{channels, invstd, invstd, float32(s.epsilon)})
	}
	return s.emitTransform(b, x, y, mean, invstd, false)
}
