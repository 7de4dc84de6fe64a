package ops

import (
	"samebits/bridge/recording"
)

// walk calls f for every element of v in row-major order, with its index and its distance from the first element.
func walk(v *recording.Value, f func(at []int64, physical int64)) {
	at := make([]int64, len(v.Sizes))
	physical := int64(0)
	for range v.Numel() {
		f(at, physical)
		for d := len(at) - 1; d >= 0; d-- {
			at[d]++
			physical += v.Strides[d]
			if at[d] < v.Sizes[d] {
				break
			}
			physical -= at[d] * v.Strides[d]
			at[d] = 0
		}
	}
}

// gather gives the elements of v in row-major order, out of memory that begins so many elements before v's first.
func gather(v *recording.Value, before int64, memory []byte) []byte {
	size := v.DType.Size()
	out := make([]byte, 0, v.Numel()*size)
	walk(v, func(_ []int64, physical int64) {
		at := (before + physical) * size
		out = append(out, memory[at:at+size]...)
	})
	return out
}

// indexOf gives the index of element number n, in row-major order, of a tensor.
func indexOf(n int64, sizes []int64) []int64 {
	at := make([]int64, len(sizes))
	for d := len(sizes) - 1; d >= 0; d-- {
		at[d] = n % sizes[d]
		n /= sizes[d]
	}
	return at
}
