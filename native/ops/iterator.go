package ops

import "samebits/bridge/recording"

// axis is one dimension that a reduction walks. Strides are in elements.
type axis struct{ size, out, in int64 }

// axesOf gives the dimensions of a reduction in the order in which PyTorch's TensorIterator visits them: reduced ones
// first, then by ascending stride, neighbours merged where memory allows. The order decides which elements one thread
// adds, so it is part of the result's bits.
func axesOf(in, out *recording.Value, reduced []bool, keepdim bool) []axis {
	axes := make([]axis, len(in.Sizes))
	next := 0 // dimension of out
	for d, size := range in.Sizes {
		axes[d] = axis{size: size, in: in.Strides[d]}
		if !keepdim && reduced[d] {
			continue
		}
		// A result of size 1 where the input is larger is written once: stride 0.
		if !reduced[d] || size == 1 {
			axes[d].out = out.Strides[next]
		}
		next++
	}
	return coalesce(sortAxes(axes))
}

// sortAxes is TensorIterator's insertion sort, from the last dimension on; it keeps ambiguous pairs as they are.
func sortAxes(axes []axis) []axis {
	n := len(axes)
	sorted := make([]axis, n)
	for i := range axes {
		sorted[i] = axes[n-1-i]
	}
	for i := 1; i < n; i++ {
		at := i
		for before := i - 1; before >= 0; before-- {
			order := compareAxes(sorted[before], sorted[at])
			if order < 0 {
				break
			}
			if order > 0 {
				sorted[before], sorted[at] = sorted[at], sorted[before]
				at = before
			}
		}
	}
	return sorted
}

// compareAxes is positive if a comes after b, negative if before, 0 if either will do.
func compareAxes(a, b axis) int {
	if (a.out == 0) != (b.out == 0) {
		if b.out == 0 {
			return 1
		}
		return -1
	}
	for _, s := range [2][2]int64{{a.out, b.out}, {a.in, b.in}} {
		switch {
		case s[0] == 0 || s[1] == 0:
			continue
		case s[0] < s[1]:
			return -1
		case s[0] > s[1] || a.size > b.size:
			return 1
		}
	}
	return 0
}

// coalesce merges neighbours that one loop can walk.
func coalesce(axes []axis) []axis {
	if len(axes) < 2 {
		return axes
	}
	merged := axes[:1]
	for _, a := range axes[1:] {
		last := &merged[len(merged)-1]
		switch {
		case last.size == 1:
			last.out, last.in = a.out, a.in
			last.size = a.size
		case a.size == 1:
		case last.size*last.out == a.out && last.size*last.in == a.in:
			last.size *= a.size
		default:
			merged = append(merged, a)
		}
	}
	return merged
}

// fits32 is TensorIterator's test for 32-bit offsets: element counts and byte offsets below 2^31.
func fits32(axes []axis, outSize, inSize int64) bool {
	count, out, in := int64(1), int64(1), int64(1)
	for _, a := range axes {
		count *= a.size
		out += (a.size - 1) * a.out * outSize
		in += (a.size - 1) * a.in * inSize
	}
	const limit = 1<<31 - 1
	return count <= limit && out <= limit && in <= limit
}
