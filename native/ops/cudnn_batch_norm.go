package ops

import (
	"math"
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::cudnn_batch_norm", Class: Compute, Lower: lowerCudnnBatchNorm, Writes: writesStatistics,
		Fuses: cudnnFuses})
}

func lowerCudnnBatchNorm(b *Builder, op *recording.Operation) error {
	s, err := readStatistics(b, op, "epsilon")
	if err != nil {
		return err
	}
	for _, p := range []string{"weight", "bias", "running_mean", "running_var"} {
		if _, ok := s.values[p]; !ok {
			return Refuse(op, argumentPath(op, p), "%s is missing: PyTorch gives cuDNN all four", p)
		}
	}
	x, y := b.Tensor(s.x), b.Tensor(s.y)
	if err := cudnnImages(op, &x, &y); err != nil {
		return err
	}
	if tensor.Numel(x.Sizes) == 0 {
		return nil
	}
	if s.training {
		return s.emitCudnnTraining(b, op, x, y)
	}
	if !cudnnByPlanes(b, x) {
		s.emitLibrary(b, x, y)
		return nil
	}
	invstd := b.Precompute(4*x.Sizes[1], []int{s.values["running_var"]}, func(to device.Pointer) {
		b.launch("cudnn_bn", "bn_invstd_f32", x.Sizes[1],
			[]any{x.Sizes[1], to, b.Pointer(s.values["running_var"]), float32(s.epsilon)})
	})
	return s.emitPlanes(b, "cudnn_bn", x, y, b.Pointer(s.values["running_mean"]), invstd)
}

// cudnnByPlanes reports whether kernels of ours do what cuDNN would: they know its arithmetic for NCHW alone.
func cudnnByPlanes(b *Builder, x device.Tensor) bool {
	return !b.Options.LibraryNorms && !looksChannelsLast(x) && tensor.Numel(x.Sizes) <= math.MaxInt32
}

func cudnnFuses(b *Builder, op *recording.Operation) bool {
	s, err := readStatistics(b, op, "epsilon")
	if err != nil || s.training {
		return false
	}
	x := b.Tensor(s.x)
	return cudnnByPlanes(b, x) && tensor.Numel(x.Sizes) > 0
}

func (s *statistics) emitLibrary(b *Builder, x, y device.Tensor) {
	b.Emit(&device.BatchNorm{X: x, Y: y,
		Scale: b.Tensor(s.values["weight"]), Bias: b.Tensor(s.values["bias"]),
		Mean: b.Tensor(s.values["running_mean"]), Variance: b.Tensor(s.values["running_var"]), Epsilon: s.epsilon})
}

// cudnnImages makes of tensors what PyTorch tells cuDNN of them, and refuses what it would not give to cuDNN as it is.
func cudnnImages(op *recording.Operation, images ...*device.Tensor) error {
	x := images[0]
	if x.DType != tensor.Float32 && x.DType != tensor.Float16 {
		return Refuse(op, "arguments[0]", "an input of %s", x.DType)
	}
	rank := len(x.Sizes)
	if rank != 3 && rank != 4 {
		return Refuse(op, "arguments[0]", "an input of %d dimensions, 3 and 4 are done", rank)
	}
	last := looksChannelsLast(*x)
	for _, t := range images {
		if t.DType != x.DType || !slices.Equal(t.Sizes, x.Sizes) {
			return Refuse(op, "arguments[0]", "%s of sizes %v beside %s of sizes %v", x.DType, x.Sizes, t.DType, t.Sizes)
		}
		if !inFormat(t.Sizes, t.Strides, last) {
			return Refuse(op, "arguments[0]", "sizes %v with strides %v, channels-last: %v", t.Sizes, t.Strides, last)
		}
	}
	for _, t := range images {
		t.Strides = formatStrides(t.Sizes, last)
		if rank == 3 { // PyTorch describes it to cuDNN as [N,C,L,1]
			t.Sizes, t.Strides = append(clone(t.Sizes), 1), append(clone(t.Strides), 1)
		}
	}
	return nil
}

// emitCudnnTraining gives cuDNN the three results beside y: both saved statistics, and bytes of its own.
func (s *statistics) emitCudnnTraining(b *Builder, op *recording.Operation, x, y device.Tensor) error {
	saved, err := s.saved(b, op)
	if err != nil {
		return err
	}
	reserve, err := Result(op, 3)
	if err != nil {
		return err
	}
	if r := b.Value(reserve); r.DType != tensor.Uint8 || !r.Contiguous() {
		return Refuse(op, "results[3]", "a reserve of %s with strides %v", r.DType, r.Strides)
	}
	momentum, err := number(op, "exponential_average_factor")
	if err != nil {
		return err
	}
	b.Emit(&device.BatchNormTraining{X: x, Y: y,
		Scale: b.Tensor(s.values["weight"]), Bias: b.Tensor(s.values["bias"]),
		RunningMean: b.Tensor(s.values["running_mean"]), RunningVariance: b.Tensor(s.values["running_var"]),
		SaveMean: b.Tensor(saved[0]), SaveInvstd: b.Tensor(saved[1]), Reserve: b.Tensor(reserve),
		Momentum: momentum, Epsilon: s.epsilon})
	return nil
}

func clone(list []int64) []int64 { return append([]int64(nil), list...) }
