package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() {
	Register(Registration{Name: "aten::_safe_softmax", Class: Compute, Lower: lowerSafeSoftmax})
}

// lowerSafeSoftmax does at once what PyTorch composes: softmax, then zeros for rows of nothing but -Inf.
func lowerSafeSoftmax(b *Builder, op *recording.Operation) error {
	dtype, path, err := find(op, "dtype")
	if err != nil {
		return err
	}
	in, err := ValueArg(op, "self")
	if err != nil {
		return err
	}
	halfToFloat := false
	if from := b.Value(in).DType; dtype.Kind == recording.DTypeOf && dtype.DType != from {
		if halfToFloat = from == tensor.Float16 && dtype.DType == tensor.Float32; !halfToFloat {
			return Refuse(op, path, "%s to %s would need a conversion first", from, dtype.DType)
		}
	}
	s, err := readSoftmaxTo(b, op, halfToFloat)
	if err != nil {
		return err
	}
	s.safe = true
	return s.emit(b, op)
}
