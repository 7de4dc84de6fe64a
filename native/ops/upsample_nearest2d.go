package ops

import (
	"fmt"

	"samebits/bridge/recording"
)

func init() {
	register(lowerUpsampleNearest(0), "aten::upsample_nearest2d")
	register(lowerUpsampleNearest(0.5), "aten::_upsample_nearest_exact2d")
}

// lowerUpsampleNearest takes the pixel at an output pixel's corner, or at its centre.
func lowerUpsampleNearest(centre float32) Lower {
	return func(b *Builder, op *recording.Operation) error { return upsampleNearest(b, op, centre) }
}

func upsampleNearest(b *Builder, op *recording.Operation, centre float32) error {
	self, out, in, to, err := planes(b, op)
	if err != nil {
		return err
	}
	rows, err := resizeScale(op, "scales_h", in.sizes[2], to.sizes[2])
	if err != nil {
		return err
	}
	columns, err := resizeScale(op, "scales_w", in.sizes[3], to.sizes[3])
	if err != nil {
		return err
	}
	if b.Value(out).Numel() == 0 {
		return nil
	}
	if b.Value(self).Numel() == 0 {
		return Refuse(op, "arguments[0]", "an empty tensor gives %v", b.Value(out).Sizes)
	}
	args := append([]any{b.Pointer(self)}, in.args()...)
	args = append(append(args, b.Pointer(out)), to.args()...)
	b.launchOutputs("upsample_nearest2d", fmt.Sprintf("upsample_nearest2d_%d", b.Value(out).DType.Size()), to,
		channelsLast(b.Value(out)), args, int32(in.sizes[2]), int32(in.sizes[3]), rows, columns, centre)
	return nil
}

// resizeScale is how many input rows an output row stands for, in float: the reciprocal of a scale that was given, which
// PyTorch computes in double, else the ratio of the sizes.
func resizeScale(op *recording.Operation, name string, in, out int64) (float32, error) {
	a, ok := op.Arg(name)
	if !ok || a.Kind == recording.None {
		return float32(in) / float32(out), nil
	}
	scale, err := number(op, name)
	if err != nil {
		return 0, err
	}
	if scale > 0 {
		return float32(1 / scale), nil
	}
	return float32(in) / float32(out), nil
}
