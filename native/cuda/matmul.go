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

// checkTensors checks tensors of so many dimensions and one type.
func checkTensors(dims int, list ...named) error {
	for _, t := range list {
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
	dtype               tensor.DType
	tf32                bool
	vector              bool // float32 times a vector: lda, ldb and ldd are as cublasSgemv wants them
	count               int64
	stepA, stepB, stepD int64 // from one product of a batch to the next
	alpha, beta         float32
}

// matmulWorkspace is what PyTorch gives cuBLAS on this architecture.
const matmulWorkspace = 32 << 20

func describeMatmul(c *device.Matmul, o device.Options) (matmul, error) {
	dims := 2
	if len(c.D.Sizes) == 3 {
		dims = 3
	}
	if err := checkTensors(dims, named{"a", c.A}, named{"b", c.B}, named{"d", c.D}); err != nil {
		return matmul{}, err
	}
	as, bs, ds := c.A.Sizes, c.B.Sizes, c.D.Sizes
	if bs[dims-2] != as[dims-1] || ds[dims-2] != as[dims-2] || ds[dims-1] != bs[dims-1] ||
		dims == 3 && (as[0] != ds[0] || bs[0] != ds[0]) {
		return matmul{}, fmt.Errorf("a %v, b %v and d %v do not fit", as, bs, ds)
	}
	m := matmul{dtype: c.A.DType, tf32: o.AllowTF32 && c.A.DType == tensor.Float32, count: 1, alpha: 1}
	if c.Factors != nil {
		m.alpha, m.beta = float32(c.Factors.Alpha), float32(c.Factors.Beta)
	}
	var err error
	if dims == 2 {
		m.product, err = describeProduct(c.A, c.B, c.D)
	} else {
		m.product, err = describeBatch(c.A, c.B, c.D)
		if m.count = ds[0]; m.count > 1 {
			m.stepA, m.stepB, m.stepD = c.A.Strides[0], c.B.Strides[0], c.D.Strides[0]
			if m.swapped {
				m.stepA, m.stepB = m.stepB, m.stepA
			}
		}
	}
	if err != nil {
		return matmul{}, err
	}
	m.adjust()
	if max(m.m, m.n, m.k, m.lda, m.ldb, m.ldd, m.count) > math.MaxInt32 {
		return matmul{}, fmt.Errorf("a %v and b %v are too large for cuBLAS", as, bs)
	}
	return m, nil
}

// describeBatch is describeProduct for batches, which PyTorch's bmm prepares by another rule: strides alone decide, not
// whether a matrix is dense.
func describeBatch(a, b, d device.Tensor) (product, error) {
	rows, columns := d.Sizes[1], d.Sizes[2]
	byRow, byColumn := d.Strides[1], d.Strides[2]
	var p product
	switch {
	case byRow == 1 && (columns == 1 || byColumn >= max(1, rows)):
	case byColumn == 1 && (rows == 1 || byRow >= max(1, columns)):
		p.swapped = true
		a, b = b, a
	default:
		return product{}, fmt.Errorf("d has strides %v for sizes %v; PyTorch would copy it", d.Strides, d.Sizes)
	}
	leading := 1 + index(!p.swapped)
	p.m, p.n, p.k = d.Sizes[1+index(p.swapped)], d.Sizes[leading], a.Sizes[leading]
	p.ldd = d.Strides[leading]
	var okA, okB bool
	p.transa, p.lda, okA = batchTransposition(a, p.swapped, p.m, p.k)
	p.transb, p.ldb, okB = batchTransposition(b, p.swapped, p.k, p.n)
	if !okA || !okB {
		return product{}, fmt.Errorf("factors have strides %v and %v for sizes %v and %v; PyTorch would copy one first",
			a.Strides, b.Strides, a.Sizes, b.Sizes)
	}
	return p, nil
}

// batchTransposition is PyTorch's prepare_batch_matrix_for_cublas for a factor of m by n, as cuBLAS sees it.
func batchTransposition(t device.Tensor, swapped bool, m, n int64) (transposed bool, ld int64, ok bool) {
	fast, leading := t.Strides[1+index(swapped)], t.Strides[1+index(!swapped)]
	switch {
	case fast == 1 && leading >= max(1, m):
		return false, leading, true
	case leading == 1 && fast >= max(1, n):
		return true, fast, true
	}
	return !swapped, t.Strides[1], tensor.IsContiguous(t.Sizes, t.Strides) && t.Strides[1] != 0 && t.Strides[2] != 0
}

// describeMatVec prepares a product with a vector as PyTorch's addmv does: cublasSgemv for float32, for the other types
// a product whose result is one row.
func describeMatVec(c *device.MatVec) (matmul, error) {
	err := checkTensors(2, named{"a", c.A})
	if err == nil {
		err = checkTensors(1, named{"x", c.X}, named{"d", c.D})
	}
	if err != nil {
		return matmul{}, err
	}
	rows, columns := c.A.Sizes[0], c.A.Sizes[1]
	if c.X.Sizes[0] != columns || c.D.Sizes[0] != rows || c.X.DType != c.A.DType {
		return matmul{}, fmt.Errorf("a %s %v, x %s %v and d %v do not fit", c.A.DType, c.A.Sizes, c.X.DType, c.X.Sizes, c.D.Sizes)
	}
	m := matmul{dtype: c.A.DType, count: 1, alpha: 1}
	byRow, byColumn := c.A.Strides[0], c.A.Strides[1]
	turned := !(byRow == 1 && byColumn >= max(1, rows)) // as column-major memory, the matrix is transposed
	ld := byColumn
	if turned {
		if ld = byRow; !tensor.IsContiguous(c.A.Sizes, c.A.Strides) && (byColumn != 1 || byRow < max(1, columns)) {
			return matmul{}, fmt.Errorf("a has strides %v for sizes %v; PyTorch would copy it first", c.A.Strides, c.A.Sizes)
		}
	}
	x, d := max(c.X.Strides[0], 1), max(c.D.Strides[0], 1)
	if m.vector = m.dtype == tensor.Float32; m.vector {
		m.product = product{transa: turned, m: rows, n: 1, k: columns, lda: ld, ldb: x, ldd: d}
		if across := map[bool]int64{false: columns, true: rows}[turned]; across == 1 {
			m.lda = rows * columns // PyTorch's _cublasAdjustLdLevel2: of one line, its length
		}
	} else {
		m.product = product{swapped: true, transb: !turned, m: 1, n: rows, k: columns, lda: x, ldb: ld, ldd: d}
		m.adjust()
	}
	if max(m.m, m.n, m.k, m.lda, m.ldb, m.ldd) > math.MaxInt32 {
		return matmul{}, fmt.Errorf("a %v is too large for cuBLAS", c.A.Sizes)
	}
	return m, nil
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
		_type: cublasTypes[m.dtype], tf32: toInt(m.tf32), vector: toInt(m.vector), transa: toInt(m.transa), transb: toInt(m.transb),
		m: C.int(m.m), n: C.int(m.n), k: C.int(m.k), lda: C.int(m.lda), ldb: C.int(m.ldb), ldd: C.int(m.ldd),
		workspace_bytes: matmulWorkspace,
		count:           C.int(m.count), step_a: C.int64_t(m.stepA), step_b: C.int64_t(m.stepB), step_d: C.int64_t(m.stepD),
		alpha: C.float(m.alpha), beta: C.float(m.beta),
	}
}

