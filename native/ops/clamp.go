package ops

import (
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() {
	between := func(low, high string) Lower {
		return func(b *Builder, op *recording.Operation) error { return lowerClamp(b, op, low, high) }
	}
	register(between("min", "max"), "aten::clamp", "aten::clamp_")
	register(between("min", ""), "aten::clamp_min", "aten::clamp_min_")
	register(between("", "max"), "aten::clamp_max", "aten::clamp_max_")
	register(between("min_val", "max_val"), "aten::hardtanh", "aten::hardtanh_")
}

// lowerClamp keeps elements between two numbers, of which one may be missing. A number that is no number makes every
// element one, as in PyTorch.
func lowerClamp(b *Builder, op *recording.Operation, low, high string) error {
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	limits, fill, err := readLimits(op, b.Value(out).DType, low, high)
	if err != nil {
		return err
	}
	if fill {
		return lowerFill(b, op, math.NaN())
	}
	return lowerUnary(b, op, elementwise{file: "clamp", entry: "clamp", parameters: limits, also: integers})
}

// readLimits reads the two numbers; fill says that one of them is no number.
func readLimits(op *recording.Operation, d tensor.DType, low, high string) (limits []any, fill bool, err error) {
	limits = limitsOf(d)
	for i, name := range []string{low, high} {
		if a, ok := op.Arg(name); name == "" || ok && a.Kind == recording.None {
			continue
		}
		if limits[i], err = scalar(op, name); err != nil {
			return nil, false, err
		}
		if v := realOf(limits[i]); v != v {
			return nil, true, nil
		}
	}
	return limits, false, nil
}

// limitsOf gives the least and the greatest number of a type.
func limitsOf(d tensor.DType) []any {
	switch d {
	case tensor.Int64:
		return []any{int64(math.MinInt64), int64(math.MaxInt64)}
	case tensor.Int32:
		return []any{int64(math.MinInt32), int64(math.MaxInt32)}
	case tensor.Uint8, tensor.Bool:
		return []any{int64(0), int64(math.MaxUint8)}
	}
	return []any{math.Inf(-1), math.Inf(1)}
}
