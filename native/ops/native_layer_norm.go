package ops

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::native_layer_norm", Class: Compute, Lower: lowerLayerNorm})
}

// lowerLayerNorm chooses the kernel as PyTorch does: by vectors of 4 where the length of rows and all addresses allow.
func lowerLayerNorm(b *Builder, op *recording.Operation) error {
	in, err := ValueArg(op, "input")
	if err != nil {
		return err
	}
	shape, err := IntsArg(op, "normalized_shape")
	if err != nil {
		return err
	}
	eps, err := number(op, "eps")
	if err != nil {
		return err
	}
	x := b.Value(in)
	suffix, err := normSuffix(op, x)
	if err != nil {
		return err
	}
	n := tensor.Numel(shape)
	if len(shape) == 0 || len(shape) > len(x.Sizes) || n < 1 || n > 1<<31-1 {
		return Refuse(op, argumentPath(op, "normalized_shape"), "a normalized shape %v of sizes %v", shape, x.Sizes)
	}
	for i, size := range shape {
		if x.Sizes[len(x.Sizes)-len(shape)+i] != size {
			return Refuse(op, argumentPath(op, "normalized_shape"), "a normalized shape %v of sizes %v", shape, x.Sizes)
		}
	}
	rows := x.Numel() / n
	if rows > 1<<31-1 {
		return Refuse(op, "arguments[0]", "%d rows, at most 2^31 are done", rows)
	}
	out, err := contiguousResult(b, op, 0, x.DType, x.Numel())
	if err != nil || rows == 0 {
		return err
	}
	from, err := dense(b, op, b.Tensor(in), false)
	if err != nil {
		return err
	}
	vectors := n%4 == 0 && n <= 1<<24 && b.alignedTo(from.Pointer, 4*x.DType.Size()) && b.alignedTo(b.Pointer(out), 4*x.DType.Size())
	args := []any{b.Pointer(out), from.Pointer}
	for _, name := range []string{"weight", "bias"} {
		p, has, err := normParameter(b, op, name, x.DType, n)
		if err != nil {
			return err
		}
		vectors = vectors && b.alignedTo(p, 4*x.DType.Size())
		args = append(args, p, has)
	}
	for i := 1; i <= 2; i++ {
		saved, err := Result(op, i)
		if err != nil {
			return err
		}
		if !b.Needed(saved) {
			args = append(args, b.Pointer(out), int32(0)) // not written
			continue
		}
		if saved, err = contiguousResult(b, op, i, tensor.Float32, rows); err != nil {
			return err
		}
		args = append(args, b.Pointer(saved), int32(1))
	}
	k := &device.Kernel{File: "layer_norm", Grid: [3]uint32{uint32(rows), 1, 1}, Block: [3]uint32{32, 4, 1},
		Args: append(args, int32(n), float32(eps))}
	switch kept := ceilDiv(n, 512); {
	case !vectors:
		k.Entry, k.Block = "layer_norm_any_", [3]uint32{512, 1, 1}
	case n <= 128:
		k.Entry, k.Grid[0] = "layer_norm_short_", uint32(ceilDiv(rows, 4))
		k.Args = append(k.Args, rows)
	case kept > 4:
		k.Entry = "layer_norm_packs0_"
	default:
		k.Entry = fmt.Sprintf("layer_norm_packs%d_", lastPow2(2*kept-1))
	}
	k.Entry += suffix
	b.Emit(k)
	return nil
}

// normSuffix is Suffix for norms, which compute in float.
func normSuffix(op *recording.Operation, x *recording.Value) (string, error) {
	switch x.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16:
		return Suffix(x.DType)
	}
	return "", Refuse(op, "arguments[0]", "no kernel for %s", x.DType)
}

// contiguousResult gives result number i, which must be of a type and without gaps.
func contiguousResult(b *Builder, op *recording.Operation, i int, dtype tensor.DType, numel int64) (int, error) {
	value, err := Result(op, i)
	if err != nil {
		return 0, err
	}
	if v := b.Value(value); v.DType != dtype || v.Numel() != numel || !v.Contiguous() {
		return 0, Refuse(op, fmt.Sprintf("results[%d]", i), "%s of sizes %v with strides %v, wanted %d elements of %s without gaps",
			v.DType, v.Sizes, v.Strides, numel, dtype)
	}
	return value, nil
}

// normParameter gives the address of a weight or bias of n elements without gaps, and 1; or any address and 0 if it is none.
func normParameter(b *Builder, op *recording.Operation, name string, dtype tensor.DType, n int64) (device.Pointer, int32, error) {
	value, ok, err := OptionalValueArg(op, name)
	if err != nil {
		return device.Pointer{}, 0, err
	}
	if !ok {
		out, err := Result(op, 0)
		return device.Pointer{Storage: b.Value(out).Storage}, 0, err // not read
	}
	v := b.Value(value)
	if v.DType != dtype || v.Numel() != n {
		return device.Pointer{}, 0, Refuse(op, argumentPath(op, name), "%s of sizes %v, wanted %d elements of %s", v.DType, v.Sizes, n, dtype)
	}
	t, err := dense(b, op, b.Tensor(value), false)
	return t.Pointer, 1, err
}

// alignedTo reports whether an address is a multiple of so many bytes, at most 512.
func (b *Builder) alignedTo(p device.Pointer, bytes int64) bool { return p.Offset%bytes == 0 }
