package ops

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::_softmax", Class: Compute, Lower: lowerSoftmax})
}

func lowerSoftmax(b *Builder, op *recording.Operation) error {
	s, err := readSoftmax(b, op)
	if err != nil {
		return err
	}
	return s.emit(b, op)
}

func (s *softmaxCall) emit(b *Builder, op *recording.Operation) error {
	if b.Value(s.in).Numel() == 0 {
		return nil
	}
	x, y := b.Value(s.in), b.Value(s.out)
	from, err := dense(b, op, b.Tensor(s.in), false)
	if err != nil {
		return err
	}
	k := softmaxLaunch(x.Sizes, s.dim, x.DType, s.halfToFloat, b.aligned16(from) && alignment(y) >= 16)
	if k.Grid[1] > 65535 || x.Numel() > 1<<31-1 {
		return Refuse(op, "arguments[0]", "%v elements need 64-bit offsets", x.Sizes)
	}
	suffix, err := Suffix(x.DType)
	if err != nil {
		return err
	}
	if s.safe {
		k.File, k.Entry = "safe_softmax", "safe_"+k.Entry
	}
	k.Entry += "_" + suffix
	k.Args = append([]any{b.Pointer(s.out), s.wide, from.Pointer}, k.Args...)
	b.Emit(k)
	return nil
}

// softmaxCall is what softmax and log-softmax are called with.
type softmaxCall struct {
	in, out     int
	dim         int64
	halfToFloat bool
	wide        int32 // 1: the result is float32
	safe        bool  // a row of nothing but -Inf gives zeros
}

func readSoftmax(b *Builder, op *recording.Operation) (*softmaxCall, error) {
	halfToFloat, err := BoolArg(op, "half_to_float")
	if err != nil {
		return nil, err
	}
	return readSoftmaxTo(b, op, halfToFloat)
}

// readSoftmaxTo reads what all softmaxes share.
func readSoftmaxTo(b *Builder, op *recording.Operation, halfToFloat bool) (*softmaxCall, error) {
	s := &softmaxCall{halfToFloat: halfToFloat}
	var err error
	if s.in, err = ValueArg(op, "self"); err != nil {
		return nil, err
	}
	if s.out, err = Result(op, 0); err != nil {
		return nil, err
	}
	if s.dim, err = IntArg(op, "dim"); err != nil {
		return nil, err
	}
	x, y := b.Value(s.in), b.Value(s.out)
	want := x.DType
	if s.halfToFloat {
		want = tensor.Float32
	}
	switch x.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16:
	default:
		return nil, Refuse(op, "arguments[0]", "no kernel for %s", x.DType)
	}
	if y.DType != want {
		return nil, Refuse(op, "results[0]", "a result of %s, wanted %s", y.DType, want)
	}
	if !y.Contiguous() {
		return nil, Refuse(op, "results[0]", "a result with strides %v", y.Strides)
	}
	rank := int64(max(len(x.Sizes), 1))
	if s.dim < 0 {
		s.dim += rank
	}
	if s.dim < 0 || s.dim >= rank {
		return nil, Refuse(op, "arguments", "no dimension %d in %d", s.dim, rank)
	}
	s.wide = flag(y.DType == tensor.Float32)
	return s, nil
}

// aligned16 reports whether a tensor begins at a multiple of 16 bytes.
func (b *Builder) aligned16(t device.Tensor) bool { return t.Offset%16 == 0 }

// longestOfWarp is how many elements a row has at most that PyTorch's softmax gives to a warp.
func longestOfWarp(dtype tensor.DType, halfToFloat bool) int64 {
	if halfToFloat {
		return 1024
	}
	return min(2048, 8192/dtype.Size())
}

// softmaxLaunch chooses the kernel as host_softmax of PyTorch does, and with it the order of the sum. The entry has no
// type yet, the arguments are those behind result, wide and input.
func softmaxLaunch(sizes []int64, dim int64, dtype tensor.DType, halfToFloat, aligned bool) *device.Kernel {
	outer, width, inner := int64(1), int64(1), int64(1)
	for d, size := range sizes {
		switch {
		case int64(d) < dim:
			outer *= size
		case int64(d) == dim:
			width = size
		default:
			inner *= size
		}
	}
	const mostThreads = 1024
	switch {
	case inner > 1:
		x, y := int64(1), min(inner, mostThreads)
		if y <= 64 && width >= 64 {
			for y*x <= mostThreads && x <= width {
				x *= 2
			}
			x /= 2
		}
		shared := int64(0)
		if x > 1 {
			shared = 4 * x * y
		}
		return &device.Kernel{File: "softmax", Entry: "softmax_spatial",
			Grid:  [3]uint32{uint32(outer), uint32(ceilDiv(inner, y)), 1},
			Block: [3]uint32{uint32(x), uint32(y), 1}, Shared: uint32(shared),
			Args: []any{int32(width), int32(inner)}}
	case width <= longestOfWarp(dtype, halfToFloat):
		pow2 := lastPow2(2*width - 1)
		lanes := min(pow2, warp)
		rows := 128 / lanes
		return &device.Kernel{File: "softmax", Entry: fmt.Sprintf("softmax_rows%d", pow2/lanes),
			Grid:  [3]uint32{uint32(ceilDiv(outer, rows)), 1, 1},
			Block: [3]uint32{uint32(lanes), uint32(rows), 1},
			Args:  []any{outer, int32(width)}}
	}
	block := ceilDiv(min(width, mostThreads), warp) * warp
	const byElements, byVectors, byVectorsFromAligned = 0, 1, 2
	const sharedOfBlock = 48 << 10
	way := int32(byVectorsFromAligned)
	switch {
	case !halfToFloat && ceilDiv(width, block) < 10:
		way = byElements
	case width < (sharedOfBlock-block/warp*4)/dtype.Size() && aligned && width%(16/dtype.Size()) == 0:
		way = byVectors
	}
	return &device.Kernel{File: "softmax", Entry: "softmax_block",
		Grid: [3]uint32{uint32(outer), 1, 1}, Block: [3]uint32{uint32(block), 1, 1},
		Args: []any{int32(width), way}}
}
