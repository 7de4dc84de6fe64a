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
	dtype                  tensor.DType
	tf32                   bool
	transa, transb         bool
	m, n, k, lda, ldb, ldd int64
	alignA, alignB, alignD int64
	alignBias              int64
}

// Of cuBLASLt as PyTorch 2.11 calls it.
const (
	linearAlignment = 256     // the most it is told about an address
	linearWorkspace = 1 << 20 // and the workspace it may use
)

// describeLinear checks a linear and prepares its arguments from the strides as PyTorch's cublasCommonArgs does; the
// pair of transpositions and the leading dimensions decide about the kernel. Sizes of 1 keep their strides.
func describeLinear(l *device.Linear, a, b, bias, d uint64, o device.Options) (linear, error) {
	if err := checkLinear(l); err != nil {
		return linear{}, err
	}
	// d is row-major, so cuBLAS computes d' = b' a': its first matrix is our second, and everything is seen transposed.
	transa, _ := transposition(l.B)
	transb, _ := transposition(l.A)
	transa, transb = !transa, !transb
	return linear{
		dtype: l.A.DType, tf32: o.AllowTF32 && l.A.DType == tensor.Float32,
		transa: transa, transb: transb,
		m: l.B.Sizes[1], n: l.A.Sizes[0], k: l.B.Sizes[0],
		lda: l.B.Strides[index(transa)], ldb: l.A.Strides[index(transb)], ldd: l.D.Strides[0],
		alignA: alignmentOf(b, linearAlignment), alignB: alignmentOf(a, linearAlignment),
		alignD: alignmentOf(d, linearAlignment), alignBias: alignmentOf(bias, linearAlignment),
	}, nil
}

// index is the dimension that a condition selects.
func index(second bool) int {
	if second {
		return 1
	}
	return 0
}

// transposition tells whether cuBLAS, which is column-major, must see a matrix as transposed. ok is false if its strides
// fit neither way; PyTorch copies it then.
func transposition(t device.Tensor) (transposed, ok bool) {
	if isDense(t.Sizes, t.Strides) {
		return tensor.IsContiguous(t.Sizes, t.Strides), true
	}
	if t.Strides[0] == 1 && t.Strides[1] >= max(1, t.Sizes[0]) {
		return false, true
	}
	return true, t.Strides[1] == 1 && t.Strides[0] >= max(1, t.Sizes[1])
}

// isDense is PyTorch's is_non_overlapping_and_dense for two dimensions.
func isDense(sizes, strides []int64) bool {
	if tensor.IsContiguous(sizes, strides) {
		return true
	}
	inner, outer := 0, 1
	if sizes[inner] < 2 || (sizes[outer] >= 2 && strides[outer] < strides[inner]) {
		inner, outer = outer, inner
	}
	if sizes[inner] < 2 {
		return true
	}
	return strides[inner] == 1 && (sizes[outer] < 2 || strides[outer] == sizes[inner])
}

func checkLinear(l *device.Linear) error {
	for _, t := range []struct {
		name string
		device.Tensor
		dims int
	}{{"a", l.A, 2}, {"b", l.B, 2}, {"bias", l.Bias, 1}, {"d", l.D, 2}} {
		if len(t.Sizes) != t.dims || len(t.Strides) != t.dims {
			return fmt.Errorf("%s has %d sizes and %d strides, %d are wanted", t.name, len(t.Sizes), len(t.Strides), t.dims)
		}
		if _, known := cublasTypes[t.DType]; !known || t.DType != l.A.DType {
			return fmt.Errorf("%s is %s, a is %s; all must be float32, bfloat16 or float16", t.name, t.DType, l.A.DType)
		}
		if tensor.Numel(t.Sizes) < 1 {
			return fmt.Errorf("%s is empty: %v", t.name, t.Sizes)
		}
	}
	m, k, n := l.A.Sizes[0], l.A.Sizes[1], l.B.Sizes[1]
	if l.B.Sizes[0] != k || l.D.Sizes[0] != m || l.D.Sizes[1] != n || l.Bias.Sizes[0] != n {
		return fmt.Errorf("a %v, b %v, bias %v and d %v do not fit", l.A.Sizes, l.B.Sizes, l.Bias.Sizes, l.D.Sizes)
	}
	if k < 2 || n < 2 {
		return fmt.Errorf("b is %v; PyTorch does not use cuBLASLt for a matrix with a side of 1", l.B.Sizes)
	}
	if !tensor.IsContiguous(l.D.Sizes, l.D.Strides) || !tensor.IsContiguous(l.Bias.Sizes, l.Bias.Strides) {
		return fmt.Errorf("d has strides %v and bias %v; both must be contiguous", l.D.Strides, l.Bias.Strides)
	}
	for _, t := range []struct {
		name string
		device.Tensor
	}{{"a", l.A}, {"b", l.B}} {
		if _, ok := transposition(t.Tensor); !ok {
			return fmt.Errorf("%s has strides %v for sizes %v; PyTorch would copy it first", t.name, t.Strides, t.Sizes)
		}
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
		m: C.int64_t(l.m), n: C.int64_t(l.n), k: C.int64_t(l.k),
		lda: C.int64_t(l.lda), ldb: C.int64_t(l.ldb), ldd: C.int64_t(l.ldd),
		align_a: C.uint32_t(l.alignA), align_b: C.uint32_t(l.alignB), align_d: C.uint32_t(l.alignD),
		align_bias: C.uint32_t(l.alignBias), workspace_bytes: linearWorkspace,
	}
}
