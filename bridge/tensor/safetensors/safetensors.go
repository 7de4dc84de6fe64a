// Package safetensors reads and writes the safetensors format: a JSON header that names tensors, then their bytes.
// The reader trusts nothing: what it returns is whole, within bounds and free of overlaps.
package safetensors

import (
	"cmp"
	"os"
	"slices"

	"samebits/bridge/tensor"
)

// MaxHeader is the largest header that Decode takes, in bytes. It is the limit of the reference implementation.
const MaxHeader = 100_000_000

// MaxRank is the largest number of dimensions that Decode takes. It is PyTorch's limit.
const MaxRank = 64

// metadataKey is the one key of the header that is no tensor.
const metadataKey = "__metadata__"

// Tensor is one entry of a file. Data lies in the memory that the file was decoded from.
type Tensor struct {
	tensor.Spec
	Data []byte
}

// File is a decoded file. Its tensors are sorted by name.
type File struct {
	Tensors  []Tensor
	Metadata map[string]string // __metadata__; nil if there is none
}

// Get finds a tensor by name.
func (f *File) Get(name string) (*Tensor, bool) {
	i, ok := slices.BinarySearchFunc(f.Tensors, name, func(t Tensor, name string) int { return cmp.Compare(t.Name, name) })
	if !ok {
		return nil, false
	}
	return &f.Tensors[i], true
}

// ReadFile reads and decodes a file.
func ReadFile(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Decode(data)
}

// The format's names of types. Types that are not here (float8, unsigned integers above eight bits) are refused.
var dtypeNames = map[string]tensor.DType{
	"BOOL": tensor.Bool, "U8": tensor.Uint8, "I8": tensor.Int8, "I16": tensor.Int16, "I32": tensor.Int32, "I64": tensor.Int64,
	"F16": tensor.Float16, "BF16": tensor.BFloat16, "F32": tensor.Float32, "F64": tensor.Float64,
}

// writeOrder lists all types in the order in which the Python package writes their tensors: wide elements first, so
// that each tensor is aligned to its element.
var writeOrder = []struct {
	name  string
	dtype tensor.DType
}{
	{"I64", tensor.Int64}, {"F64", tensor.Float64}, {"F32", tensor.Float32}, {"I32", tensor.Int32}, {"BF16", tensor.BFloat16},
	{"F16", tensor.Float16}, {"I16", tensor.Int16}, {"I8", tensor.Int8}, {"U8", tensor.Uint8}, {"BOOL", tensor.Bool},
}
