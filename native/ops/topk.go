package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() { register(lowerTopK, "aten::topk") }

const (
	topKNetwork = 32   // up to so many are sorted by the network
	topKSorted  = 4096 // and up to so many by the stable sort that PyTorch does in place
	topKThreads = 1024
)

func lowerTopK(b *Builder, op *recording.Operation) error {
	f := &fold{keep: true}
	var err error
	var at int
	if f.in, at, err = selfAndResult(op); err != nil {
		return err
	}
	f.outs = []int{at}
	if at, err = Result(op, 1); err != nil {
		return err
	}
	f.outs = append(f.outs, at)
	x, y, places := b.Value(f.in), b.Value(f.outs[0]), b.Value(at)
	if f.dim, err = dimension(op, max(len(x.Sizes), 1)); err != nil {
		return err
	}
	k, err := IntArg(op, "k")
	if err != nil {
		return err
	}
	largest, err := BoolArg(op, "largest")
	if err != nil {
		return err
	}
	sorted, err := BoolArg(op, "sorted")
	if err != nil {
		return err
	}
	size := f.count(b)
	switch {
	case len(x.Sizes) == 0 || k < 0 || k > size:
		return Refuse(op, argumentPath(op, "k"), "%d of %v along dimension %d", k, x.Sizes, f.dim)
	case !equalSizes(replaced(x.Sizes, f.dim, k), y.Sizes, places.Sizes) || y.DType != x.DType || places.DType != tensor.Int64:
		return Refuse(op, "results[0]", "%s of %v and %s of %v", y.DType, y.Sizes, places.DType, places.Sizes)
	case y.Numel() == 0:
		return nil
	case x.DType == tensor.Bool:
		return Refuse(op, argumentPath(op, "self"), "booleans are not done")
	case k > topKSorted:
		return Refuse(op, argumentPath(op, "k"), "%d elements, at most %d are done", k, topKSorted)
	case x.Numel()/size <= 10 && size >= 100000:
		return Refuse(op, argumentPath(op, "self"), "slices of %d elements, which PyTorch sorts as a whole", size)
	case !small(size):
		return Refuse(op, argumentPath(op, "self"), "slices of %d elements", size)
	}
	suffix, err := Suffix(x.DType)
	if err != nil {
		return Refuse(op, argumentPath(op, "self"), "%v", err)
	}
	s := collapse(f.without(x.Sizes), f.without(y.Strides), f.without(places.Strides), f.without(x.Strides))
	if err := s.check(op); err != nil {
		return err
	}
	shared := 4 * k
	if sorted && k > topKNetwork {
		shared += max(4, x.DType.Size()) * k // keys
	}
	const most = 48 << 10
	if shared > most-4096 {
		return Refuse(op, argumentPath(op, "k"), "%d elements of %s need more shared memory than a block has", k, x.DType)
	}
	args := append(append(s.args(), b.Pointer(f.outs[0])), s.steps(0)...)
	args = append(append(args, y.Strides[f.dim], b.Pointer(at)), s.steps(1)...)
	args = append(append(args, places.Strides[f.dim], b.Pointer(f.in)), s.steps(2)...)
	args = append(args, x.Strides[f.dim], uint32(size), uint32(k), flag(largest), flag(sorted))
	b.Emit(&device.Kernel{File: "topk", Entry: "topk_" + suffix, Grid: [3]uint32{uint32(s.numel()), 1, 1},
		Block: [3]uint32{uint32(min(ceilDiv(size, warp)*warp, topKThreads)), 1, 1}, Shared: uint32(shared), Args: args})
	return nil
}
