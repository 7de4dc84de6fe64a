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
	suffix, err := floatSuffix(op, b.Value(out))
	if err != nil || b.Value(out).Numel() == 0 {
		return err
	}
	args := append([]any{b.Pointer(self)}, in.args()...)
	args = append(append(args, b.Pointer(out)), to.args()...)
	last := channelsLast(b.Value(self))
	more := append(w.args(in), flag(includePad), divisor)
	b.launchOutputs("avg_pool2d", "avg_pool2d_"+w.suffix(suffix, in, last, 2, 3), to, last, args, more...)
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
