package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() { register(lowerMaxPool, "aten::max_pool2d_with_indices") }

func lowerMaxPool(b *Builder, op *recording.Operation) error {
	self, out, in, to, err := planes(b, op)
	if err != nil {
		return err
	}
	w, err := windowOf(op)
	if err != nil {
		return err
	}
	if err := w.check(op, in, to); err != nil {
		return err
	}
	n := b.Value(out).Numel()
	suffix, err := floatSuffix(op, b.Value(out))
	if err != nil || n == 0 {
		return err
	}
	second, err := Result(op, 1)
	if err != nil {
		return err
	}
	index, err := planeOf(op, b.Value(second), "results[1]")
	if err != nil {
		return err
	}
	if index.sizes != to.sizes || b.Value(second).DType != tensor.Int64 {
		return Refuse(op, "results[1]", "indices are %s of %v", b.Value(second).DType, b.Value(second).Sizes)
	}
	args := append([]any{uint32(n), b.Pointer(self)}, in.args()...)
	args = append(append(args, b.Pointer(out)), to.args()...)
	if b.Needed(second) {
		args = append(args, b.Pointer(second))
	} else {
		args = append(args, uint64(0))
	}
	args = append(args, index.args()...)
	args = append(args, uint32(to.sizes[1]), uint32(to.sizes[2]), uint32(to.sizes[3]), int32(in.sizes[2]), int32(in.sizes[3]),
		w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], w.padding[0], w.padding[1], w.dilation[0], w.dilation[1],
		flag(channelsLast(b.Value(self))))
	b.launch("max_pool2d_with_indices", "max_pool2d_with_indices_"+suffix, n, args)
	return nil
}
