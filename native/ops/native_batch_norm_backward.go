package ops

import (
	"fmt"
	"slices"

	"samebits/bridge/recording"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::native_batch_norm_backward", Class: Compute, Lower: lowerNativeBatchNormBackward})
}

func lowerNativeBatchNormBackward(b *Builder, op *recording.Operation) error {
	var values [4]int
	for i, name := range []string{"input", "grad_out", "save_mean", "save_invstd"} {
		v, err := ValueArg(op, name)
		if err != nil {
			return err
		}
		values[i] = v
	}
	train, err := BoolArg(op, "train")
	if err != nil {
		return err
	}
	if !train {
		return Refuse(op, argumentPath(op, "train"), "the gradients of batch norm in evaluation are not done")
	}
	x, dy := b.Tensor(values[0]), b.Tensor(values[1])
	if err := trainsByPlanes(op, x); err != nil {
		return err
	}
	if len(x.Sizes) == 4 && inFormat(x.Sizes, x.Strides, true) {
		return Refuse(op, argumentPath(op, "input"), "an input of sizes %v, which PyTorch takes for channels-last", x.Sizes)
	}
	if !slices.Equal(dy.Sizes, x.Sizes) || dy.DType != x.DType {
		return Refuse(op, argumentPath(op, "grad_out"), "gradients of %s and %v for an input of %s and %v", dy.DType, dy.Sizes, x.DType, x.Sizes)
	}
	images, channels := x.Sizes[0], x.Sizes[1]
	for _, v := range values[2:] {
		if err := perChannel(b, op, "arguments", v, channels); err != nil {
			return err
		}
	}
	// What is not wanted gets some address, which is not used.
	wanted, pointers := int32(0), [3]device.Pointer{x.Pointer, x.Pointer, x.Pointer}
	for i := range pointers {
		v, ok, err := OptionalResult(op, i)
		if err != nil {
			return err
		}
		if i == 0 && !ok {
			return Refuse(op, "results[0]", "only the gradients of weight and bias, for which PyTorch has another kernel")
		}
		if !ok || !b.Needed(v) {
			continue
		}
		to := b.Value(v)
		if i > 0 {
			err = perChannel(b, op, fmt.Sprintf("results[%d]", i), v, channels)
		} else if to.DType != x.DType || !slices.Equal(to.Sizes, x.Sizes) || !to.Contiguous() {
			err = Refuse(op, "results[0]", "a gradient of %s, sizes %v and strides %v", to.DType, to.Sizes, to.Strides)
		}
		if err != nil {
			return err
		}
		wanted |= 1 << i
		pointers[i] = b.Pointer(v)
	}
	weight, scaled, err := OptionalValueArg(op, "weight")
	if err != nil {
		return err
	}
	scale := b.Pointer(values[2]) // not read
	if scaled {
		if err := perChannel(b, op, argumentPath(op, "weight"), weight, channels); err != nil {
			return err
		}
		wanted, scale = wanted|8, b.Pointer(weight)
	}
	if dy, err = dense(b, op, dy, false); err != nil {
		return err
	}
	suffix, err := Suffix(x.DType)
	if err != nil {
		return err
	}
	inner := int64(1)
	for _, n := range x.Sizes[2:] {
		inner *= n
	}
	b.Emit(&device.Kernel{File: "native_batch_norm_backward", Entry: "batch_norm_backward_" + suffix,
		Grid: [3]uint32{uint32(channels), 1, 1}, Block: batchNormBlock(inner),
		Args: []any{pointers[0], pointers[1], pointers[2], x.Pointer, dy.Pointer, scale,
			b.Pointer(values[2]), b.Pointer(values[3]), wanted, uint32(images), uint32(channels), uint32(inner)}})
	return nil
}
