package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

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
		e := elementwise{file: "logical", entry: "logical_not", inputs: []int{self}, common: b.Value(self).DType}
		return lowerPredicate(b, op, e)
	}, "aten::logical_not")
}

// lowerCompare gives truth values of two tensors, or of one and a number, which are compared in the type that PyTorch
// promotes both to.
func lowerCompare(b *Builder, op *recording.Operation, e elementwise) error {
	self, other, value, _, err := operands(b, op)
	if err != nil {
		return err
	}
	if other < 0 {
		a, _ := op.Arg("other")
		e.entry, e.inputs, e.parameters = e.entry+"_number", []int{self}, append(e.parameters, value)
		e.common = promoteNumber(b.Value(self).DType, a.Kind)
	} else {
		e.inputs, e.common = []int{self, other}, promote(b.Value(self), b.Value(other))
	}
	return lowerPredicate(b, op, e)
}

// lowerPredicate completes a computation of truth values. What is whole is computed in int64, which holds all of it.
func lowerPredicate(b *Builder, op *recording.Operation, e elementwise) error {
	var err error
	if e.out, err = Result(op, 0); err != nil {
		return err
	}
	e.also, e.predicate = []tensor.DType{tensor.Int64}, true
	if !e.common.Float() {
		e.common = tensor.Int64
	}
	return e.emit(b, op)
}
