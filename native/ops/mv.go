package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::mv", Class: Compute, Lower: lowerMv})
}

// lowerMv multiplies a matrix by a vector. PyTorch copies a matrix whose strides fit neither way, and a vector that is
// one element repeated.
func lowerMv(b *Builder, op *recording.Operation) error {
	self, err := ValueArg(op, "self")
	if err != nil {
		return err
	}
	vec, err := ValueArg(op, "vec")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	a, x, d := b.Tensor(self), b.Tensor(vec), b.Tensor(out)
	if len(a.Sizes) != 2 || len(x.Sizes) != 1 || len(d.Sizes) != 1 || a.Sizes[1] != x.Sizes[0] || a.Sizes[0] != d.Sizes[0] {
		return Refuse(op, "results[0]", "sizes %v times %v to %v", a.Sizes, x.Sizes, d.Sizes)
	}
	switch a.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64:
	default:
		return Refuse(op, "arguments[0]", "a product of %s", a.DType)
	}
	if x.DType != a.DType || d.DType != a.DType {
		return Refuse(op, "arguments[1]", "factors %s and %s, result %s", a.DType, x.DType, d.DType)
	}
	if !tensor.IsContiguous(d.Sizes, d.Strides) {
		return Refuse(op, "results[0]", "a result with strides %v", d.Strides)
	}
	if tensor.Numel(d.Sizes) == 0 {
		return nil
	}
	if tensor.Numel(a.Sizes) == 0 {
		return emitNoTerms(b, op, d, device.Factors{Alpha: 1})
	}
	byRow, byColumn := a.Strides[0], a.Strides[1]
	if !(byRow == 1 && byColumn >= max(1, a.Sizes[0])) && !(byColumn == 1 && byRow >= max(1, a.Sizes[1])) {
		if a, err = contiguous(b, op, a); err != nil {
			return err
		}
	}
	if x.Strides[0] == 0 {
		if x, err = contiguous(b, op, x); err != nil {
			return err
		}
		x.Strides = []int64{1}
	}
	b.Emit(&device.MatVec{A: a, X: x, D: d})
	return nil
}
