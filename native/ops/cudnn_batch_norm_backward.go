package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::cudnn_batch_norm_backward", Class: Compute, Lower: lowerCudnnBatchNormBackward})
}

func lowerCudnnBatchNormBackward(b *Builder, op *recording.Operation) error {
	var values [6]int
	for i, name := range []string{"input", "grad_output", "weight", "save_mean", "save_var", "reserveSpace"} {
		v, err := ValueArg(op, name)
		if err != nil {
			return err
		}
		values[i] = v
	}
	var out [3]int
	for i := range out {
		v, err := Result(op, i)
		if err != nil {
			return err
		}
		out[i] = v
	}
	epsilon, err := number(op, "epsilon")
	if err != nil {
		return err
	}
	x, dy, dx := b.Tensor(values[0]), b.Tensor(values[1]), b.Tensor(out[0])
	if len(x.Sizes) < 2 {
		return Refuse(op, "arguments[0]", "an input of sizes %v", x.Sizes)
	}
	if tensor.Numel(x.Sizes) == 0 {
		return Refuse(op, "arguments[0]", "the gradients of no elements")
	}
	for _, v := range []int{values[2], values[3], values[4], out[1], out[2]} {
		if err := perChannel(b, op, "arguments", v, x.Sizes[1]); err != nil {
			return err
		}
	}
	reserve := b.Value(values[5])
	if reserve.DType != tensor.Uint8 || !reserve.Contiguous() {
		return Refuse(op, argumentPath(op, "reserveSpace"), "a reserve of %s with strides %v", reserve.DType, reserve.Strides)
	}
	// PyTorch makes the gradient dense in the input's format.
	if dy, err = dense(b, op, dy, looksChannelsLast(x)); err != nil {
		return err
	}
	if err := cudnnImages(op, &x, &dy, &dx); err != nil {
		return err
	}
	b.Emit(&device.BatchNormBackward{X: x, DY: dy, DX: dx,
		Scale: b.Tensor(values[2]), DScale: b.Tensor(out[1]), DBias: b.Tensor(out[2]),
		SaveMean: b.Tensor(values[3]), SaveInvstd: b.Tensor(values[4]), Reserve: b.Tensor(values[5]), Epsilon: epsilon})
	return nil
}
