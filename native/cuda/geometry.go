package cuda

import (
	"fmt"
	"math"

	"samebits/native/device"
)

// argument gives the bits and the size of one kernel argument.
func argument(a any, resolve func(device.Pointer) (uint64, error)) (bits uint64, size int, err error) {
	switch v := a.(type) {
	case device.Pointer:
		bits, err = resolve(v)
		return bits, 8, err
	case int32:
		return uint64(uint32(v)), 4, nil
	case uint32:
		return uint64(v), 4, nil
	case int64:
		return uint64(v), 8, nil
	case uint64:
		return v, 8, nil
	case float32:
		return uint64(math.Float32bits(v)), 4, nil
	case float64:
		return math.Float64bits(v), 8, nil
	}
	return 0, 0, fmt.Errorf("of type %T, which no kernel takes", a)
}

// alignmentOf is the largest power of two that divides an address, but no more than limit.
func alignmentOf(address uint64, limit int64) int64 {
	for n := int64(1); n < limit; n *= 2 {
		if address%uint64(2*n) != 0 {
			return n
		}
	}
	return limit
}

// canonicalStrides rewrites the strides of dimensions of size 1, which may be anything, to the ones cuDNN wants: the
// product of the sizes inside, in the order of the layout.
func canonicalStrides(sizes, strides []int64, channelsLast bool) []int64 {
	order := make([]int, 0, len(sizes))
	if channelsLast {
		order = append(order, 1)
	}
	for d := len(sizes) - 1; d > 1; d-- {
		order = append(order, d)
	}
	if !channelsLast {
		order = append(order, 1)
	}
	order = append(order, 0)
	out := append([]int64(nil), strides...)
	inside := int64(1)
	for _, d := range order {
		if sizes[d] == 1 {
			out[d] = inside
		} else {
			inside *= sizes[d]
		}
	}
	return out
}

// isChannelsLast is PyTorch's test of strides, for 4 and 5 dimensions. Ambiguous ones are NCHW.
func isChannelsLast(sizes, strides []int64) bool {
	order := []int{1, 3, 2, 0}
	switch len(sizes) {
	case 4:
	case 5:
		order = []int{1, 4, 3, 2, 0}
	default:
		return false
	}
	if strides[1] == 0 {
		return false
	}
	least := int64(0)
	for _, d := range order {
		if sizes[d] == 0 || strides[d] < least || (d == 0 && least == strides[1]) {
			return false
		}
		least = strides[d]
		if sizes[d] > 1 {
			least *= sizes[d]
		}
	}
	return true
}

// extent is the number of elements between the first and the last one, both counted.
func extent(sizes, strides []int64) int64 {
	n := int64(1)
	for i, size := range sizes {
		if size == 0 {
			return 0
		}
		n += (size - 1) * strides[i]
	}
	return n
}
