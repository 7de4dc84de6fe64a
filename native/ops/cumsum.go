package ops

import (
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() { register(lowerCumsum, "aten::cumsum", "aten::cumsum_") }

// lowerCumsum works as PyTorch does: the input in the type of the result, row-major.
func lowerCumsum(b *Builder, op *recording.Operation) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	x, y := b.Value(self), b.Value(out)
	dim, err := dimension(op, max(len(x.Sizes), 1))
	if err != nil {
		return err
	}
	if !equalSizes(x.Sizes, y.Sizes) || y.Numel() > math.MaxUint32 {
		return Refuse(op, "results[0]", "sizes %v do not come from %v", y.Sizes, x.Sizes)
	}
	switch y.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64, tensor.Int64:
	default:
		return Refuse(op, "results[0]", "sums in %s", y.DType)
	}
	from, to := b.Tensor(self), b.Tensor(out)
	if y.Numel() == 0 || len(y.Sizes) == 0 {
		return copyTensor(b, op, to, from)
	}
	rows := tensor.ContiguousStrides(y.Sizes)
	work := to
	if !inFormat(y.Sizes, y.Strides, false) {
		work.Pointer, work.Strides = b.Scratch(y.Numel()*y.DType.Size()), rows
	}
	if x.DType != y.DType || !inFormat(x.Sizes, x.Strides, false) {
		if err := copyTensor(b, op, work, from); err != nil {
			return err
		}
		from = work
	}
	k, err := scanLaunch(op, y, dim)
	if err != nil {
		return err
	}
	k.Args = append([]any{work.Pointer, from.Pointer}, k.Args...)
	b.Emit(k)
	if work.Pointer != to.Pointer {
		return copyTensor(b, op, to, work)
	}
	return nil
}

// scanThreads is PyTorch's block for scans along the last dimension.
const scanThreads = 512

// scanOuterThreads is a block of scans along another dimension.
const scanOuterThreads = 64

// scanLaunch chooses the kernel, as scan_dim in PyTorch's ScanUtils.cuh does, and its geometry, which for a scan along the
// last dimension enters the order of additions.
func scanLaunch(op *recording.Operation, y *recording.Value, dim int) (*device.Kernel, error) {
	suffix, err := Suffix(y.DType)
	if err != nil {
		return nil, err
	}
	size := y.Sizes[dim]
	k := &device.Kernel{File: "cumsum"}
	switch {
	case size == y.Numel():
		if tile := vectorTile(y.DType); size > tile && y.DType.Float() {
			return nil, Refuse(op, argumentPath(op, "self"), "a line of %d: beyond %d PyTorch's own result depends on timing", size, tile)
		}
		k.Entry, k.Grid, k.Block = "cumsum_vector_", [3]uint32{1, 1, 1}, [3]uint32{128, 1, 1}
		k.Args = []any{uint32(size)}
	case dim == len(y.Sizes)-1:
		lines := y.Numel() / size
		width := scanWidth(uint32(lines), uint32(size))
		if width == 16 { // a warp a line
			k.Entry, k.Grid, k.Block = "cumsum_warp_", blocks(32*lines), [3]uint32{threads, 1, 1}
			k.Args = []any{uint32(lines), uint32(size)}
			break
		}
		k.Entry, k.Block = "cumsum_inner_", [3]uint32{width, scanThreads / width, 1}
		k.Grid = [3]uint32{uint32(min(ceilDiv(lines, int64(k.Block[1])), math.MaxInt32)), 1, 1}
		k.Shared = uint32(2 * scanThreads * y.DType.Size())
		k.Args = []any{uint32(lines), uint32(size)}
	default:
		inner := tensor.Numel(y.Sizes[dim+1:])
		outer := tensor.Numel(y.Sizes[:dim])
		k.Entry, k.Block = "cumsum_outer_", [3]uint32{scanOuterThreads, 1, 1} // few lines spread over the multiprocessors
		k.Grid = [3]uint32{uint32(min(ceilDiv(outer*inner, scanOuterThreads), math.MaxInt32)), 1, 1}
		k.Args = []any{uint32(outer), uint32(inner), uint32(size)}
	}
	k.Entry += suffix
	return k, nil
}

// vectorTile is how many elements CUB scans by one block: 128 threads of 15 words of 4 bytes.
func vectorTile(d tensor.DType) int64 {
	switch d.Size() {
	case 2:
		return 128 * 30
	case 8:
		return 128 * 7
	}
	return 128 * 15
}

// scanWidth is get_log_num_threads_x_inner_scan: threads of a line in proportion to its length. The arithmetic wraps as
// PyTorch's does, so that very many short lines get the widest block.
func scanWidth(lines, size uint32) uint32 {
	var x, y uint32
	for uint64(1)<<x < uint64(size) {
		x++
	}
	for uint64(1)<<y < uint64(lines) {
		y++
	}
	return 1 << min(max(4, (9+x-y)/2), 9)
}
