package ops

import (
	"samebits/bridge/recording"
	"samebits/native/device"
)

// This file is what paddings share: launches of kernels made of kernels/pad.cuh.

// padding is a result laid over an input. before are how many elements the input begins after the result, by dimension.
type padding struct {
	from, to device.Tensor
	before   []int64
}

// readPadding reads an argument of pairs, before and after, from the last dimension on.
func readPadding(b *Builder, op *recording.Operation, name string) (*padding, error) {
	self, out, err := selfAndResult(op)
	if err != nil {
		return nil, err
	}
	pairs, err := IntsArg(op, name)
	if err != nil {
		return nil, err
	}
	p := &padding{from: b.Tensor(self), to: b.Tensor(out)}
	dims := len(p.from.Sizes)
	if len(pairs)%2 != 0 || len(pairs) > 2*dims || len(p.to.Sizes) != dims || p.from.DType != p.to.DType {
		return nil, Refuse(op, argumentPath(op, name), "padding %v of %s of %v gives no %s of %v", pairs, p.from.DType, p.from.Sizes, p.to.DType, p.to.Sizes)
	}
	p.before = make([]int64, dims)
	for d, size := range p.from.Sizes {
		before, after := int64(0), int64(0)
		if i := 2 * (dims - 1 - d); i < len(pairs) {
			before, after = pairs[i], pairs[i+1]
		}
		if size+before+after != p.to.Sizes[d] || !small(size, before, after) {
			return nil, Refuse(op, "results[0]", "sizes %v padded by %v do not give %v", p.from.Sizes, pairs, p.to.Sizes)
		}
		p.before[d] = before
	}
	return p, nil
}

// emit launches a kernel; more are arguments behind those of pad.cuh.
func (p *padding) emit(b *Builder, op *recording.Operation, file string, more ...any) error {
	apart := make([]bool, len(p.to.Sizes))
	for d, size := range p.to.Sizes {
		apart[d] = p.before[d] != 0 || p.from.Sizes[d] != size
	}
	s, original := collapseApart(p.to.Sizes, apart, p.to.Strides, p.from.Strides)
	if err := s.check(op); err != nil {
		return err
	}
	args := append(append(s.args(), p.to.Pointer), s.steps(0)...)
	args = append(append(args, p.from.Pointer), s.steps(1)...)
	var before, sizes []any
	for d := range maxDims {
		start, size := int64(0), int64(1)
		if d < len(original) {
			size = s.sizes[d]
			if o := original[d]; o >= 0 {
				start, size = p.before[o], p.from.Sizes[o]
			}
		}
		before, sizes = append(before, int32(start)), append(sizes, uint32(size))
	}
	args = append(append(args, before...), sizes...)
	entry, items := file, s.items(p.to.DType)
	runs := len(original) == 0 || original[0] < 0
	if s.run(0) && s.sizes[0] >= 4 && small(s.sizes[0]) && (!runs || items == s.numel()) {
		entry, items = file+"_flat", ceilDiv(s.numel(), min(4, 16/p.to.DType.Size()))
	}
	b.launch(file, bitsEntry(entry, p.to.DType), items, append(args, more...))
	return nil
}

// run reports whether an operand is one run of elements without gaps, in the order of the space.
func (s *space) run(operand int) bool {
	step := int64(1)
	for d, size := range s.sizes {
		if size != 1 && s.strides[operand][d] != step {
			return false
		}
		step *= size
	}
	return true
}