// String is what cuBLAS is asked: cublasSgemm TN 1000x4x512. It does not tell which kernel it takes.
func (m matmul) String() string {
	single, batch := m.dtype == tensor.Float32, m.count > 1
	call := map[[2]bool]string{{true, false}: "cublasSgemm", {true, true}: "cublasSgemmStridedBatched",
		{false, false}: "cublasGemmEx", {false, true}: "cublasGemmStridedBatchedEx"}[[2]bool{single, batch}]
	letter := map[bool]string{false: "N", true: "T"}
	if m.vector {
		return fmt.Sprintf("cublasSgemv %s %dx%d", letter[m.transa], m.m, m.k)
	}
	text := fmt.Sprintf("%s %s%s %dx%dx%d", call, letter[m.transa], letter[m.transb], m.m, m.n, m.k)
	if batch {
		text += fmt.Sprintf(" of %d", m.count)
	}
	return text
}

// matmul tries a product. It gets its real workspace at the end.
func (w *preparation) matmul(i int, c *device.Matmul) error {
	m, err := describeMatmul(c, w.options)
	if err != nil {
		return err
	}
	return w.emitMatmul(i, m, c.A, c.B, c.D)
}

func (w *preparation) matVec(i int, c *device.MatVec) error {
	m, err := describeMatVec(c)
	if err != nil {
		return err
	}
	return w.emitMatmul(i, m, c.A, c.X, c.D)
}

func (w *preparation) emitMatmul(i int, m matmul, a, b, d device.Tensor) error {
	at, err := w.addresses(a.Pointer, b.Pointer, d.Pointer)
	if err != nil {
		return err
	}
	first, second := areaOf(a, at[0]), areaOf(b, at[1])
	if m.swapped {
		first, second = second, first
	}
	areas := []area{first, second, areaOf(d, at[2])}
	call := m.toC()
	if w.firstOn(i, m) {
		if err := w.tryMatmul(i, call, areas); err != nil {
			return err
		}
	}
	setMatmul(&call, C.sb_pointer(areas[0].address), C.sb_pointer(areas[1].address), C.sb_pointer(areas[2].address))
	w.matmuls = append(w.matmuls, pendingMatmul{i, call})
	w.p.choices[i] = m.String()
	w.need(i, matmulWorkspace)
	return nil
}

func (w *preparation) tryMatmul(i int, call C.sb_matmul, areas []area) error {
	places, err := w.onTrial(areas...)
	if err != nil {
		return err
	}
	if call.workspace, err = w.trialWorkspace(i, matmulWorkspace); err != nil {
		return err
	}
	setMatmul(&call, places[0], places[1], places[2])
	var e C.sb_error
	q := w.p.queue(i)
	if C.sb_queue_cublas(q, &e) != 0 || C.sb_matmul_run(q, &call, &e) != 0 || C.sb_queue_wait(q, &e) != 0 {
		return failure(&e)
	}
	return nil
}

func setMatmul(c *C.sb_matmul, a, b, d C.sb_pointer) { c.a, c.b, c.d = a, b, d }
