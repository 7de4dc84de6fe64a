package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	for _, name := range []string{"aten::mm", "aten::bmm"} {
		Register(Registration{Name: name, Class: Compute, Lower: lowerMm})
	}
}

// lowerMm does products of two matrices, or of batches of them.
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
	c := &device.Matmul{A: b.Tensor(self), B: b.Tensor(second), D: b.Tensor(out)}
	if err := checkProduct(op, c.A, c.B, c.D); err != nil {
		return err
	}
	if tensor.Numel(c.D.Sizes) == 0 {
		return nil
	}
	if tensor.Numel(c.A.Sizes) == 0 {
		return emitNoTerms(b, op, c.D, device.Factors{Alpha: 1})
	}
	return emitProduct(b, op, c)
}
