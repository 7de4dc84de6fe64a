package ops

import (
	"samebits/bridge/recording"
	"samebits/native/device"
)

func init() {
	register(lowerSum, "aten::sum.dim_IntList", "aten::sum")
}

func lowerSum(b *Builder, op *recording.Operation) error {
	r, err := newReduction(b, op, "sum")
	if err != nil {
		return err
	}
	return r.emitSum(b)
}

// emitSum is emit for a sum: that of nothing is zero.
func (r *reduction) emitSum(b *Builder) error {
	if b.Value(r.in).Numel() == 0 {
		if y := b.Value(r.out); y.Numel() > 0 {
			b.Emit(&device.Fill{To: b.Pointer(r.out), Bytes: y.Numel() * y.DType.Size()})
		}
		return nil
	}
	return r.emit(b)
}
