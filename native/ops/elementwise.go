package ops

import (
	"fmt"
	"math"
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// This file is what element-wise operations share: which of the two forms of an entry (kernels/elementwise.cuh) fits the
// operands, what it is launched with, and with how many threads.

// threads is the size of a block: small, so that small tensors still spread over many multiprocessors.
const threads = 128

// blocks is how many blocks give each thread one item.
func blocks(items int64) [3]uint32 {
	return [3]uint32{uint32(min(max((items+threads-1)/threads, 1), math.MaxInt32)), 1, 1}
}

// launch emits a kernel with a thread for each item.
func (b *Builder) launch(file, entry string, items int64, args []any) {
	b.Emit(&device.Kernel{File: file, Entry: entry, Grid: blocks(items), Block: [3]uint32{threads, 1, 1}, Args: args})
}

// elementCode is the number by which a strided entry knows an input's type; kernels/convert.cuh has the same.
func elementCode(d tensor.DType) (int32, error) {
	switch d {
	case tensor.Float32:
		return 0, nil
	case tensor.BFloat16:
		return 1, nil
	case tensor.Float16:
		return 2, nil
	case tensor.Float64:
		return 3, nil
	case tensor.Int64:
		return 4, nil
	case tensor.Int32:
		return 5, nil
	case tensor.Uint8:
		return 6, nil
	case tensor.Bool:
		return 7, nil
	}
	return 0, fmt.Errorf("no kernels for %s", d)
}

// elementwise is one element-wise computation: out = functor(inputs..., parameters...).
type elementwise struct {
	file, entry string // entry without the type: silu
	out         int
	inputs      []int
	common      tensor.DType   // that is computed in; of the inputs of another type each element is converted to it first
	parameters  []any          // int64, float64, of which the kernel gets what fits the type that is computed in; others as they are
	pair        bool           // there is the form for rows
	also        []tensor.DType // types beside floating point of which there are entries
	masks       []int          // inputs that the dense entry takes as truth values, by their place in inputs
	predicate   bool           // the entry stores truth values
	narrows     bool           // there are entries that compute in float32 and store 16 bits
}

// integers are the types beside floating point that kernels may have entries for.
var integers = []tensor.DType{tensor.Int64, tensor.Int32, tensor.Uint8, tensor.Bool}

// emit launches the form of the entry that fits the operands.
func (e *elementwise) emit(b *Builder, op *recording.Operation) error {
	out := b.Value(e.out)
	if out.Numel() == 0 {
		return nil
	}
	suffix, err := e.suffix(out.DType)
	if err != nil {
		return Refuse(op, "results[0]", "%v", err)
	}
	same := e.predicate || out.DType == e.common
	strides := [][]int64{out.Strides}
	for k, in := range e.inputs {
		by, err := broadcast(b.Value(in), out.Sizes)
		if err != nil {
			return Refuse(op, "arguments", "%v", err)
		}
		strides = append(strides, by)
		same = same && b.Value(in).DType == e.takes(k)
	}
	s := collapse(out.Sizes, strides...)
	if same && s.dense() {
		args := []any{s.numel(), b.Pointer(e.out)}
		for _, in := range e.inputs {
			args = append(args, b.Pointer(in))
		}
		b.launch(e.file, e.entry+"_"+suffix, s.numel()*e.common.Size()/16, append(args, e.numbers()...))
		return nil
	}
	if same && e.pair && s.isRows() {
		b.launchPairs(e.file, e.entry+"_"+suffix+"_rows", s, e.common,
			[3]device.Pointer{b.Pointer(e.out), b.Pointer(e.inputs[0]), b.Pointer(e.inputs[1])}, e.numbers())
		return nil
	}
	if err := s.check(op); err != nil {
		return err
	}
	args := append(s.args(), b.Pointer(e.out))
	args = append(args, s.steps(0)...)
	for k, in := range e.inputs {
		code, err := elementCode(b.Value(in).DType)
		if err != nil {
			return Refuse(op, fmt.Sprintf("arguments[%d]", k), "%v", err)
		}
		args = append(append(args, b.Pointer(in), code), s.steps(k+1)...)
	}
	b.launch(e.file, e.entry+"_"+suffix+"_strided", s.items(e.common, out.DType), append(args, e.numbers()...))
	return nil
}

// takes is the type in which the dense entry takes an input.
func (e *elementwise) takes(input int) tensor.DType {
	if slices.Contains(e.masks, input) {
		return tensor.Bool
	}
	return e.common
}

// suffix names the entry's type: the one that is computed in, and the one that is stored where that is another.
func (e *elementwise) suffix(out tensor.DType) (string, error) {
	if !e.common.Float() && !slices.Contains(e.also, e.common) {
		return "", fmt.Errorf("computes in %s, which is not done", e.common)
	}
	stored := e.common
	if e.predicate {
		stored = tensor.Bool
	}
	if out == stored {
		return typeSuffix(e.common)
	}
	if e.common != tensor.Float32 || !out.Float() || out == tensor.Float64 || !e.narrows {
		return "", fmt.Errorf("computes in %s and stores %s, which is not done", e.common, out)
	}
	to, err := Suffix(out)
	return "f32_" + to, err
}

// typeSuffix is Suffix where truth values are a type of their own.
func typeSuffix(d tensor.DType) (string, error) {
	if d == tensor.Bool {
		return "bool", nil
	}
	return Suffix(d)
}

// numbers converts parameters to the type that is computed in.
func (e *elementwise) numbers() []any {
	var args []any
	for _, p := range e.parameters {
		switch v := p.(type) {
		case int64:
			args = append(args, parameter(e.common, v, float64(v)))
		case float64:
			args = append(args, parameter(e.common, int64(v), v))
		default:
			args = append(args, p)
		}
	}
	return args
}

// parameter is a number as kernels that compute in a type take it.
func parameter(d tensor.DType, whole int64, real float64) any {
	switch {
	case d == tensor.Float64:
		return real
	case d.Float():
		return float32(real)
	}
	return whole
}

// number reads an argument that is a Python number.
func number(op *recording.Operation, name string) (float64, error) {
	if a, ok := op.Arg(name); ok && a.Kind == recording.SlotOf {
		return 0, Refuse(op, argumentPath(op, name), "%s changes from step to step, which is not done", name)
	}
	return RealArg(op, name)
}

// scalar is number, but gives an integer as one: an int64, else a float64.
func scalar(op *recording.Operation, name string) (any, error) {
	v, err := number(op, name)
	if a, ok := op.Arg(name); ok && a.Kind == recording.Integer {
		return a.Int, err
	}
	return v, err
}

// textArg reads an argument that must be text.
func textArg(op *recording.Operation, name string) (string, error) {
	a, path, err := find(op, name)
	if err != nil {
		return "", err
	}
	if a.Kind != recording.Text {
		return "", Refuse(op, path, "%s is no text", name)
	}
	return a.Text, nil
}

func argumentPath(op *recording.Operation, name string) string {
	for i := range op.Arguments {
		if op.Arguments[i].Name == name {
			return fmt.Sprintf("arguments[%d]", i)
		}
	}
	return "arguments"
}

// unary registers operations of one input whose kernel file and entry are called the same: aten::silu and aten::silu_.
func unary(entry string, names ...string) { unaryAlso(nil, entry, names...) }

// unaryAlso is unary with entries for more types than those of floating point.
func unaryAlso(also []tensor.DType, entry string, names ...string) {
	lower := func(b *Builder, op *recording.Operation) error {
		return lowerUnary(b, op, elementwise{file: entry, entry: entry, also: also})
	}
	register(lower, names...)
}

// lowerUnary completes a computation of self that is done in the result's type.
func lowerUnary(b *Builder, op *recording.Operation, e elementwise) error {
	self, err := ValueArg(op, "self")
	if err != nil {
		return err
	}
	if e.out, err = Result(op, 0); err != nil {
		return err
	}
	e.inputs, e.common = []int{self}, b.Value(e.out).DType
	return e.emit(b, op)
}

// classOf tells an in-place operation by its name: aten::add_.Tensor.
func classOf(name string) Class {
	for i := range name {
		if name[i] == '.' {
			name = name[:i]
			break
		}
	}
	if name[len(name)-1] == '_' {
		return InPlace
	}
	return Compute
}

// equalSizes reports whether all sizes are the same.
func equalSizes(sizes ...[]int64) bool {
	for _, s := range sizes[1:] {
		if !slices.Equal(s, sizes[0]) {
			return false
		}
	}
	return true
}
