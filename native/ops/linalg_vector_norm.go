package ops

import (
	"samebits/bridge/recording"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::linalg_vector_norm", Class: Compute, Lower: lowerVectorNorm})
}

// lowerVectorNorm does the norm of order 2. PyTorch takes the absolute value instead where a norm is of one element.
func lowerVectorNorm(b *Builder, op *recording.Operation) error {
	order, err := number(op, "ord")
	if err != nil {
		return err
	}
	if order != 2 {
		return Refuse(op, argumentPath(op, "ord"), "a norm of order %v, 2 is done", order)
	}
	r, err := newReduction(b, op, "vector_norm")
	if err != nil {
		return err
	}
	x, y := b.Value(r.in), b.Value(r.out)
	switch {
	case y.Numel() == 0:
		return nil
	case x.Numel() == 0:
		b.Emit(&device.Fill{To: b.Pointer(r.out), Bytes: y.Numel() * y.DType.Size()})
		return nil
	case x.Numel() == y.Numel():
		return Refuse(op, argumentPath(op, "dim"), "norms of one element each")
	}
	return r.emit(b)
}
