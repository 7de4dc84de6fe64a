package ops

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::_log_softmax", Class: Compute, Lower: lowerLogSoftmax})
}

// lowerLogSoftmax does what PyTorch gives to the kernel that holds a row in a warp: short rows, innermost.
func lowerLogSoftmax(b *Builder, op *recording.Operation) error {
	s, err := readSoftmax(b, op)
	if err != nil || b.Value(s.in).Numel() == 0 {
		return err
	}
	x := b.Value(s.in)
	rows, width, ok := shortRows(x.Sizes, s.dim, longestOfWarp(x.DType, s.halfToFloat))
	if !ok {
		return Refuse(op, argumentPath(op, "dim"), "dimension %d of %v; at most %d elements of the innermost one are done", s.dim, x.Sizes, longestOfWarp(x.DType, s.halfToFloat))
	}
	from, err := dense(b, op, b.Tensor(s.in), false)
	if err != nil {
		return err
	}
	suffix, err := Suffix(x.DType)
	if err != nil {
		return err
	}
	b.emitRows("log_softmax", "log_softmax_rows%d_"+suffix, rows, width, b.Pointer(s.out), s.wide, from.Pointer)
	return nil
}

// shortRows gives the number and the length of rows along dim, if dim is the innermost and has at most so many elements.
func shortRows(sizes []int64, dim int64, limits ...int64) (rows, width int64, ok bool) {
	rows, width, inner := int64(1), int64(1), int64(1)
	for d, size := range sizes {
		switch {
		case int64(d) < dim:
			rows *= size
		case int64(d) == dim:
			width = size
		default:
			inner *= size
		}
	}
	ok = inner == 1 && dim >= 0 && dim < int64(max(len(sizes), 1))
	for _, limit := range limits {
		ok = ok && width <= limit
	}
	return rows, width, ok
}

// emitRows launches a kernel with a warp a row, or a part of one where rows are shorter. entry takes the number of
// elements a lane; args precede rows and width.
func (b *Builder) emitRows(file, entry string, rows, width int64, args ...any) {
	pow2 := lastPow2(2*width - 1)
	lanes := min(pow2, warp)
	side := 128 / lanes
	b.Emit(&device.Kernel{File: file, Entry: fmt.Sprintf(entry, pow2/lanes),
		Grid:  [3]uint32{uint32(ceilDiv(rows, side)), 1, 1},
		Block: [3]uint32{uint32(lanes), uint32(side), 1},
		Args:  append(args, rows, int32(width))})
}
