package ops

import (
	"fmt"

	"samebits/bridge/recording"
)

func init() { register(lowerIndex, "aten::index.Tensor") }

// lowerIndex: indices are broadcast with each other. Their dimensions take the place of those that they index, if these are
// neighbours, and else come first.
func lowerIndex(b *Builder, op *recording.Operation) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	x, y := b.Value(self), b.Value(out)
	lookups, dims, err := readIndices(b, op, x)
	if err != nil {
		return err
	}
	var shape []int64
	for _, l := range lookups {
		if shape, err = commonSizes(shape, b.Value(l.value).Sizes); err != nil {
			return Refuse(op, l.argPath, "%v", err)
		}
	}
	// where the dimensions of the indices stand among the result's
	at := 0
	if last := len(dims) - 1; last >= 0 && dims[last]-dims[0] == last {
		at = dims[0]
	}
	var sizes, from []int64
	for d, next := 0, 0; d <= len(x.Sizes); d++ {
		if len(sizes) == at {
			sizes = append(sizes, shape...)
			from = append(from, make([]int64, len(shape))...)
		}
		switch {
		case d == len(x.Sizes):
		case next < len(dims) && dims[next] == d:
			next++
		default:
			sizes, from = append(sizes, x.Sizes[d]), append(from, x.Strides[d])
		}
	}
	if !equalSizes(sizes, y.Sizes) {
		return Refuse(op, "results[0]", "indices of sizes %v into dimensions %v of %v give %v, not %v", shape, dims, x.Sizes, sizes, y.Sizes)
	}
	for k := range lookups {
		by, err := broadcast(b.Value(lookups[k].value), shape)
		if err != nil {
			return Refuse(op, lookups[k].argPath, "%v", err)
		}
		lookups[k].by = make([]int64, len(sizes))
		copy(lookups[k].by[at:], by)
	}
	return lookUp(b, op, out, b.Tensor(self), from, true, lookups...)
}

// readIndices reads the tensors in the list of indices, and which dimensions they index; others are none.
func readIndices(b *Builder, op *recording.Operation, x *recording.Value) (lookups []lookup, dims []int, err error) {
	a, path, err := find(op, "indices")
	if err != nil {
		return nil, nil, err
	}
	if a.Kind != recording.List || len(a.Items) > len(x.Sizes) {
		return nil, nil, Refuse(op, path, "no list of at most %d tensors", len(x.Sizes))
	}
	for d := range a.Items {
		itemPath := fmt.Sprintf("%s.list[%d]", path, d)
		switch item := &a.Items[d]; item.Kind {
		case recording.None:
		case recording.ValueOf:
			lookups = append(lookups, lookup{value: item.Value, size: x.Sizes[d], step: x.Strides[d], argPath: itemPath})
			dims = append(dims, d)
		default:
			return nil, nil, Refuse(op, itemPath, "no tensor of indices")
		}
	}
	return lookups, dims, nil
}

// commonSizes broadcasts two lists of sizes with each other.
func commonSizes(a, b []int64) ([]int64, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	sizes := append([]int64{}, a...)
	for i := range b {
		at := len(a) - len(b) + i
		switch {
		case a[at] == b[i] || b[i] == 1:
		case a[at] == 1:
			sizes[at] = b[i]
		default:
			return nil, fmt.Errorf("sizes %v and %v do not broadcast", a, b)
		}
	}
	return sizes, nil
}
