package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::mm", Class: Compute, Lower: lowerMm})
}

// lowerMm gives cuBLAS matrices as they lie in memory: whether a factor is transposed decides which of its kernels runs.
func lowerMm(b *Builder, op *recording.Operation) error {
	self, err := ValueArg(op, "self")
	if err != nil {
		return err
	}
	second, err := ValueArg(op, "mat2")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	x, w, d := b.Tensor(self), b.Tensor(second), b.Tensor(out)
	if len(x.Sizes) != 2 || len(w.Sizes) != 2 || len(d.Sizes) != 2 || x.Sizes[1] != w.Sizes[0] ||
		d.Sizes[0] != x.Sizes[0] || d.Sizes[1] != w.Sizes[1] {
		return Refuse(op, "results[0]", "sizes %v times %v to %v", x.Sizes, w.Sizes, d.Sizes)
	}
	switch x.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64:
	default:
		return Refuse(op, "arguments[0]", "a product of %s", x.DType)
	}
	if w.DType != x.DType || d.DType != x.DType {
		return Refuse(op, "arguments[1]", "factors %s and %s, result %s", x.DType, w.DType, d.DType)
	}
	if !tensor.IsContiguous(d.Sizes, d.Strides) {
		return Refuse(op, "results[0]", "a result with strides %v", d.Strides)
	}
	if tensor.Numel(d.Sizes) == 0 {
		return nil
	}
	if x.Sizes[1] == 0 {
		b.Emit(&device.Fill{To: d.Pointer, Bytes: tensor.Numel(d.Sizes) * d.DType.Size()})
		return nil
	}
	for i, t := range []device.Tensor{x, w} {
		if !blasMatrix(t) {
			return Refuse(op, argumentPath(op, []string{"self", "mat2"}[i]), "a factor of sizes %v with strides %v, which PyTorch would copy first",
				t.Sizes, t.Strides)
		}
	}
	b.Emit(&device.Matmul{A: x, B: w, D: d})
	return nil
}
