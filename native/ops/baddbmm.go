package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::baddbmm", Class: Compute, Lower: lowerBaddbmm})
}

// lowerBaddbmm adds a batch of products to what was copied into the result; cuBLAS multiplies that by beta.
func lowerBaddbmm(b *Builder, op *recording.Operation) error {
	index, out, f, err := readSum(op, "self", "batch1", "batch2")
	if err != nil {
		return err
	}
	c := &device.Matmul{A: b.Tensor(index[1]), B: b.Tensor(index[2]), D: b.Tensor(out), Factors: &f}
	if err := checkProduct(op, c.A, c.B, c.D); err != nil {
		return err
	}
	if self := b.Value(index[0]).DType; self != c.D.DType {
		return Refuse(op, argumentPath(op, "self"), "%s added to %s", self, c.D.DType)
	}
	if tensor.Numel(c.D.Sizes) == 0 {
		return nil
	}
	if tensor.Numel(c.A.Sizes) == 0 {
		return emitNoTerms(b, op, c.D, f)
	}
	if err := addend(b, op, index[0], c.D, f); err != nil {
		return err
	}
	return emitProduct(b, op, c)
}
