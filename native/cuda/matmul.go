package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"math"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// product is a matrix product as cuBLAS sees it, column-major: d[m,n] = op(a)[m,k] * op(b)[k,n].
type product struct {
	swapped                bool // its a is our b and the other way round
	transa, transb         bool
	m, n, k, lda, ldb, ldd int64
}

// describeProduct prepares the arguments of d = a*b from the strides as PyTorch's cublasCommonArgs does; the pair of
// transpositions and the leading dimensions decide about the kernel. For a row-major d cuBLAS computes d' = b' a'.
func describeProduct(a, b, d device.Tensor) (product, error) {
	for _, t := range []named{{"a", a}, {"b", b}} {
		if _, ok := transposition(t.Tensor); !ok {
			return product{}, fmt.Errorf("%s has strides %v for sizes %v; PyTorch would copy it first", t.name, t.Strides, t.Sizes)
		}
	}
	swapped, ok := transposition(d)
	if !ok {
		return product{}, fmt.Errorf("d has strides %v for sizes %v; PyTorch would copy it", d.Strides, d.Sizes)
	}
	if swapped {
		a, b = b, a
	}
	transa, _ := transposition(a)
	transb, _ := transposition(b)
	transa, transb = transa != swapped, transb != swapped
	return product{
		swapped: swapped, transa: transa, transb: transb,
		m: a.Sizes[index(swapped)], n: b.Sizes[index(!swapped)], k: a.Sizes[index(!swapped)],
		lda: a.Strides[index(transa == swapped)], ldb: b.Strides[index(transb == swapped)], ldd: d.Strides[index(!swapped)],
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

// checkMatrices checks matrices of one type; a bias is a vector.
func checkMatrices(list ...named) error {
	for _, t := range list {
		dims := 2
		if t.name == "bias" {
			dims = 1
		}
		if len(t.Sizes) != dims || len(t.Strides) != dims {
			return fmt.Errorf("%s has %d sizes and %d strides, %d are wanted", t.name, len(t.Sizes), len(t.Strides), dims)
		}
		if _, known := cublasTypes[t.DType]; !known || t.DType != list[0].DType {
			return fmt.Errorf("%s is %s, a is %s; all must be float32, bfloat16 or float16", t.name, t.DType, list[0].DType)
		}
		if tensor.Numel(t.Sizes) < 1 {
			return fmt.Errorf("%s is empty: %v", t.name, t.Sizes)
		}
	}
	return nil
}

// matmul is all but the addresses of a product without bias.
type matmul struct {
	product
	dtype tensor.DType
	tf32  bool
}

// matmulWorkspace is what PyTorch gives cuBLAS on this architecture.
const matmulWorkspace = 32 << 20

func describeMatmul(c *device.Matmul, o device.Options) (matmul, error) {
	if err := checkMatrices(named{"a", c.A}, named{"b", c.B}, named{"d", c.D}); err != nil {
		return matmul{}, err
	}
	if c.B.Sizes[0] != c.A.Sizes[1] || c.D.Sizes[0] != c.A.Sizes[0] || c.D.Sizes[1] != c.B.Sizes[1] {
		return matmul{}, fmt.Errorf("a %v, b %v and d %v do not fit", c.A.Sizes, c.B.Sizes, c.D.Sizes)
	}
	p, err := describeProduct(c.A, c.B, c.D)
	if err != nil {
		return matmul{}, err
	}
	p.adjust()
	if max(p.m, p.n, p.k, p.lda, p.ldb, p.ldd) > math.MaxInt32 {
		return matmul{}, fmt.Errorf("a %v and b %v are too large for cuBLAS", c.A.Sizes, c.B.Sizes)
	}
	return matmul{product: p, dtype: c.A.DType, tf32: o.AllowTF32 && c.A.DType == tensor.Float32}, nil
}

// adjust gives leading dimensions that no stride decides the values that cuBLAS wants, as PyTorch's
// cublasAdjustLdLevel3 does.
func (p *product) adjust() {
	if p.n <= 1 {
		p.ldd = max(p.m, 1)
	}
	if p.transa && p.m <= 1 {
		p.lda = max(p.k, 1)
	}
	if !p.transa && p.k <= 1 {
		p.lda = max(p.m, 1)
	}
	if p.transb && p.k <= 1 {
		p.ldb = max(p.n, 1)
	}
	if !p.transb && p.n <= 1 {
		p.ldb = max(p.k, 1)
	}
}

func (m matmul) toC() C.sb_matmul {
	return C.sb_matmul{
		_type: cublasTypes[m.dtype], tf32: toInt(m.tf32), transa: toInt(m.transa), transb: toInt(m.transb),
		m: C.int(m.m), n: C.int(m.n), k: C.int(m.k), lda: C.int(m.lda), ldb: C.int(m.ldb), ldd: C.int(m.ldd),
	}
}

// String is what cuBLAS is asked: cublasSgemm TN 1000x4x512. It does not tell which kernel it takes.
func (m matmul) String() string {
	call := "cublasGemmEx"
	if m.dtype == tensor.Float32 {
		call = "cublasSgemm"
	}
	letter := map[bool]string{false: "N", true: "T"}
	return fmt.Sprintf("%s %s%s %dx%dx%d", call, letter[m.transa], letter[m.transb], m.m, m.n, m.k)
}

// matmul tries a product on scratch memory. The handle gets its real workspace at the end.
func (w *preparation) matmul(i int, c *device.Matmul) error {
	m, err := describeMatmul(c, w.options)
	if err != nil {
		return err
	}
	at, err := w.addresses(c.A.Pointer, c.B.Pointer, c.D.Pointer)
	if err != nil {
		return err
	}
	first, second := areaOf(c.A, at[0]), areaOf(c.B, at[1])
	if m.swapped {
		first, second = second, first
	}
	areas := []area{first, second, areaOf(c.D, at[2])}
	call := m.toC()
	if w.firstOn(i, m) {
		if err := w.tryMatmul(w.p.queue(i), call, areas); err != nil {
			return err
		}
	}
	setMatmul(&call, C.sb_pointer(areas[0].address), C.sb_pointer(areas[1].address), C.sb_pointer(areas[2].address))
	C.sb_list_matmul(w.p.list, C.int(i), &call)
	w.p.choices[i] = m.String()
	w.need(i, matmulWorkspace)
	w.gemms[w.p.laneOf(i)] = true
	return nil
}

func (w *preparation) tryMatmul(q *C.sb_queue, call C.sb_matmul, areas []area) error {
	places, err := w.place(areas...)
	if err != nil {
		return err
	}
	workspace, err := w.workspace.atLeast(matmulWorkspace)
	if err != nil {
		return err
	}
	setMatmul(&call, places[0], places[1], places[2])
	var e C.sb_error
	if C.sb_queue_cublas(q, &e) != 0 || C.sb_queue_workspace(q, workspace, matmulWorkspace, &e) != 0 ||
		C.sb_matmul_run(q, &call, &e) != 0 || C.sb_queue_wait(q, &e) != 0 {
		return failure(&e)
	}
	return nil
}

func setMatmul(c *C.sb_matmul, a, b, d C.sb_pointer) { c.a, c.b, c.d = a, b, d }
