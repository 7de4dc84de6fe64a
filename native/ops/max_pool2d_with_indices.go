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
	suffix, err := floatSuffix(op, b.Value(out))
	if err != nil || b.Value(out).Numel() == 0 {
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
	args := append([]any{b.Pointer(self)}, in.args()...)
	args = append(append(args, b.Pointer(out)), to.args()...)
	if b.Needed(second) {
		args = append(args, b.Pointer(second))
	} else {
		args = append(args, uint64(0))
	}
	args = append(args, index.args()...)
	last := channelsLast(b.Value(self))
	entry := "max_pool2d_with_indices_" + w.suffix(suffix, in, last, 2, 3, 5)
	b.launchOutputs("max_pool2d_with_indices", entry, to, last, args, w.args(in)...)
	return nil
}
