package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func times(dtype tensor.DType, x, y float64) float64 {
	return inType(dtype, x, y, func(a, b float32) float32 { return a * b }, func(a, b float64) float64 { return a * b })
}

func TestMul(t *testing.T)       { testBinary(t, "aten::mul.Tensor", nil, times) }
func TestMulNumber(t *testing.T) { testNumber(t, "aten::mul.Tensor", nil, times) }
