package ops

import "samebits/bridge/recording"

func init() {
	for how, name := range []string{"eq", "ne", "lt", "le", "gt", "ge"} { // in the order of kernels/functors.cuh
		register(func(b *Builder, op *recording.Operation) error {
			return lowerCompare(b, op, elementwise{file: "compare", entry: "compare", parameters: []any{int32(how)}})
		}, "aten::"+name+".Tensor", "aten::"+name+".Scalar")
	}
	for _, name := range []string{"logical_and", "logical_or"} {
		register(func(b *Builder, op *recording.Operation) error {
			return lowerCompare(b, op, elementwise{file: "logical", entry: name})
		}, "aten::"+name)
	}
	register(func(b *Builder, op *recording.Operation) error {
		self, err := ValueArg(op, "self")
		if err != nil {
			return err
		}
		e := elementwise{file: "logical", entry: "logical_not", inputs: []int{self}, common: b.Value(self).DType, also: integers, predicate: true}
		if e.out, err = Result(op, 0); err != nil {
			return err
		}
		return e.emit(b, op)
	}, "aten::logical_not")
}

// lowerCompare gives truth values of two tensors, or of one and a number, which are compared in the type that PyTorch
// promotes both to.
func lowerCompare(b *Builder, op *recording.Operation, e elementwise) error {
	self, other, value, _, err := operands(b, op)
	if err != nil {
		return err
	}
	if e.out, err = Result(op, 0); err != nil {
		return err
	}
	e.also, e.predicate = integers, true
	if other < 0 {
		a, _ := op.Arg("other")
		e.entry, e.inputs, e.parameters = e.entry+"_number", []int{self}, append(e.parameters, value)
		e.common = promoteNumber(b.Value(self).DType, a.Kind)
		return e.emit(b, op)
	}
	e.inputs, e.common = []int{self, other}, promote(b.Value(self), b.Value(other))
	return e.emit(b, op)
}
