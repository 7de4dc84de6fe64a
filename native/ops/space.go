package ops

import (
	"fmt"
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// maxDims is how many dimensions a strided entry walks.
const maxDims = 8

// space is an iteration space laid over operands. Dimensions are innermost first; strides are in elements.
type space struct {
	sizes   []int64
	strides [][]int64 // by operand, then by dimension
}

// collapse lays operands over each other as PyTorch's TensorIterator does: dimensions ordered by the strides of the first
// operand (by the others' where it has none to tell), dimensions of size 1 dropped, and neighbours that every operand
// walks without a gap made one. All strides have the length of sizes; see broadcast.
func collapse(sizes []int64, strides ...[]int64) space {
	var order []int
	for d := len(sizes) - 1; d >= 0; d-- {
		if sizes[d] == 1 {
			continue
		}
		at := len(order)
		for at > 0 && inner(d, order[at-1], strides) {
			at--
		}
		order = append(order, 0)
		copy(order[at+1:], order[at:])
		order[at] = d
	}
	s := space{strides: make([][]int64, len(strides))}
	for _, d := range order {
		if last := len(s.sizes) - 1; last >= 0 && continues(&s, d, strides) {
			s.sizes[last] *= sizes[d]
			continue
		}
		s.sizes = append(s.sizes, sizes[d])
		for k := range strides {
			s.strides[k] = append(s.strides[k], strides[k][d])
		}
	}
	if len(s.sizes) == 0 {
		s.sizes = []int64{1}
		for k := range strides {
			s.strides[k] = []int64{1}
		}
	}
	return s
}

// collapseApart is collapse that joins the dimensions marked by apart to no other. original tells which dimension of sizes
// each of them is; it is -1 for the rest. Marked dimensions of size 1 stay.
func collapseApart(sizes []int64, apart []bool, strides ...[]int64) (s space, original []int) {
	const mark = 1 << 30 // a step that no other dimension continues
	marks, widths := make([]int64, len(sizes)), append([]int64{}, sizes...)
	for d := range sizes {
		if apart[d] {
			marks[d] = mark + int64(d)
			widths[d] = max(sizes[d], 2)
		}
	}
	s = collapse(widths, append(append([][]int64{}, strides...), marks)...)
	for d, m := range s.strides[len(strides)] {
		original = append(original, -1)
		if m >= mark {
			original[d] = int(m - mark)
			s.sizes[d] = sizes[original[d]]
		}
	}
	s.strides = s.strides[:len(strides)]
	return s, original
}

// inner reports whether dimension a belongs inside of b.
func inner(a, b int, strides [][]int64) bool {
	for _, s := range strides {
		if s[a] == 0 || s[b] == 0 || s[a] == s[b] {
			continue
		}
		return s[a] < s[b]
	}
	return false
}

// continues reports whether dimension d goes on where the last one of s ends, in every operand.
func continues(s *space, d int, strides [][]int64) bool {
	last := len(s.sizes) - 1
	for k := range strides {
		if strides[k][d] != s.strides[k][last]*s.sizes[last] {
			return false
		}
	}
	return true
}

// broadcast gives the strides of an operand over a larger shape: 0 where it is repeated.
func broadcast(v *recording.Value, sizes []int64) ([]int64, error) {
	extra := len(sizes) - len(v.Sizes)
	if extra < 0 {
		return nil, fmt.Errorf("sizes %v do not broadcast to %v", v.Sizes, sizes)
	}
	strides := make([]int64, len(sizes))
	for d := range v.Sizes {
		switch v.Sizes[d] {
		case sizes[extra+d]:
			strides[extra+d] = v.Strides[d]
		case 1:
		default:
			return nil, fmt.Errorf("sizes %v do not broadcast to %v", v.Sizes, sizes)
		}
	}
	return strides, nil
}

// dense reports whether every operand is one run of elements without gaps.
func (s *space) dense() bool {
	if len(s.sizes) != 1 {
		return false
	}
	for _, by := range s.strides {
		if by[0] != 1 && s.sizes[0] != 1 {
			return false
		}
	}
	return true
}

func (s *space) numel() int64 { return tensor.Numel(s.sizes) }

// args are the kernel parameters SPACE.
func (s *space) args() []any {
	args := []any{uint32(s.numel()), int32(len(s.sizes))}
	for d := range maxDims {
		size := int64(1)
		if d < len(s.sizes) {
			size = s.sizes[d]
		}
		args = append(args, uint32(size))
	}
	return args
}

// steps are the kernel parameters STRIDES of an operand.
func (s *space) steps(operand int) []any {
	var args []any
	for d := range maxDims {
		step := int64(0)
		if d < len(s.sizes) {
			step = s.strides[operand][d]
		}
		args = append(args, step)
	}
	return args
}

// check refuses what the strided entries cannot walk.
func (s *space) check(op *recording.Operation) error {
	if len(s.sizes) > maxDims {
		return Refuse(op, "results[0]", "%d dimensions that do not collapse, at most %d are done", len(s.sizes), maxDims)
	}
	if s.numel() > math.MaxUint32 {
		return Refuse(op, "results[0]", "%d elements in a strided tensor, at most %d are done", s.numel(), uint32(math.MaxUint32))
	}
	return nil
}

// items is how many packs a strided entry makes of the space: of 16 bytes where the innermost size allows.
func (s *space) items(types ...tensor.DType) int64 {
	width := int64(16)
	for _, t := range types {
		width = min(width, 16/t.Size())
	}
	if s.sizes[0]%width != 0 {
		return s.numel()
	}
	return s.numel() / width
}

// isRows reports whether the entries for rows (map_rows in kernels/elementwise.cuh) can walk the space: the result's
// elements follow each other along the first dimension, and so do an operand's, or it has one for all of them.
func (s *space) isRows() bool {
	if len(s.sizes) > 3 || len(s.strides) != 3 || s.sizes[0] < 4 || s.strides[0][0] != 1 || s.numel() > math.MaxUint32 {
		return false
	}
	for _, by := range s.strides[1:] {
		if by[0] != 0 && by[0] != 1 {
			return false
		}
	}
	return true
}

// launchPairs emits an entry for rows: the result, its two operands, and the functor's numbers.
func (b *Builder) launchPairs(file, entry string, s space, d tensor.DType, at [3]device.Pointer, numbers []any) {
	at3 := func(list []int64, i int, otherwise int64) int64 {
		if i < len(list) {
			return list[i]
		}
		return otherwise
	}
	length, across := s.sizes[0], at3(s.sizes, 1, 1)
	count := across * at3(s.sizes, 2, 1)
	packs := length
	if width := 16 / d.Size(); length%width == 0 {
		packs = length / width
	}
	// Large tensors are read faster by threads that ask for four packs before they wait for one.
	lanes, depth := int64(1), int64(1)
	if count*packs >= deepPacks && packs >= 4*32 {
		depth = 4
	}
	for lanes < threads && lanes*depth < packs {
		lanes *= 2
	}
	groups := threads / lanes
	args := []any{uint32(length), uint32(across), uint32(count), uint32(lanes), uint32(depth)}
	for k, p := range at {
		args = append(args, p, s.strides[k][0], at3(s.strides[k], 1, 0), at3(s.strides[k], 2, 0))
	}
	grid := [3]uint32{
		uint32(min((count+groups-1)/groups, math.MaxInt32)),
		uint32(min((packs+lanes*depth-1)/(lanes*depth), math.MaxUint16)),
		1,
	}
	b.Emit(&device.Kernel{File: file, Entry: entry, Grid: grid, Block: [3]uint32{threads, 1, 1}, Args: append(args, numbers...)})
}

// deepPacks is from how many packs on a GPU has more than enough threads.
const deepPacks = 1 << 20
