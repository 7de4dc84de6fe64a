package ops

import (
	"encoding/binary"
	"fmt"
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/compare"
	"samebits/parity/signature"
)

// sameChoice reports whether an output of indices chooses equal elements on both sides, and no element twice where each has
// a place: on the CPU, PyTorch may break ties otherwise than on a GPU.
func (r *run) sameChoice(b *batch, i int) bool {
	out := &b.outputs[i]
	o := b.ops[out.op]
	op, own := o.Op(), o.Alone
	self, ok := op.Arg("self")
	if !ok || self.Kind != recording.ValueOf || out.spec.DType != tensor.Int64 {
		return false
	}
	from, result := &own.Values[self.Value], &own.Values[out.value]
	pick := picker(op, from, result)
	data := r.storageOf(b, out.op, from.Storage)
	if pick == nil || data == nil {
		return false
	}
	sides := [][]byte{r.reference.outputs[i], r.native.outputs[i]}
	if out.memory {
		for n := range sides {
			sides[n] = gather(result, 0, sides[n])
		}
	}
	same, n, size := true, 0, from.DType.Size()
	dim, ordered := alongDim(op, len(from.Sizes))
	ordered = ordered && slices.Contains([]string{"aten::topk", "aten::sort"}, signature.Base(op.Name))
	taken := map[string]bool{} // by native
	walk(result, func(at []int64, _ int64) {
		var chosen [2][]byte
		for k, side := range sides {
			index := int64(binary.LittleEndian.Uint64(side[8*n:]))
			where, inside := pick(at, index)
			if !inside {
				same = false
				return
			}
			if ordered && k == 1 {
				place := slices.Clone(at)
				place[dim] = index
				key := fmt.Sprint(place)
				same = same && !taken[key]
				taken[key] = true
			}
			chosen[k] = data[(from.Offset+where)*size:][:size]
		}
		same = same && compare.EqualValues(from.DType, chosen[0], chosen[1])
		n++
	})
	return same
}

// storageOf gives what an argument's storage held before the step.
func (r *run) storageOf(b *batch, op, storage int) []byte {
	for i := range b.inputs {
		if in := &b.inputs[i]; in.op == op && in.storage == storage {
			return r.reference.inputs[i]
		}
	}
	return nil
}

// alongDim is the dimension that an operation chooses along: the last one if it does not say.
func alongDim(op *recording.Operation, rank int) (dim int, ok bool) {
	at := int64(-1)
	if a, has := op.Arg("dim"); has && a.Kind == recording.Integer {
		at = a.Int
	}
	if at < 0 {
		at += int64(rank)
	}
	return int(at), at >= 0 && at < int64(rank)
}

// picker gives the function that finds the element which an index at a place of the result stands for: the distance from
// the first element, and whether there is one. Nil: op does not choose.
func picker(op *recording.Operation, from, result *recording.Value) func(at []int64, chosen int64) (int64, bool) {
	rank := len(from.Sizes)
	switch signature.Base(op.Name) {
	case "aten::topk", "aten::sort", "aten::max", "aten::min":
		dim, ok := alongDim(op, rank)
		if !ok {
			return nil
		}
		dropped := len(result.Sizes) < rank
		return func(at []int64, chosen int64) (int64, bool) {
			where, next := chosen*from.Strides[dim], 0
			for d := range rank {
				if d != dim {
					where += at[next] * from.Strides[d]
				} else if dropped {
					continue
				}
				next++
			}
			return where, chosen >= 0 && chosen < from.Sizes[dim]
		}
	case "aten::max_pool2d_with_indices":
		if rank < 2 || len(result.Sizes) != rank {
			return nil
		}
		height, width := from.Sizes[rank-2], from.Sizes[rank-1]
		return func(at []int64, chosen int64) (int64, bool) {
			where := chosen/width*from.Strides[rank-2] + chosen%width*from.Strides[rank-1]
			for d := range rank - 2 {
				where += at[d] * from.Strides[d]
			}
			return where, chosen >= 0 && chosen < height*width
		}
	}
	return nil
}
