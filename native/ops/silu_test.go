package ops

import (
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// expBased is how far a function built on the exponential may be off: the GPU's, the host's and Go's differ a little.
var expBased = map[tensor.DType]uint64{tensor.Float32: 2, tensor.BFloat16: 1, tensor.Float16: 1, tensor.Float64: 2}

func TestSilu(t *testing.T) {
	testUnary(t, "aten::silu", expBased, func(dtype tensor.DType, x float64) float64 {
		e := math.Exp(-x)
		if dtype != tensor.Float64 {
			e = float64(float32(e)) // large ones overflow
		}
		return x / (1 + e)
	})
}
