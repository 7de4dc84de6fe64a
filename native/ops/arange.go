package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() {
	register(lowerArange, "aten::arange", "aten::arange.start", "aten::arange.start_step")
}

// lowerArange counts from start, or from 0, by step, or by 1.
func lowerArange(b *Builder, op *recording.Operation) error {
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	y := b.Value(out)
	from := []any{int64(0), int64(1)}
	for i, name := range []string{"start", "step"} {
		if _, given := op.Arg(name); !given {
			continue
		}
		if from[i], err = scalar(op, name); err != nil {
			return err
		}
	}
	suffix, err := Suffix(y.DType)
	if err != nil || y.DType == tensor.Bool {
		return Refuse(op, "results[0]", "no kernels for %s", y.DType)
	}
	if !y.Contiguous() {
		return Refuse(op, "results[0]", "a result with gaps is not done")
	}
	if y.Numel() == 0 {
		return nil
	}
	e := elementwise{common: y.DType, parameters: from}
	b.launch("arange", "arange_"+suffix, y.Numel(), append([]any{y.Numel(), b.Pointer(out)}, e.numbers()...))
	return nil
}
