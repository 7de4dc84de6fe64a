// Package ops lowers operations to commands. Every operation has one file here, one kernel file in package kernels
// and one test. The file registers itself by Register in its init function; nothing else names it.
package ops

import (
	"fmt"
	"sort"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// Lower turns one operation into commands by calling b's methods. What it cannot do it refuses with a diag.Problem
// whose path is below the operation's: arguments[2].
type Lower func(b *Builder, op *recording.Operation) error

// Class says what the planner may assume.
type Class uint8

const (
	// Compute reads its value arguments and writes its results.
	Compute Class = iota
	// View makes results on the storage of its arguments and costs nothing.
	View
	// InPlace writes its first value argument (aten names that end in _).
	InPlace
	// Create makes results whose content nobody may read before it is written (empty).
	Create
)

// Registration is an operation as the registry knows it.
type Registration struct {
	Name  string // aten::silu
	Class Class
	Lower Lower // nil for View and Create
	// Writes gives the values that an operation writes beside its results and its first argument, though its schema
	// does not say so: batch norm's running statistics. nil: none.
	Writes func(op *recording.Operation) []int
	// Fuses reports whether a call's kernel can also do the activation that follows it: see fuse.go. nil: never.
	Fuses func(b *Builder, op *recording.Operation) bool
}

var registry = map[string]Registration{}

// Register adds an operation. It panics on a name that is taken: two files claim one operation.
func Register(r Registration) {
	if _, taken := registry[r.Name]; taken {
		panic("ops: " + r.Name + " is registered twice")
	}
	registry[r.Name] = r
}

// Lookup finds an operation.
func Lookup(name string) (Registration, bool) {
	r, ok := registry[name]
	return r, ok
}

// Names lists all operations, sorted.
func Names() []string {
	names := make([]string, 0, len(registry))
	for n := range registry {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Builder collects the commands of a launch list. Value indices are those of the recording.
type Builder struct {
	Recording *recording.Recording
	Commands  []device.Command
	Options   Options
	// Then is the activation that the operation being lowered is to do too: see fuse.go.
	Then    *recording.Operation
	planner Planner
}

// Options choose between ways that give the same bits.
type Options struct {
	LibraryNorms bool // batch norms that PyTorch gives to cuDNN are given to it, too
}

// Planner is what a builder asks about memory and about values. Package plan implements it.
type Planner interface {
	// Scratch gives temporary memory, 512-aligned, valid until the operation's last command.
	Scratch(bytes int64) device.Pointer
	// Needed reports whether anything reads a result; an operation need not write one that is not.
	Needed(value int) bool
	// Precompute gives memory that fill's commands write. See Builder.Precompute.
	Precompute(b *Builder, bytes int64, from []int, fill func(to device.Pointer)) device.Pointer
}

// NewBuilder makes a builder.
func NewBuilder(r *recording.Recording, p Planner) *Builder {
	return &Builder{Recording: r, planner: p}
}

// Needed reports whether anything reads result value i; an operation need not write one that nobody reads.
func (b *Builder) Needed(i int) bool { return b.planner.Needed(i) }

// Precompute gives memory of so many bytes that the commands emitted by fill write. fill may read only the values
// in from. Where these never change between steps (parameters, constants) fill runs once, when weights are loaded.
func (b *Builder) Precompute(bytes int64, from []int, fill func(to device.Pointer)) device.Pointer {
	return b.planner.Precompute(b, bytes, from, fill)
}

// Emit appends a command.
func (b *Builder) Emit(c device.Command) { b.Commands = append(b.Commands, c) }

// Value gives a value of the recording.
func (b *Builder) Value(i int) *recording.Value { return &b.Recording.Values[i] }

// Pointer is the address of a value's first element.
func (b *Builder) Pointer(i int) device.Pointer {
	v := b.Value(i)
	return device.Pointer{Storage: v.Storage, Offset: v.Offset * v.DType.Size()}
}

// Tensor is a value as library calls want it.
func (b *Builder) Tensor(i int) device.Tensor {
	v := b.Value(i)
	return device.Tensor{Pointer: b.Pointer(i), DType: v.DType, Sizes: v.Sizes, Strides: v.Strides}
}

// Scratch gives temporary memory for the operation being lowered.
func (b *Builder) Scratch(bytes int64) device.Pointer { return b.planner.Scratch(bytes) }

// Suffix is the part of a kernel's name that says the type: f32, bf16, f16, f64, i64, i32, u8.
func Suffix(d tensor.DType) (string, error) {
	switch d {
	case tensor.Float32:
		return "f32", nil
	case tensor.BFloat16:
		return "bf16", nil
	case tensor.Float16:
		return "f16", nil
	case tensor.Float64:
		return "f64", nil
	case tensor.Int64:
		return "i64", nil
	case tensor.Int32:
		return "i32", nil
	case tensor.Uint8, tensor.Bool:
		return "u8", nil
	}
	return "", fmt.Errorf("no kernels for %s", d)
}

// The helpers below read arguments. Each refuses with the path of what is wrong.

func find(op *recording.Operation, name string) (*recording.Argument, string, error) {
	for i := range op.Arguments {
		if op.Arguments[i].Name == name {
			return &op.Arguments[i], fmt.Sprintf("arguments[%d]", i), nil
		}
	}
	return nil, "", diag.New("MISSING_ARGUMENT", "arguments", "%s has no argument %q", op.Name, name)
}

// ValueArg reads an argument that must be a value and gives its index.
func ValueArg(op *recording.Operation, name string) (int, error) {
	a, path, err := find(op, name)
	if err != nil {
		return 0, err
	}
	if a.Kind != recording.ValueOf {
		return 0, diag.New("WRONG_ARGUMENT", path, "%s: %q is no tensor", op.Name, name)
	}
	return a.Value, nil
}

// OptionalValueArg is ValueArg for an argument that may be none; ok is false then.
func OptionalValueArg(op *recording.Operation, name string) (index int, ok bool, err error) {
	a, _, err := find(op, name)
	if err != nil || a.Kind == recording.None {
		return 0, false, err
	}
	i, err := ValueArg(op, name)
	return i, err == nil, err
}

// ValuesArg reads an argument that must be a list of values.
func ValuesArg(op *recording.Operation, name string) ([]int, error) {
	a, path, err := find(op, name)
	if err != nil {
		return nil, err
	}
	if a.Kind != recording.List {
		return nil, diag.New("WRONG_ARGUMENT", path, "%s: %q is no list of tensors", op.Name, name)
	}
	for i := range a.Items {
		if a.Items[i].Kind != recording.ValueOf {
			return nil, diag.New("WRONG_ARGUMENT", fmt.Sprintf("%s.list[%d]", path, i), "%s: %q is no list of tensors", op.Name, name)
		}
	}
	return recording.Values(a.Items, nil), nil
}

// IntArg reads an integer.
func IntArg(op *recording.Operation, name string) (int64, error) {
	a, path, err := find(op, name)
	if err != nil {
		return 0, err
	}
	if a.Kind != recording.Integer {
		return 0, diag.New("WRONG_ARGUMENT", path, "%s: %q is no integer", op.Name, name)
	}
	return a.Int, nil
}

// IntsArg reads a list of integers; an empty list is allowed.
func IntsArg(op *recording.Operation, name string) ([]int64, error) {
	a, path, err := find(op, name)
	if err != nil {
		return nil, err
	}
	if a.Kind == recording.None {
		return nil, nil
	}
	if a.Kind != recording.List {
		return nil, diag.New("WRONG_ARGUMENT", path, "%s: %q is no list of integers", op.Name, name)
	}
	out := make([]int64, len(a.Items))
	for i := range a.Items {
		if a.Items[i].Kind != recording.Integer {
			return nil, diag.New("WRONG_ARGUMENT", fmt.Sprintf("%s.list[%d]", path, i), "%s: %q is no list of integers", op.Name, name)
		}
		out[i] = a.Items[i].Int
	}
	return out, nil
}

// RealArg reads a number: real, integer or boolean.
func RealArg(op *recording.Operation, name string) (float64, error) {
	a, path, err := find(op, name)
	if err != nil {
		return 0, err
	}
	switch a.Kind {
	case recording.Real:
		return a.Real, nil
	case recording.Integer:
		return float64(a.Int), nil
	case recording.Boolean:
		if a.Bool {
			return 1, nil
		}
		return 0, nil
	}
	return 0, diag.New("WRONG_ARGUMENT", path, "%s: %q is no number", op.Name, name)
}

// BoolArg reads a boolean.
func BoolArg(op *recording.Operation, name string) (bool, error) {
	a, path, err := find(op, name)
	if err != nil {
		return false, err
	}
	if a.Kind != recording.Boolean {
		return false, diag.New("WRONG_ARGUMENT", path, "%s: %q is no boolean", op.Name, name)
	}
	return a.Bool, nil
}

// Result gives the index of result number i, counting lists flat.
func Result(op *recording.Operation, i int) (int, error) {
	all := recording.Values(op.Results, nil)
	if i >= len(all) {
		return 0, diag.New("MISSING_RESULT", "results", "%s has %d results, wanted number %d", op.Name, len(all), i)
	}
	return all[i], nil
}

// OptionalResult gives the index of entry i of the results; ok is false where PyTorch made none, as of a gradient that
// nobody asked for.
func OptionalResult(op *recording.Operation, i int) (index int, ok bool, err error) {
	if i >= len(op.Results) {
		return 0, false, diag.New("MISSING_RESULT", "results", "%s has %d results, wanted number %d", op.Name, len(op.Results), i)
	}
	switch r := &op.Results[i]; r.Kind {
	case recording.None:
		return 0, false, nil
	case recording.ValueOf:
		return r.Value, true, nil
	}
	return 0, false, diag.New("WRONG_RESULT", fmt.Sprintf("results[%d]", i), "%s: result %d is no tensor", op.Name, i)
}

// Refuse is for what an operation's lowering does not do.
func Refuse(op *recording.Operation, path, format string, args ...any) error {
	return diag.New("UNSUPPORTED", path, "%s: %s", op.Name, fmt.Sprintf(format, args...))
}
