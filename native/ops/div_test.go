package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestDiv(t *testing.T) {
	testBinary(t, "aten::div.Tensor", nil, func(dtype tensor.DType, x, y float64) float64 {
		return inType(dtype, x, y, func(a, b float32) float32 { return a / b }, func(a, b float64) float64 { return a / b })
	})
}

// By a number it is a multiplication with the reciprocal, which is rounded once, from double.
func TestDivNumber(t *testing.T) {
	testNumber(t, "aten::div.Tensor", nil, func(dtype tensor.DType, x, number float64) float64 {
		return times(dtype, x, 1/number)
	})
}
