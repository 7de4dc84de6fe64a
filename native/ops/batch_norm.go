package ops

import (
	"math"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// operands are the pointers that kernels of batch norms take. A missing weight or bias is not read.
func (s *statistics) operands(b *Builder, x, y device.Tensor, mean, invstd device.Pointer) []any {
	args := []any{y.Pointer, x.Pointer, mean, invstd}
	for _, p := range []string{"weight", "bias"} {
		if v, ok := s.values[p]; ok {
			args = append(args, b.Pointer(v), int32(1))
		} else {
			args = append(args, invstd, int32(0))
		}
	}
	return args
}

// emitPlanes normalises planes of neighbours, by the arithmetic of one of two files: cuDNN's or PyTorch's own. An
// activation that follows is done in the same kernel.
func (s *statistics) emitPlanes(b *Builder, file string, x, y device.Tensor, mean, invstd device.Pointer) error {
	suffix, err := Suffix(x.DType)
	if err != nil {
		return err
	}
	channels := x.Sizes[1]
	planes := x.Sizes[0] * channels
	inner := tensor.Numel(x.Sizes) / planes
	k := &device.Kernel{File: file, Args: append(s.operands(b, x, y, mean, invstd), uint32(channels), uint32(inner))}
	if a, ok := b.then(); ok {
		k.File = "batch_norm_" + a.name
		k.Entry = k.File + "_" + suffix
		zero := float32(math.Copysign(0, -1))
		if file == "cudnn_bn" {
			zero = 0
		}
		k.Args = append(k.Args, zero, a.p, a.q)
	} else if file == "cudnn_bn" {
		k.Entry = "bn_inference_" + suffix
		k.Args = []any{y.Pointer, x.Pointer, b.Pointer(s.values["weight"]), b.Pointer(s.values["bias"]),
			mean, invstd, uint32(channels), uint32(inner)}
	} else {
		k.Entry = "batch_norm_transform_" + suffix
	}
	packs := inner
	if width := 16 / x.DType.Size(); inner%width == 0 && b.aligned16(x) && b.aligned16(y) && b.inPacks(s.x) && b.inPacks(s.y) {
		k.Entry += "_packs"
		packs = inner / width
	}
	k.Grid, k.Block = planeGrid(planes, packs)
	b.Emit(k)
	return nil
}

// inPacks reports whether a value's address is a multiple of 16, as far as its storage's is what the reference's was.
func (b *Builder) inPacks(value int) bool {
	a := b.Value(value).Alignment
	return a == 0 || a >= 16
}

// What a GPU of the size of an H200 runs at one time, and how many packs a thread of a large tensor takes at most.
const (
	threadsAtOnce  = 132 * 2048
	packsPerThread = 4
)

// planeGrid launches as many small blocks as there is work for: a thread takes a second pack only once every
// multiprocessor is full, so that small images do not leave most of them idle.
func planeGrid(planes, packs int64) (grid, block [3]uint32) {
	size := min(threads, (packs+31)/32*32)
	each := min(max(planes*packs/threadsAtOnce, 1), packsPerThread)
	return [3]uint32{uint32(planes), uint32(min(ceilDiv(packs, size*each), 65535)), 1}, [3]uint32{uint32(size), 1, 1}
}
