package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// linear is all but the addresses of the column-major product that cuBLASLt sees; equal ones share the heuristic's
// answer.
type linear struct {
	product
	dtype                  tensor.DType
	tf32                   bool
	alpha                  float32
	biased                 bool
	alignA, alignB, alignD int64
	alignBias              int64
}

// Of cuBLASLt as PyTorch 2.11 calls it.
const (
	linearAlignment = 256     // the most it is told about an address
	linearWorkspace = 1 << 20 // and the workspace it may use
)

// describeLinear checks a linear and prepares its arguments as PyTorch does. Sizes of 1 keep their strides.
func describeLinear(l *device.Linear, a, b, bias, d uint64, o device.Options) (linear, error) {
	if err := checkLinear(l); err != nil {
		return linear{}, err
	}
	p, err := describeProduct(l.A, l.B, l.D)
	if err != nil {
		return linear{}, err
	}
	alpha := float32(1)
	if l.Factors != nil {
		alpha = float32(l.Factors.Alpha)
	}
	return linear{
		alpha: alpha, biased: l.Bias.Sizes != nil,
		product: p, dtype: l.A.DType, tf32: o.AllowTF32 && l.A.DType == tensor.Float32,
		alignA: alignmentOf(b, linearAlignment), alignB: alignmentOf(a, linearAlignment),
		alignD: alignmentOf(d, linearAlignment), alignBias: alignmentOf(bias, linearAlignment),
	}, nil
}

func checkLinear(l *device.Linear) error {
	if err := checkTensors(2, named{"a", l.A}, named{"b", l.B}, named{"d", l.D}); err != nil {
		return err
	}
	m, k, n := l.A.Sizes[0], l.A.Sizes[1], l.B.Sizes[1]
	fits := l.B.Sizes[0] == k && l.D.Sizes[0] == m && l.D.Sizes[1] == n
	if l.Bias.Sizes != nil {
		if err := checkTensors(1, named{"bias", l.Bias}); err != nil {
			return err
		}
		if l.Bias.DType != l.A.DType {
			return fmt.Errorf("bias is %s, a is %s", l.Bias.DType, l.A.DType)
		}
		fits = fits && l.Bias.Sizes[0] == n
	}
	if !fits {
		return fmt.Errorf("a %v, b %v, bias %v and d %v do not fit", l.A.Sizes, l.B.Sizes, l.Bias.Sizes, l.D.Sizes)
	}
	if k < 2 || n < 2 {
		return fmt.Errorf("b is %v; PyTorch does not use cuBLASLt for a matrix with a side of 1", l.B.Sizes)
	}
	if !tensor.IsContiguous(l.D.Sizes, l.D.Strides) || !tensor.IsContiguous(l.Bias.Sizes, l.Bias.Strides) { // of no bias too
		return fmt.Errorf("d has strides %v and bias %v; both must be contiguous", l.D.Strides, l.Bias.Strides)
	}
	return nil
}

// cublasTypes gives cudaDataType.
var cublasTypes = map[tensor.DType]C.uint{
	tensor.Float32: C.SB_R_32F, tensor.Float16: C.SB_R_16F, tensor.BFloat16: C.SB_R_16BF,
}

func (l linear) toC() C.sb_linear {
	return C.sb_linear{
		_type: cublasTypes[l.dtype], tf32: toInt(l.tf32), transa: toInt(l.transa), transb: toInt(l.transb),
		alpha: C.float(l.alpha), biased: toInt(l.biased),
		m: C.int64_t(l.m), n: C.int64_t(l.n), k: C.int64_t(l.k),
		lda: C.int64_t(l.lda), ldb: C.int64_t(l.ldb), ldd: C.int64_t(l.ldd),
		align_a: C.uint32_t(l.alignA), align_b: C.uint32_t(l.alignB), align_d: C.uint32_t(l.alignD),
		align_bias: C.uint32_t(l.alignBias), workspace_bytes: linearWorkspace,
	}
}
