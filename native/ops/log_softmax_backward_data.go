package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() {
	Register(Registration{Name: "aten::_log_softmax_backward_data", Class: Compute, Lower: lowerLogSoftmaxBackward})
}

func lowerLogSoftmaxBackward(b *Builder, op *recording.Operation) error {
	grad, err := ValueArg(op, "grad_output")
	if err != nil {
		return err
	}
	output, err := ValueArg(op, "output")
	if err != nil {
		return err
	}
	dim, err := IntArg(op, "dim")
	if err != nil {
		return err
	}
	to, err := Result(op, 0)
	if err != nil {
		return err
	}
	g, o, dx := b.Value(grad), b.Value(output), b.Value(to)
	if dim < 0 {
		dim += int64(max(len(g.Sizes), 1))
	}
	if !equalSizes(g.Sizes, o.Sizes, dx.Sizes) || g.DType != o.DType || !dx.Contiguous() {
		return Refuse(op, "results[0]", "%s of %v and %s of %v to sizes %v with strides %v", g.DType, g.Sizes, o.DType, o.Sizes, dx.Sizes, dx.Strides)
	}
	suffix, err := Suffix(g.DType)
	if err != nil {
		return Refuse(op, "arguments[0]", "%v", err)
	}
	switch {
	case g.DType == dx.DType && (g.DType == tensor.Float32 || g.DType == tensor.BFloat16 || g.DType == tensor.Float16):
	case g.DType == tensor.Float32 && (dx.DType == tensor.BFloat16 || dx.DType == tensor.Float16):
		to, _ := Suffix(dx.DType)
		suffix += "_" + to
	default:
		return Refuse(op, "results[0]", "gradients of %s to %s", g.DType, dx.DType)
	}
	if g.Numel() == 0 {
		return nil
	}
	rows, width, ok := shortRows(g.Sizes, dim, 1024, 4096/dx.DType.Size())
	if !ok {
		return Refuse(op, argumentPath(op, "dim"), "dimension %d of %v; at most 1024 elements and 4096 bytes of the innermost one are done", dim, g.Sizes)
	}
	gradient, err := dense(b, op, b.Tensor(grad), false)
	if err != nil {
		return err
	}
	result, err := dense(b, op, b.Tensor(output), false)
	if err != nil {
		return err
	}
	b.emitRows("log_softmax_backward_data", "log_softmax_backward_rows%d_"+suffix, rows, width,
		b.Pointer(to), gradient.Pointer, result.Pointer)
	return nil
}
