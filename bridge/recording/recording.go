// Package recording holds the exact list of tensor operations that one eager step of a reference ran, and checks it.
// Decode turns bytes from anywhere into a Recording that is safe to run: every index, bound and alias was checked.
package recording

import "samebits/bridge/tensor"

// Schema is the version of the format that this package writes and reads.
const Schema = 1

// Role says what a storage is for. The values are those of the wire.
type Role uint8

const (
	RoleInvalid Role = iota
	Input
	Parameter
	Buffer
	Constant
	Gradient
	Output
	Scratch
)

// Recording is one recorded step.
type Recording struct {
	Header     Header
	Storages   []Storage
	Values     []Value
	Operations []Operation
	Inputs     []Named
	Outputs    []Named
	Slots      []Slot
	Digest     string // BLAKE3 of the encoded bytes, set by Decode
}

// Header says what was recorded, how and where.
type Header struct {
	Family, Size, Task, Mode, Precision, Profile string
	ProfileSettings                              []Setting
	DeviceType                                   string // cuda or cpu
	Environment                                  []Setting
	Seed                                         uint64
	Seasoning                                    string
	ImgSize, Batch                               int64
}

// Setting is a key with its value. Lists of settings are sorted by key.
type Setting struct{ Key, Value string }

// Storage is one block of memory.
type Storage struct {
	Bytes int64
	Role  Role
	Name  string // key in the weights file for parameters, buffers and constants; the input's name for inputs
	DType tensor.DType
}

// Value is a tensor on a storage. Sizes, strides and offset are in elements.
type Value struct {
	Storage   int
	DType     tensor.DType
	Sizes     []int64
	Strides   []int64
	Offset    int64
	Alignment uint32 // largest power of two that divided its address in the reference, at most 512
}

// Numel is the number of elements of v.
func (v *Value) Numel() int64 { return tensor.Numel(v.Sizes) }

// Contiguous reports whether v's elements lie in row-major order without gaps.
func (v *Value) Contiguous() bool { return tensor.IsContiguous(v.Sizes, v.Strides) }

// Operation is one call below autograd: name with overload as in aten::add.Tensor ("default" left out).
type Operation struct {
	Name      string
	Arguments []Argument // the whole schema in its order
	Results   []Argument
	Module    string
	Source    string
}

// Kind says which field of an Argument counts.
type Kind uint8

const (
	None         Kind = iota
	ValueOf           // Value: index into Values
	Boolean           // Bool
	Integer           // Int
	Real              // Real
	Text              // Text
	List              // Items
	DTypeOf           // DType
	MemoryFormat      // Text
	Layout            // Text
	Device            // Text
	SlotOf            // Slot: index into Slots
)

// Argument is an argument or result of an operation.
type Argument struct {
	Name  string
	Kind  Kind
	Value int
	Slot  int
	Bool  bool
	Int   int64
	Real  float64
	Text  string
	DType tensor.DType
	Items []Argument
}

// Named gives a value a name that users see. Nested outputs are flattened: predictions, raw_outputs.0, x8.features.
type Named struct {
	Name  string
	Value int
}

// Slot is a scalar that changes from step to step.
type Slot struct {
	Name  string
	DType tensor.DType
}

// Arg finds an argument by name.
func (o *Operation) Arg(name string) (*Argument, bool) {
	for i := range o.Arguments {
		if o.Arguments[i].Name == name {
			return &o.Arguments[i], true
		}
	}
	return nil, false
}

// Values appends the indices of all values in args, lists included, in order.
func Values(args []Argument, to []int) []int {
	for i := range args {
		switch args[i].Kind {
		case ValueOf:
			to = append(to, args[i].Value)
		case List:
			to = Values(args[i].Items, to)
		}
	}
	return to
}
