package ops

import "samebits/bridge/recording"

func init() {
	register(lowerThresholdBackward, "aten::threshold_backward")
}

// lowerThresholdBackward is relu's gradient: self is its result.
func lowerThresholdBackward(b *Builder, op *recording.Operation) error {
	grad, err := ValueArg(op, "grad_output")
	if err != nil {
		return err
	}
	self, err := ValueArg(op, "self")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	threshold, err := number(op, "threshold")
	if err != nil {
		return err
	}
	e := elementwise{file: "threshold_backward", entry: "threshold_backward", pair: true, out: out, inputs: []int{self, grad},
		common: b.Value(out).DType, parameters: []any{threshold}}
	return e.emit(b, op)
}
