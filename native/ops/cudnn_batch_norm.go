package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::cudnn_batch_norm", Class: Compute, Lower: lowerCudnnBatchNorm})
}

func lowerCudnnBatchNorm(b *Builder, op *recording.Operation) error {
	s, err := readStatistics(b, op, "epsilon")
	if err != nil {
		return err
	}
	for _, p := range []string{"weight", "bias", "running_mean", "running_var"} {
		if _, ok := s.values[p]; !ok {
			return Refuse(op, argumentPath(op, p), "%s is missing: PyTorch gives cuDNN all four", p)
		}
	}
	x, y := b.Tensor(s.x), b.Tensor(s.y)
	if x.DType != tensor.Float32 && x.DType != tensor.Float16 {
		return Refuse(op, "arguments[0]", "an input of %s", x.DType)
	}
	rank := len(x.Sizes)
	if rank != 3 && rank != 4 {
		return Refuse(op, "arguments[0]", "an input of %d dimensions, 3 and 4 are done", rank)
	}
	last := looksChannelsLast(x)
	if !inFormat(x.Sizes, x.Strides, last) || !inFormat(y.Sizes, y.Strides, last) {
		return Refuse(op, "arguments[0]", "an input with strides %v and a result with strides %v", x.Strides, y.Strides)
	}
	if tensor.Numel(x.Sizes) == 0 {
		return nil
	}
	x.Strides, y.Strides = formatStrides(x.Sizes, last), formatStrides(y.Sizes, last)
	if rank == 3 { // PyTorch describes it to cuDNN as [N,C,L,1]
		x.Sizes, x.Strides = append(clone(x.Sizes), 1), append(clone(x.Strides), 1)
		y.Sizes, y.Strides = clone(x.Sizes), clone(x.Strides)
	}
	b.Emit(&device.BatchNorm{X: x, Y: y,
		Scale: b.Tensor(s.values["weight"]), Bias: b.Tensor(s.values["bias"]),
		Mean: b.Tensor(s.values["running_mean"]), Variance: b.Tensor(s.values["running_var"]), Epsilon: s.epsilon})
	return nil
}

func clone(list []int64) []int64 { return append([]int64(nil), list...) }

// statistics are what both batch norms take: an input, a result, and one float32 a channel of up to four things.
type statistics struct {
	x, y    int
	values  map[string]int
	epsilon float64
}

// readStatistics reads the arguments of a batch norm in evaluation and refuses one in training.
func readStatistics(b *Builder, op *recording.Operation, epsilon string) (*statistics, error) {
	s := &statistics{values: map[string]int{}}
	var err error
	if s.x, err = ValueArg(op, "input"); err != nil {
		return nil, err
	}
	if s.y, err = Result(op, 0); err != nil {
		return nil, err
	}
	training, err := BoolArg(op, "training")
	if err != nil {
		return nil, err
	}
	if training {
		return nil, Refuse(op, argumentPath(op, "training"), "batch norm in training is not done")
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
		v := b.Value(i)
		if v.DType != tensor.Float32 || len(v.Sizes) != 1 || v.Sizes[0] != x.Sizes[1] || !v.Contiguous() {
			return nil, Refuse(op, argumentPath(op, p), "%s is %s of sizes %v with strides %v, wanted float32 of size %d without gaps",
				p, v.DType, v.Sizes, v.Strides, x.Sizes[1])
		}
		s.values[p] = i
	}
	return s, nil
}
