package ops

import (
	"math"

	"samebits/bridge/recording"
)

func init() { register(lowerAvgPool, "aten::avg_pool2d") }

func lowerAvgPool(b *Builder, op *recording.Operation) error {
	self, out, in, to, err := planes(b, op)
	if err != nil {
		return err
	}
	w, err := windowOf(op)
	if err != nil {
		return err
	}
	if err := w.check(op, in, to); err != nil {
		return err
	}
	includePad, err := BoolArg(op, "count_include_pad")
	if err != nil {
		return err
	}
	divisor, err := divisorOverride(op)
	if err != nil {
		return err
	}
	n := b.Value(out).Numel()
	suffix, err := floatSuffix(op, b.Value(out))
	if err != nil || n == 0 {
		return err
	}
	args := append([]any{uint32(n), b.Pointer(self)}, in.args()...)
	args = append(append(args, b.Pointer(out)), to.args()...)
	args = append(args, uint32(to.sizes[1]), uint32(to.sizes[2]), uint32(to.sizes[3]), int32(in.sizes[2]), int32(in.sizes[3]),
		w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], w.padding[0], w.padding[1],
		flag(includePad), divisor, flag(channelsLast(b.Value(self))))
	b.launch("avg_pool2d", "avg_pool2d_"+suffix, n, args)
	return nil
}

// divisorOverride is 0 if there is none.
func divisorOverride(op *recording.Operation) (int32, error) {
	if a, ok := op.Arg("divisor_override"); ok && a.Kind == recording.None {
		return 0, nil
	}
	n, err := IntArg(op, "divisor_override")
	if err != nil {
		return 0, err
	}
	if n == 0 || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, Refuse(op, argumentPath(op, "divisor_override"), "divisor_override is %d", n)
	}
	return int32(n), nil
}
