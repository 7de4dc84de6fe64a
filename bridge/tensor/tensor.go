// Package tensor describes tensors: element types, sizes, strides. It holds no data.
package tensor

import "fmt"

// DType is an element type. The values are those of the wire.
type DType uint8

const (
	Invalid DType = iota
	Bool
	Uint8
	Int8
	Int16
	Int32
	Int64
	Float16
	BFloat16
	Float32
	Float64
)

var dtypes = [...]struct {
	name  string
	bytes int64
}{
	Invalid: {"invalid", 0}, Bool: {"bool", 1}, Uint8: {"uint8", 1}, Int8: {"int8", 1}, Int16: {"int16", 2},
	Int32: {"int32", 4}, Int64: {"int64", 8}, Float16: {"float16", 2}, BFloat16: {"bfloat16", 2},
	Float32: {"float32", 4}, Float64: {"float64", 8},
}

// Valid reports whether d names a type that we know.
func (d DType) Valid() bool { return d > Invalid && int(d) < len(dtypes) }

// Size is the size of one element in bytes; 0 if d is not valid.
func (d DType) Size() int64 {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].bytes
}

func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Float reports whether d is a floating-point type.
func (d DType) Float() bool { return d >= Float16 && d <= Float64 }

// ParseDType reads PyTorch's name of a type: float32, bfloat16, int64.
func ParseDType(name string) (DType, error) {
	for d := Bool; int(d) < len(dtypes); d++ {
		if dtypes[d].name == name {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("unknown dtype %q", name)
}

// Spec names a contiguous tensor.
type Spec struct {
	Name  string
	DType DType
	Sizes []int64
}

// Numel is the number of elements.
func (s Spec) Numel() int64 { return Numel(s.Sizes) }

// Bytes is the size of the elements in bytes.
func (s Spec) Bytes() int64 { return s.Numel() * s.DType.Size() }

// Numel multiplies sizes. A tensor without dimensions has one element.
func Numel(sizes []int64) int64 {
	n := int64(1)
	for _, s := range sizes {
		n *= s
	}
	return n
}

// ContiguousStrides gives the strides, in elements, of a row-major tensor as PyTorch computes them.
func ContiguousStrides(sizes []int64) []int64 {
	strides := make([]int64, len(sizes))
	n := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = n
		n *= max(sizes[i], 1)
	}
	return strides
}

// IsContiguous is PyTorch's test: dimensions of size 1 have any stride, and an empty tensor is contiguous.
func IsContiguous(sizes, strides []int64) bool {
	if Numel(sizes) == 0 {
		return true
	}
	want := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		if sizes[i] == 1 {
			continue
		}
		if strides[i] != want {
			return false
		}
		want *= sizes[i]
	}
	return true
}
