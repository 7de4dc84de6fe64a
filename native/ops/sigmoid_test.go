package ops

import (
	"math"
	"testing"

	"samebits/bridge/tensor"
)

func TestSigmoid(t *testing.T) {
	testUnary(t, "aten::sigmoid", expBased, func(dtype tensor.DType, x float64) float64 {
		e := math.Exp(-x)
		if dtype != tensor.Float64 {
			e = float64(float32(e))
		}
		return 1 / (1 + e)
	})
}
