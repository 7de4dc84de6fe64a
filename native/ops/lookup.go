package ops

import (
	"fmt"
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// This file is what gather, embedding, index_select and index.Tensor share: launches of kernels/index.cu.

// lookup is a tensor of indices into one dimension of the input.
type lookup struct {
	value   int     // of the recording: int64 or int32
	by      []int64 // its strides along the result's dimensions
	size    int64   // of the dimension
	step    int64   // elements of the input from one index to the next
	argPath string
}

// maxLookups is how many tensors of indices the kernels take.
const maxLookups = 4

// lookUp emits a launch. from are the strides of x along the result's dimensions, 0 where lookups decide; wrap lets negative
// indices count from the end.
func lookUp(b *Builder, op *recording.Operation, out int, x device.Tensor, from []int64, wrap bool, lookups ...lookup) error {
	y := b.Value(out)
	if x.DType != y.DType {
		return Refuse(op, "results[0]", "%s does not come from %s", y.DType, x.DType)
	}
	if y.Numel() == 0 {
		return nil
	}
	if len(lookups) == 0 || len(lookups) > maxLookups {
		return Refuse(op, "arguments", "%d tensors of indices, 1 to %d are done", len(lookups), maxLookups)
	}
	strides := [][]int64{y.Strides, from}
	for _, l := range lookups {
		if l.size == 0 {
			return Refuse(op, l.argPath, "indices into nothing give %v", y.Sizes)
		}
		strides = append(strides, l.by)
	}
	s := collapse(y.Sizes, strides...)
	if err := s.check(op); err != nil {
		return err
	}
	args := append(append(s.args(), b.Pointer(out)), s.steps(0)...)
	args = append(append(args, x.Pointer), s.steps(1)...)
	args = append(args, flag(wrap))
	entry, slots := "index1", 1
	if len(lookups) > 1 {
		entry, slots = "index4", maxLookups
		args = append(args, int32(len(lookups)))
	}
	for i := range slots { // the kernel does not look at slots beyond the last
		i = min(i, len(lookups)-1)
		l := lookups[i]
		v := b.Value(l.value)
		if v.DType != tensor.Int64 && v.DType != tensor.Int32 {
			return Refuse(op, l.argPath, "indices of %s", v.DType)
		}
		args = append(append(args, b.Pointer(l.value), flag(v.DType == tensor.Int64)), s.steps(2+i)...)
		args = append(args, l.size, l.step)
	}
	b.launch("index", bitsEntry(entry, y.DType), s.items(y.DType), args)
	return nil
}

// lookUpAlong replaces dimension dim of self by index, which has the result's strides along at.
func lookUpAlong(b *Builder, op *recording.Operation, self, index, dim int, from, by []int64) error {
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	l := lookup{value: index, by: by, size: 1, step: 0, argPath: argumentPath(op, "index")}
	if x := b.Value(self); len(x.Sizes) > 0 {
		l.size, l.step = x.Sizes[dim], x.Strides[dim]
	}
	return lookUp(b, op, out, b.Tensor(self), from, false, l)
}

// selfAndResult reads the argument self and result 0.
func selfAndResult(op *recording.Operation) (self, out int, err error) {
	if self, err = ValueArg(op, "self"); err != nil {
		return
	}
	out, err = Result(op, 0)
	return
}

// bitsEntry names the entry for the size of a type's elements, of a kernel that moves bits as they are.
func bitsEntry(name string, d tensor.DType) string { return fmt.Sprintf("%s_%d", name, d.Size()) }

// replaced is list with another element at i.
func replaced(list []int64, i int, v int64) []int64 {
	list = append([]int64{}, list...)
	list[i] = v
	return list
}

// small reports whether a number fits into the kernels' 32-bit parameters.
func small(numbers ...int64) bool {
	for _, n := range numbers {
		if n > math.MaxInt32 || n < math.MinInt32 {
			return false
		}
	}
	return true
}
