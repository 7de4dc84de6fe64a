package ops

import (
	"fmt"
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	register(lowerCat, "aten::cat")
	register(lowerStack, "aten::stack")
}

// catInputs is how many inputs one launch of cat.cu copies.
const catInputs = 8

// rows is an input of a launch: rows of bytes without gaps.
type rows struct {
	from, to  device.Pointer
	count     int64
	bytes     int64 // of a row
	by, pitch int64 // bytes from row to row, in the input and in the output
}

func lowerCat(b *Builder, op *recording.Operation) error {
	inputs, err := ValuesArg(op, "tensors")
	if err != nil {
		return err
	}
	parts := make([]device.Tensor, 0, len(inputs))
	for _, i := range inputs {
		if v := b.Value(i); v.Numel() > 0 { // PyTorch lets an empty tensor of another shape pass
			parts = append(parts, b.Tensor(i))
		}
	}
	return concatenate(b, op, parts)
}

// lowerStack is cat of tensors that got a dimension of size 1.
func lowerStack(b *Builder, op *recording.Operation) error {
	inputs, err := ValuesArg(op, "tensors")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	dim, err := dimension(op, len(b.Value(out).Sizes))
	if err != nil {
		return err
	}
	var parts []device.Tensor
	for _, i := range inputs {
		p := b.Tensor(i)
		if len(p.Sizes) < dim {
			return Refuse(op, "arguments[0]", "a tensor of %d dimensions is stacked along dimension %d", len(p.Sizes), dim)
		}
		p.Sizes = insert(p.Sizes, dim, 1)
		p.Strides = insert(p.Strides, dim, 0)
		if tensor.Numel(p.Sizes) > 0 {
			parts = append(parts, p)
		}
	}
	return concatenate(b, op, parts)
}

func insert(list []int64, at int, v int64) []int64 {
	return append(append(append([]int64{}, list[:at]...), v), list[at:]...)
}

// dimension reads the argument dim, which may count from the end.
func dimension(op *recording.Operation, dims int) (int, error) {
	dim, err := IntArg(op, "dim")
	if err != nil {
		return 0, err
	}
	if dim < 0 {
		dim += int64(dims)
	}
	if dim < 0 || dim >= int64(dims) {
		return 0, Refuse(op, argumentPath(op, "dim"), "dimension %d of %d", dim, dims)
	}
	return int(dim), nil
}

// concatenate copies parts behind each other along dim. Rows of bytes go up to eight inputs a launch; what needs
// conversion or is more scattered gets a launch of its own.
func concatenate(b *Builder, op *recording.Operation, parts []device.Tensor) error {
	result, err := Result(op, 0)
	if err != nil {
		return err
	}
	out := b.Tensor(result)
	if len(parts) == 0 {
		return nil
	}
	dim, err := dimension(op, len(out.Sizes))
	if err != nil {
		return err
	}
	var batch []rows
	at := int64(0)
	for i, part := range parts {
		slot := out
		slot.Sizes = part.Sizes
		slot.Offset += at * out.Strides[dim] * out.DType.Size()
		if err := fits(out.Sizes, part.Sizes, dim, at); err != nil {
			return Refuse(op, fmt.Sprintf("arguments[0].list[%d]", i), "%v", err)
		}
		at += part.Sizes[dim]
		r, ok := asRows(slot, part)
		if !ok {
			if err := copyTensor(b, op, slot, part); err != nil {
				return err
			}
			continue
		}
		if batch = append(batch, r); len(batch) == catInputs {
			launchRows(b, batch)
			batch = nil
		}
	}
	if at != out.Sizes[dim] {
		return Refuse(op, "results[0]", "inputs have %d elements along dimension %d, the result has %d", at, dim, out.Sizes[dim])
	}
	launchRows(b, batch)
	return nil
}

// fits reports whether a part of these sizes lies in the result at a position along dim.
func fits(out, part []int64, dim int, at int64) error {
	ok := len(out) == len(part)
	for d := range out {
		if ok {
			ok = part[d] == out[d] || d == dim && at+part[d] <= out[d]
		}
	}
	if !ok {
		return fmt.Errorf("a tensor of sizes %v does not fit into the result of %v at %d along dimension %d", part, out, at, dim)
	}
	return nil
}

// asRows sees a copy as rows of bytes, if it is that.
func asRows(to, from device.Tensor) (rows, bool) {
	s := collapse(from.Sizes, to.Strides, from.Strides)
	size := to.DType.Size()
	r := rows{from: from.Pointer, to: to.Pointer, count: 1, bytes: s.sizes[0] * size}
	if to.DType != from.DType || len(s.sizes) > 2 || s.sizes[0] != 1 && (s.strides[0][0] != 1 || s.strides[1][0] != 1) {
		return r, false
	}
	if len(s.sizes) == 2 {
		r.count, r.pitch, r.by = s.sizes[1], s.strides[0][1]*size, s.strides[1][1]*size
	}
	return r, r.count*r.bytes <= math.MaxUint32
}

// launchRows emits one launch for up to eight inputs.
func launchRows(b *Builder, batch []rows) {
	if len(batch) == 0 {
		return
	}
	var args []any
	most := int64(0)
	for i := range catInputs {
		r := rows{from: batch[0].from, to: batch[0].to}
		if i < len(batch) {
			r = batch[i]
		}
		args = append(args, r.from, r.to, uint32(r.count), uint32(r.bytes), r.by, r.pitch)
		most = max(most, r.count*r.bytes/16)
	}
	if most >= deepPacks {
		most /= 4 // a thread takes four words at once
	}
	grid := blocks(most)
	grid[1] = uint32(len(batch))
	b.Emit(&device.Kernel{File: "cat", Entry: "cat", Grid: grid, Block: [3]uint32{threads, 1, 1}, Args: args})
}
