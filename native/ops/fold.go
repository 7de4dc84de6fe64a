package ops

import (
	"samebits/bridge/recording"
	"samebits/native/device"
)

// This file launches kernels made of kernels/fold.cuh: reductions along one dimension whose order does not matter.

// fold is one such reduction.
type fold struct {
	in   int
	outs []int
	dim  int
	keep bool
}

// readFold reads the arguments self, dim and keepdim and that many results.
func readFold(b *Builder, op *recording.Operation, results int) (*fold, error) {
	f := &fold{}
	var err error
	if f.in, err = ValueArg(op, "self"); err != nil {
		return nil, err
	}
	if f.keep, err = BoolArg(op, "keepdim"); err != nil {
		return nil, err
	}
	x := b.Value(f.in)
	if f.dim, err = dimension(op, max(len(x.Sizes), 1)); err != nil {
		return nil, err
	}
	reduced := make([]bool, len(x.Sizes))
	if len(reduced) > 0 {
		reduced[f.dim] = true
	}
	for i := range results {
		out, err := Result(op, i)
		if err != nil {
			return nil, err
		}
		if y := b.Value(out); !reducesTo(x.Sizes, y.Sizes, reduced, f.keep) {
			return nil, Refuse(op, "results[0]", "sizes %v do not reduce to %v over dimension %d", x.Sizes, y.Sizes, f.dim)
		}
		f.outs = append(f.outs, out)
	}
	return f, nil
}

// count is how many elements each result is made of.
func (f *fold) count(b *Builder) int64 {
	if x := b.Value(f.in); len(x.Sizes) > 0 {
		return x.Sizes[f.dim]
	}
	return 1
}

// without gives a list without the reduced dimension.
func (f *fold) without(list []int64) []int64 {
	if len(list) == 0 {
		return nil
	}
	return append(append([]int64{}, list[:f.dim]...), list[f.dim+1:]...)
}

// emit launches the form of the entry that fits: a warp for each result where its elements lie next to each other or where
// results are few. more are arguments that the file's entries have beside those of fold.cuh.
func (f *fold) emit(b *Builder, op *recording.Operation, file, entry string, more ...any) error {
	x := b.Value(f.in)
	count, step, sizes := f.count(b), int64(1), f.without(x.Sizes)
	if len(x.Sizes) > 0 {
		step = x.Strides[f.dim]
	}
	if b.Value(f.outs[0]).Numel() == 0 {
		return nil
	}
	strides := make([][]int64, 0, len(f.outs)+1)
	for _, out := range f.outs {
		by := b.Value(out).Strides
		if f.keep {
			by = f.without(by)
		}
		strides = append(strides, by)
	}
	s := collapse(sizes, append(strides, f.without(x.Strides))...)
	if err := s.check(op); err != nil {
		return err
	}
	if !small(count) {
		return Refuse(op, argumentPath(op, "self"), "%d elements along dimension %d", count, f.dim)
	}
	suffix, err := Suffix(x.DType)
	if err != nil {
		return Refuse(op, argumentPath(op, "self"), "%v", err)
	}
	from := b.Pointer(f.in)
	if count == 0 { // the input is nowhere, and nothing is read from it
		from = b.Pointer(f.outs[0])
	}
	args := s.args()
	for i, out := range f.outs {
		args = append(append(args, b.Pointer(out)), s.steps(i)...)
	}
	args = append(append(args, from), s.steps(len(f.outs))...)
	args = append(append(args, uint32(count), step), more...)
	inner := s.strides[len(f.outs)][0]
	const few = 4096
	if count > 16 && (step <= inner || s.numel() < few) {
		const lines = 4 // of a block
		b.Emit(&device.Kernel{File: file, Entry: entry + "_" + suffix + "_warp", Args: args, Block: [3]uint32{warp, lines, 1},
			Grid: [3]uint32{uint32(ceilDiv(s.numel(), lines)), 1, 1}})
		return nil
	}
	b.launch(file, entry+"_"+suffix+"_thread", s.numel(), args)
	return nil
}
