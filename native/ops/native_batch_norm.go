package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::native_batch_norm", Class: Compute, Lower: lowerNativeBatchNorm, Writes: writesStatistics,
		Fuses: nativeFuses})
}

// lowerNativeBatchNorm launches two kernels as PyTorch does: 1/sqrt(variance+eps) of each channel, which depends on
// parameters alone, and the normalisation. In evaluation save_mean is running_mean and save_invstd that first result.
func lowerNativeBatchNorm(b *Builder, op *recording.Operation) error {
	s, err := readStatistics(b, op, "eps")
	if err != nil {
		return err
	}
	if s.training {
		return s.emitNativeTraining(b, op)
	}
	mean, ok := s.values["running_mean"]
	if !ok {
		return Refuse(op, argumentPath(op, "running_mean"), "running_mean is missing")
	}
	variance, ok := s.values["running_var"]
	if !ok {
		return Refuse(op, argumentPath(op, "running_var"), "running_var is missing")
	}
	x, y := b.Tensor(s.x), b.Tensor(s.y)
	switch x.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16:
	default:
		return Refuse(op, "arguments[0]", "no kernel for %s", x.DType)
	}
	channels, count := x.Sizes[1], tensor.Numel(x.Sizes)
	if count > 1<<31-1 {
		return Refuse(op, "arguments[0]", "%v elements need 64-bit offsets", x.Sizes)
	}
	if count == 0 {
		return nil
	}
	invstd := b.Precompute(4*channels, []int{variance}, func(to device.Pointer) {
		b.launch("native_batch_norm", "batch_norm_invstd", channels,
			[]any{channels, to, b.Pointer(variance), float32(s.epsilon)})
	})
	if err := s.emitSaved(b, op, mean, invstd); err != nil {
		return err
	}
	last := looksChannelsLast(y)
	if !inFormat(y.Sizes, y.Strides, last) {
		return Refuse(op, "results[0]", "a result with strides %v", y.Strides)
	}
	if x, err = dense(b, op, x, last); err != nil {
		return err
	}
	return s.emitTransform(b, x, y, b.Pointer(mean), invstd, last)
}

func nativeFuses(b *Builder, op *recording.Operation) bool {
	s, err := readStatistics(b, op, "eps")
	if err != nil || s.training {
		return false
	}
	y := b.Tensor(s.y)
	return len(y.Sizes) > 2 && !looksChannelsLast(y) && tensor.Numel(y.Sizes) > 0
}

// emitSaved writes save_mean and save_invstd if anybody reads them. Recordings made on the CPU have them empty.
func (s *statistics) emitSaved(b *Builder, op *recording.Operation, mean int, invstd device.Pointer) error {
	for i, from := range []device.Pointer{b.Pointer(mean), invstd} {
		saved, err := Result(op, i+1)
		if err != nil {
			return err
		}
		v := b.Value(saved)
		if !b.Needed(saved) || v.Numel() == 0 {
			continue
		}
		if v.DType != tensor.Float32 || !v.Contiguous() || v.Numel() != b.Value(mean).Numel() {
			return Refuse(op, "results", "saved statistics of %s with sizes %v", v.DType, v.Sizes)
		}
		b.Emit(&device.Copy{To: b.Pointer(saved), From: from, Bytes: 4 * v.Numel()})
	}
	return nil
}

func (s *statistics) emitTransform(b *Builder, x, y device.Tensor, mean, invstd device.Pointer, last bool) error {
	if !last && len(x.Sizes) > 2 {
		return s.emitPlanes(b, "native_batch_norm", x, y, mean, invstd)
	}
	suffix, err := Suffix(x.DType)
	if err != nil {
		return err
	}
	count := tensor.Numel(x.Sizes)
	b.launch("native_batch_norm", "batch_norm_transform_last_"+suffix, count,
		append(append([]any{count}, s.operands(b, x, y, mean, invstd)...), uint32(x.Sizes[1])))
	return nil
}
