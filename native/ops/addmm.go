package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::addmm", Class: Compute, Lower: lowerAddmm})
}

// lowerAddmm follows PyTorch 2.11's addmm_out_cuda_impl, which has three ways with three results: cuBLASLt with the bias
// in its epilogue, cuBLASLt added to what was copied into the result, and cuBLAS added to that.
func lowerAddmm(b *Builder, op *recording.Operation) error {
	index, out, f, err := readSum(op, "self", "mat1", "mat2")
	if err != nil {
		return err
	}
	bias, a, w, d := b.Tensor(index[0]), b.Tensor(index[1]), b.Tensor(index[2]), b.Tensor(out)
	if err := checkProduct(op, a, w, d); err != nil {
		return err
	}
	if len(d.Sizes) != 2 {
		return Refuse(op, "results[0]", "a result of sizes %v", d.Sizes)
	}
	if bias.DType != d.DType {
		return Refuse(op, argumentPath(op, "self"), "%s added to %s", bias.DType, d.DType)
	}
	if tensor.Numel(d.Sizes) == 0 {
		return nil
	}
	if a.Sizes[1] == 0 {
		return emitNoTerms(b, op, d, f)
	}
	light := byLight(bias, w, d, f)
	if !light || len(bias.Sizes) != 1 {
		if err := addend(b, op, index[0], d, f); err != nil {
			return err
		}
	}
	if !light {
		return emitProduct(b, op, &device.Matmul{A: a, B: w, D: d, Factors: &f})
	}
	for _, t := range []*device.Tensor{&a, &w} {
		if blasMatrix(*t) {
			continue
		}
		if *t, err = copied(b, op, *t); err != nil {
			return err
		}
	}
	c := &device.Linear{A: a, B: w, D: d, Factors: &f}
	if len(bias.Sizes) == 1 {
		c.Bias = bias
	}
	b.Emit(c)
	return nil
}

// byLight is PyTorch's isInputCompliesAddmmCudaLt without an activation: a bias that is one row, as long as the result's.
func byLight(bias, w, d device.Tensor, f device.Factors) bool {
	rank, longer := len(bias.Sizes), 0
	for _, size := range bias.Sizes {
		if size != 1 {
			longer++
		}
	}
	return rank > 0 && f.Beta == 1 && tensor.IsContiguous(d.Sizes, d.Strides) && tensor.IsContiguous(bias.Sizes, bias.Strides) &&
		(rank == 1 || longer == 1) && bias.Sizes[rank-1] == w.Sizes[1] && w.Sizes[0] > 1 && w.Sizes[1] > 1
}
