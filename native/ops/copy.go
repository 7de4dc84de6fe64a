package ops

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	fresh := func(b *Builder, op *recording.Operation) error {
		self, err := ValueArg(op, "self")
		if err != nil {
			return err
		}
		return lowerCopy(b, op, self)
	}
	register(fresh, "aten::_to_copy", "aten::clone")
	Register(Registration{Name: "aten::copy_", Class: InPlace, Lower: func(b *Builder, op *recording.Operation) error {
		src, err := ValueArg(op, "src")
		if err != nil {
			return err
		}
		return lowerCopy(b, op, src)
	}})
}

// lowerCopy fills the operation's result from a value of any type and layout that broadcasts to it.
func lowerCopy(b *Builder, op *recording.Operation, from int) error {
	to, err := Result(op, 0)
	if err != nil {
		return err
	}
	v := b.Value(to)
	by, err := broadcast(b.Value(from), v.Sizes)
	if err != nil {
		return Refuse(op, "arguments", "%v", err)
	}
	source := b.Tensor(from)
	source.Sizes, source.Strides = v.Sizes, by
	return copyTensor(b, op, b.Tensor(to), source)
}

// conversions are the pairs that have an entry of their own for arrays without gaps.
var conversions = map[[2]tensor.DType]string{
	{tensor.Float32, tensor.BFloat16}: "copy_f32_bf16",
	{tensor.Float32, tensor.Float16}:  "copy_f32_f16",
	{tensor.BFloat16, tensor.Float32}: "copy_bf16_f32",
	{tensor.Float16, tensor.Float32}:  "copy_f16_f32",
}

// copyTensor copies a tensor to another of the same sizes. Strides may be 0.
func copyTensor(b *Builder, op *recording.Operation, to, from device.Tensor) error {
	n := tensor.Numel(to.Sizes)
	if n == 0 || to.Pointer == from.Pointer && to.DType == from.DType {
		return nil
	}
	s := collapse(to.Sizes, to.Strides, from.Strides)
	same := to.DType == from.DType
	if s.dense() {
		if same {
			b.Emit(&device.Copy{To: to.Pointer, From: from.Pointer, Bytes: n * to.DType.Size()})
			return nil
		}
		if entry, ok := conversions[[2]tensor.DType{from.DType, to.DType}]; ok {
			b.launch("copy", entry, n*4/16, []any{n, to.Pointer, from.Pointer})
			return nil
		}
	}
	if err := s.check(op); err != nil {
		return err
	}
	entry, code, err := copyEntry(to.DType, from.DType)
	if err != nil {
		return Refuse(op, "arguments", "%v", err)
	}
	args := append(append(s.args(), to.Pointer), s.steps(0)...)
	args = append(append(args, from.Pointer, code), s.steps(1)...)
	b.launch("copy", entry, s.items(to.DType), args)
	return nil
}

// copyEntry names the strided entry: one for the size of the elements where no bits change, else one that converts.
func copyEntry(to, from tensor.DType) (string, int32, error) {
	if to == from {
		// The code of the unsigned type of that size, in kernels/convert.cuh.
		code := map[int64]int32{1: 6, 2: 8, 4: 9, 8: 10}[to.Size()]
		return fmt.Sprintf("copy_%d", to.Size()), code, nil
	}
	code, err := elementCode(from)
	if err != nil {
		return "", 0, err
	}
	suffix, err := Suffix(to)
	if err != nil {
		return "", 0, err
	}
	if to == tensor.Bool {
		suffix = "bool"
	}
	return "copy_to_" + suffix, code, nil
}
