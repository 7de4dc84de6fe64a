package ops

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// statistics are what both batch norms take: an input, a result, and one float32 a channel of up to four things.
type statistics struct {
	x, y     int
	values   map[string]int
	epsilon  float64
	training bool
}

// readStatistics reads the arguments of a batch norm.
func readStatistics(b *Builder, op *recording.Operation, epsilon string) (*statistics, error) {
	s := &statistics{values: map[string]int{}}
	var err error
	if s.x, err = ValueArg(op, "input"); err != nil {
		return nil, err
	}
	if s.y, err = Result(op, 0); err != nil {
		return nil, err
	}
	if s.training, err = BoolArg(op, "training"); err != nil {
		return nil, err
	}
	if s.epsilon, err = number(op, epsilon); err != nil {
		return nil, err
	}
	x, y := b.Value(s.x), b.Value(s.y)
	if len(x.Sizes) < 2 || len(x.Sizes) != len(y.Sizes) || x.DType != y.DType {
		return nil, Refuse(op, "results[0]", "%s of sizes %v to %s of sizes %v", x.DType, x.Sizes, y.DType, y.Sizes)
	}
	for d := range x.Sizes {
		if x.Sizes[d] != y.Sizes[d] {
			return nil, Refuse(op, "results[0]", "sizes %v, wanted %v", y.Sizes, x.Sizes)
		}
	}
	for _, p := range []string{"weight", "bias", "running_mean", "running_var"} {
		i, ok, err := OptionalValueArg(op, p)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := perChannel(b, op, argumentPath(op, p), i, x.Sizes[1]); err != nil {
			return nil, err
		}
		s.values[p] = i
	}
	return s, nil
}

// perChannel refuses a value that is not one float32 a channel without gaps.
func perChannel(b *Builder, op *recording.Operation, path string, value int, channels int64) error {
	v := b.Value(value)
	if v.DType != tensor.Float32 || len(v.Sizes) != 1 || v.Sizes[0] != channels || !v.Contiguous() {
		return Refuse(op, path, "%s of sizes %v with strides %v, wanted float32 of size %d without gaps", v.DType, v.Sizes, v.Strides, channels)
	}
	return nil
}

// saved gives results 1 and 2: mean and 1/sqrt(variance+eps) of the batch, which a training step leaves for the backward pass.
func (s *statistics) saved(b *Builder, op *recording.Operation) (values [2]int, err error) {
	for i := range values {
		if values[i], err = Result(op, i+1); err != nil {
			return values, err
		}
		if err := perChannel(b, op, fmt.Sprintf("results[%d]", i+1), values[i], b.Value(s.x).Sizes[1]); err != nil {
			return values, err
		}
	}
	return values, nil
}

// writesStatistics gives the running statistics, which batch norm in training changes though its schema hides that.
func writesStatistics(op *recording.Operation) []int {
	if training, err := BoolArg(op, "training"); err != nil || !training {
		return nil
	}
	var list []int
	for _, p := range []string{"running_mean", "running_var"} {
		if a, ok := op.Arg(p); ok && a.Kind == recording.ValueOf {
			list = append(list, a.Value)
		}
	}
	return list
}
