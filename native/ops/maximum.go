package ops

import "samebits/bridge/recording"

func init() {
	for _, name := range []string{"maximum", "minimum"} {
		register(func(b *Builder, op *recording.Operation) error {
			return lowerPair(b, op, elementwise{file: "maximum", entry: name, pair: true, also: integers})
		}, "aten::"+name)
	}
}

// lowerPair completes a computation of two tensors.
func lowerPair(b *Builder, op *recording.Operation, e elementwise) error {
	self, other, _, common, err := operands(b, op)
	if err != nil {
		return err
	}
	if other < 0 {
		return Refuse(op, argumentPath(op, "other"), "other is no tensor")
	}
	if e.out, err = Result(op, 0); err != nil {
		return err
	}
	e.inputs, e.common = []int{self, other}, common
	return e.emit(b, op)
}
