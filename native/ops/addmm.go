package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::addmm", Class: Compute, Lower: lowerAddmm})
}

// lowerAddmm does the calls that PyTorch 2.11 gives to cuBLASLt with the bias in the epilogue (isInputCompliesAddmmCudaLt
// and use_bias_ptr_lt in Blas.cpp). All others go another way there, with other bits, and are refused.
func lowerAddmm(b *Builder, op *recording.Operation) error {
	var index [3]int
	for i, name := range []string{"self", "mat1", "mat2"} {
		v, err := ValueArg(op, name)
		if err != nil {
			return err
		}
		index[i] = v
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	for _, name := range []string{"beta", "alpha"} {
		n, err := number(op, name)
		if err != nil {
			return err
		}
		if n != 1 {
			return Refuse(op, argumentPath(op, name), "%s is %v, only 1 is done", name, n)
		}
	}
	bias, a, w, d := b.Tensor(index[0]), b.Tensor(index[1]), b.Tensor(index[2]), b.Tensor(out)
	if len(a.Sizes) != 2 || len(w.Sizes) != 2 || len(d.Sizes) != 2 || a.Sizes[1] != w.Sizes[0] ||
		d.Sizes[0] != a.Sizes[0] || d.Sizes[1] != w.Sizes[1] {
		return Refuse(op, "results[0]", "sizes %v times %v to %v", a.Sizes, w.Sizes, d.Sizes)
	}
	switch a.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16:
	default:
		return Refuse(op, "arguments[1]", "a product of %s", a.DType)
	}
	if w.DType != a.DType || bias.DType != a.DType || d.DType != a.DType {
		return Refuse(op, "arguments[0]", "bias %s, factors %s and %s, result %s", bias.DType, a.DType, w.DType, d.DType)
	}
	if tensor.Numel(d.Sizes) == 0 {
		return nil
	}
	if len(bias.Sizes) != 1 || bias.Sizes[0] != w.Sizes[1] || !tensor.IsContiguous(bias.Sizes, bias.Strides) {
		return Refuse(op, "arguments[0]", "a bias of sizes %v with strides %v for %d columns; only a vector without gaps is done",
			bias.Sizes, bias.Strides, w.Sizes[1])
	}
	if w.Sizes[0] <= 1 || w.Sizes[1] <= 1 {
		return Refuse(op, "arguments[2]", "a second factor of sizes %v; a single row or column is not done", w.Sizes)
	}
	if !tensor.IsContiguous(d.Sizes, d.Strides) {
		return Refuse(op, "results[0]", "a result with strides %v", d.Strides)
	}
	for i, t := range []device.Tensor{a, w} {
		if !blasMatrix(t) {
			return Refuse(op, argumentPath(op, []string{"mat1", "mat2"}[i]), "a factor of sizes %v with strides %v, which PyTorch would copy first",
				t.Sizes, t.Strides)
		}
	}
	b.Emit(&device.Linear{A: a, B: w, Bias: bias, D: d})
	return nil
}

// blasMatrix reports whether cuBLAS takes a matrix as it is: without gaps, or with whole rows or columns side by side.
func blasMatrix(t device.Tensor) bool {
	rows, columns := t.Sizes[0], t.Sizes[1]
	byRow, byColumn := t.Strides[0], t.Strides[1]
	return tensor.IsContiguous(t.Sizes, t.Strides) ||
		(byRow == 1 && byColumn >= max(1, rows)) || (byColumn == 1 && byRow >= max(1, columns))
}
