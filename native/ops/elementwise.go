package ops

import (
	"fmt"
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// This file is the geometry that every element-wise operation shares: how operands are laid over each other, which of
// the two forms of an entry (kernels/elementwise.cuh) fits, and how many threads it gets.

// maxDims is how many dimensions a strided entry walks.
const maxDims = 8

// threads is the size of a block: small, so that small tensors still spread over many multiprocessors.
const threads = 128

// space is an iteration space laid over operands. Dimensions are innermost first; strides are in elements.
type space struct {
	sizes   []int64
	strides [][]int64 // by operand, then by dimension
}

// collapse lays operands over each other as PyTorch's TensorIterator does: dimensions ordered by the strides of the first
// operand (by the others' where it has none to tell), dimensions of size 1 dropped, and neighbours that every operand
// walks without a gap made one. All strides have the length of sizes; see broadcast.
func collapse(sizes []int64, strides ...[]int64) space {
	var order []int
	for d := len(sizes) - 1; d >= 0; d-- {
		if sizes[d] == 1 {
			continue
		}
		at := len(order)
		for at > 0 && inner(d, order[at-1], strides) {
			at--
		}
		order = append(order, 0)
		copy(order[at+1:], order[at:])
		order[at] = d
	}
	s := space{strides: make([][]int64, len(strides))}
	for _, d := range order {
		if last := len(s.sizes) - 1; last >= 0 && continues(&s, d, strides) {
			s.sizes[last] *= sizes[d]
			continue
		}
		s.sizes = append(s.sizes, sizes[d])
		for k := range strides {
			s.strides[k] = append(s.strides[k], strides[k][d])
		}
	}
	if len(s.sizes) == 0 {
		s.sizes = []int64{1}
		for k := range strides {
			s.strides[k] = []int64{1}
		}
	}
	return s
}

// inner reports whether dimension a belongs inside of b.
func inner(a, b int, strides [][]int64) bool {
	for _, s := range strides {
		if s[a] == 0 || s[b] == 0 || s[a] == s[b] {
			continue
		}
		return s[a] < s[b]
	}
	return false
}

// continues reports whether dimension d goes on where the last one of s ends, in every operand.
func continues(s *space, d int, strides [][]int64) bool {
	last := len(s.sizes) - 1
	for k := range strides {
		if strides[k][d] != s.strides[k][last]*s.sizes[last] {
			return false
		}
	}
	return true
}

// broadcast gives the strides of an operand over a larger shape: 0 where it is repeated.
func broadcast(v *recording.Value, sizes []int64) ([]int64, error) {
	extra := len(sizes) - len(v.Sizes)
	if extra < 0 {
		return nil, fmt.Errorf("sizes %v do not broadcast to %v", v.Sizes, sizes)
	}
	strides := make([]int64, len(sizes))
	for d := range v.Sizes {
		switch v.Sizes[d] {
		case sizes[extra+d]:
			strides[extra+d] = v.Strides[d]
		case 1:
		default:
			return nil, fmt.Errorf("sizes %v do not broadcast to %v", v.Sizes, sizes)
		}
	}
	return strides, nil
}

// dense reports whether every operand is one run of elements without gaps.
func (s *space) dense() bool {
	if len(s.sizes) != 1 {
		return false
	}
	for _, by := range s.strides {
		if by[0] != 1 && s.sizes[0] != 1 {
			return false
		}
	}
	return true
}

func (s *space) numel() int64 { return tensor.Numel(s.sizes) }

// args are the kernel parameters SPACE.
func (s *space) args() []any {
	args := []any{uint32(s.numel()), int32(len(s.sizes))}
	for d := range maxDims {
		size := int64(1)
		if d < len(s.sizes) {
			size = s.sizes[d]
		}
		args = append(args, uint32(size))
	}
	return args
}

// steps are the kernel parameters STRIDES of an operand.
func (s *space) steps(operand int) []any {
	var args []any
	for d := range maxDims {
		step := int64(0)
		if d < len(s.sizes) {
			step = s.strides[operand][d]
		}
		args = append(args, step)
	}
	return args
}

// check refuses what the strided entries cannot walk.
func (s *space) check(op *recording.Operation) error {
	if len(s.sizes) > maxDims {
		return Refuse(op, "results[0]", "%d dimensions that do not collapse, at most %d are done", len(s.sizes), maxDims)
	}
	if s.numel() > math.MaxUint32 {
		return Refuse(op, "results[0]", "%d elements in a strided tensor, at most %d are done", s.numel(), uint32(math.MaxUint32))
	}
	return nil
}

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

// items is how many packs a strided entry makes of the space: of 16 bytes where the innermost size allows.
func (s *space) items(types ...tensor.DType) int64 {
	width := int64(16)
	for _, t := range types {
		width = min(width, 16/t.Size())
	}
	if s.sizes[0]%width != 0 {
		return s.numel()
	}
	return s.numel() / width
}

// numbers converts parameters to the type that is computed in.
func (e *elementwise) numbers() []any {
	var args []any
	for _, p := range e.parameters {
		if e.common == tensor.Float64 {
			args = append(args, p)
		} else {
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
