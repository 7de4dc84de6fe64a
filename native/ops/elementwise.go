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
	common      tensor.DType // that is computed in; of the inputs of another type each element is converted to it first
	parameters  []any        // float64, given to the kernel in the type that is computed in
	integers    bool         // there is an entry for int64
}

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
	same := out.DType == e.common
	strides := [][]int64{out.Strides}
	for _, in := range e.inputs {
		by, err := broadcast(b.Value(in), out.Sizes)
		if err != nil {
			return Refuse(op, "arguments", "%v", err)
		}
		strides = append(strides, by)
		same = same && b.Value(in).DType == e.common
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

// suffix names the entry's type: the one that is computed in, and the one that is stored where that is another.
func (e *elementwise) suffix(out tensor.DType) (string, error) {
	if e.integers && e.common == tensor.Int64 && out == tensor.Int64 {
		return "i64", nil
	}
	if !e.common.Float() || !out.Float() {
		return "", fmt.Errorf("computes in %s and stores %s, only floating-point types are done", e.common, out)
	}
	to, err := Suffix(out)
	if err != nil || out == e.common {
		return to, err
	}
	if e.common != tensor.Float32 || out == tensor.Float64 || len(e.inputs) != 2 {
		return "", fmt.Errorf("computes in %s and stores %s, which is not done", e.common, out)
	}
	return "f32_" + to, nil
}

// numbers converts parameters to the type that is computed in.
func (e *elementwise) numbers() []any {
	var args []any
	for _, p := range e.parameters {
		switch e.common {
		case tensor.Float64:
			args = append(args, p)
		case tensor.Int64:
			args = append(args, int64(p.(float64)))
		default:
			args = append(args, float32(p.(float64)))
		}
	}
	return args
}

// number reads an argument that is a Python number.
func number(op *recording.Operation, name string) (float64, error) {
	if a, ok := op.Arg(name); ok && a.Kind == recording.SlotOf {
		return 0, Refuse(op, argumentPath(op, name), "%s changes from step to step, which is not done", name)
	}
	return RealArg(op, name)
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
func unary(entry string, names ...string) {
	lower := func(b *Builder, op *recording.Operation) error {
		self, err := ValueArg(op, "self")
		if err != nil {
			return err
		}
		out, err := Result(op, 0)
		if err != nil {
			return err
		}
		e := elementwise{file: entry, entry: entry, out: out, inputs: []int{self}, common: b.Value(out).DType}
		return e.emit(b, op)
	}
	register(lower, names...)
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
