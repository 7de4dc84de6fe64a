//go:build linux && amd64

package host

import (
	"samebits/bridge/tensor"
)

// vectors are the widths that this CPU has.
func vectors() []int {
	d, err := Open(Threads(1), Cache("/nonexistent"))
	if err != nil {
		return nil
	}
	defer d.Close()
	if d.options.vector == 512 {
		return []int{256, 512}
	}
	return []int{256}
}

// layoutStrides gives strides for nchw or nhwc order.
func layoutStrides(layout string, sizes []int64) []int64 {
	if layout != "nhwc" || len(sizes) != 4 {
		return tensor.ContiguousStrides(sizes)
	}
	c, h, w := sizes[1], sizes[2], sizes[3]
	return []int64{c * h * w, 1, w * c, c}
}
