package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() { register(lowerMaxPoolBackward, "aten::max_pool2d_with_indices_backward") }

func lowerMaxPoolBackward(b *Builder, op *recording.Operation) error {
	self, out, in, to, err := planes(b, op)
	if err != nil {
		return err
	}
	w, err := windowOf(op)
	if err != nil {
		return err
	}
	if channelsLast(b.Value(self)) {
		return Refuse(op, argumentPath(op, "self"), "channels-last tensors, for which PyTorch has another kernel, are not done")
	}
	if in.sizes != to.sizes {
		return Refuse(op, "results[0]", "a gradient of sizes %v for an input of sizes %v", b.Value(out).Sizes, b.Value(self).Sizes)
	}
	suffix, err := floatSuffix(op, b.Value(out))
	if err != nil || b.Value(out).Numel() == 0 {
		return err
	}
	var given [2]plane
	args := append([]any{b.Pointer(out)}, to.args()...)
	for i, name := range []string{"grad_output", "indices"} {
		v, err := ValueArg(op, name)
		if err != nil {
			return err
		}
		if given[i], err = planeOf(op, b.Value(v), argumentPath(op, name)); err != nil {
			return err
		}
		if want := [2]tensor.DType{b.Value(out).DType, tensor.Int64}[i]; b.Value(v).DType != want {
			return Refuse(op, argumentPath(op, name), "%s is %s, wanted %s", name, b.Value(v).DType, want)
		}
		args = append(append(args, b.Pointer(v)), given[i].args()...)
	}
	if given[0].sizes != given[1].sizes || given[0].sizes[0] != in.sizes[0] || given[0].sizes[1] != in.sizes[1] {
		return Refuse(op, argumentPath(op, "indices"), "gradients of %v, indices of %v and an input of %v", given[0].sizes, given[1].sizes, in.sizes)
	}
	if err := w.check(op, in, given[0]); err != nil {
		return err
	}
	more := append(w.args(in), int32(given[0].sizes[2]), int32(given[0].sizes[3]))
	b.launchOutputs("max_pool2d_with_indices_backward", "max_pool2d_with_indices_backward_"+suffix, to, false, args, more...)
	return nil
}
