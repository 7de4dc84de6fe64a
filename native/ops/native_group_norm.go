package ops

import (
	"samebits/bridge/recording"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::native_group_norm", Class: Compute, Lower: lowerGroupNorm})
}

// groupNorm is a call: images of groups of `channels` channels of `inner` elements.
type groupNorm struct {
	in, out                         int
	images, groups, channels, inner int64
	eps                             float64
}

func lowerGroupNorm(b *Builder, op *recording.Operation) error {
	g, err := readGroupNorm(b, op)
	if err != nil || b.Value(g.in).Numel() == 0 {
		return err
	}
	x := b.Value(g.in)
	suffix, err := normSuffix(op, x)
	if err != nil {
		return err
	}
	from, err := dense(b, op, b.Tensor(g.in), false)
	if err != nil {
		return err
	}
	mean, err := g.statistic(b, op, 1)
	if err != nil {
		return err
	}
	rstd, err := g.statistic(b, op, 2)
	if err != nil {
		return err
	}
	const block = 512 // PyTorch's kCUDABlockReduceNumThreads; fewer elements go to one warp
	row, side := g.channels*g.inner, int64(block)
	if row < block {
		side = warp
	}
	b.Emit(&device.Kernel{File: "group_norm", Entry: "group_moments_" + suffix,
		Grid: [3]uint32{uint32(g.images * g.groups), 1, 1}, Block: [3]uint32{uint32(side), 1, 1},
		Args: []any{mean, rstd, from.Pointer, row, float32(g.eps)}})

	out := b.Tensor(g.out)
	args := []any{out.Pointer, from.Pointer, mean, rstd}
	for _, name := range []string{"weight", "bias"} {
		p, has, err := normParameter(b, op, name, x.DType, g.groups*g.channels)
		if err != nil {
			return err
		}
		args = append(args, p, has)
	}
	args = append(args, uint32(g.groups*g.channels), uint32(g.channels))
	if g.inner == 1 {
		n := x.Numel()
		b.launch("group_norm", "group_elements_"+suffix, n, append([]any{n}, args...))
		return nil
	}
	k := &device.Kernel{File: "group_norm", Entry: "group_scale_" + suffix, Block: [3]uint32{256, 1, 1}}
	pack := int64(1)
	if width := 16 / x.DType.Size(); g.inner%width == 0 && b.aligned16(from) && b.aligned16(out) {
		k.Entry += "_packs"
		pack = width
	}
	planes := g.images * g.groups * g.channels
	k.Grid = [3]uint32{uint32(planes), uint32(min(ceilDiv(g.inner, 4*256*pack), 65535)), 1}
	k.Args = append(args, uint32(g.inner))
	b.Emit(k)
	return nil
}

func readGroupNorm(b *Builder, op *recording.Operation) (*groupNorm, error) {
	g := &groupNorm{}
	var err error
	if g.in, err = ValueArg(op, "input"); err != nil {
		return nil, err
	}
	var channels int64
	for _, field := range []struct {
		name string
		to   *int64
	}{{"N", &g.images}, {"C", &channels}, {"HxW", &g.inner}, {"group", &g.groups}} {
		if *field.to, err = IntArg(op, field.name); err != nil {
			return nil, err
		}
	}
	if g.eps, err = number(op, "eps"); err != nil {
		return nil, err
	}
	x := b.Value(g.in)
	if g.groups < 1 || channels < 0 || channels%g.groups != 0 || x.Numel() != g.images*channels*g.inner {
		return nil, Refuse(op, "arguments", "sizes %v for %d images of %d channels of %d elements in %d groups", x.Sizes, g.images, channels, g.inner, g.groups)
	}
	if x.Numel() > 1<<31-1 {
		return nil, Refuse(op, "arguments[0]", "%v elements need 64-bit offsets", x.Sizes)
	}
	g.channels = channels / g.groups
	g.out, err = contiguousResult(b, op, 0, x.DType, x.Numel())
	return g, err
}

// statistic gives the place of mean or rstd, one for each group in the input's type, which the last step reads.
func (g *groupNorm) statistic(b *Builder, op *recording.Operation, i int) (device.Pointer, error) {
	value, err := Result(op, i)
	if err != nil {
		return device.Pointer{}, err
	}
	dtype, groups := b.Value(g.in).DType, g.images*g.groups
	if !b.Needed(value) {
		return b.Scratch(groups * dtype.Size()), nil
	}
	value, err = contiguousResult(b, op, i, dtype, groups)
	return b.Pointer(value), err
}
