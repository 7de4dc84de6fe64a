//go:build linux && amd64

package host

// #include "host.h"
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// These are the commands that libraries run on CUDA: here they are ours.

var elementTypes = map[tensor.DType]C.int32_t{
	tensor.Float32: C.SB_FLOAT32, tensor.Float64: C.SB_FLOAT64,
	tensor.BFloat16: C.SB_BFLOAT16, tensor.Float16: C.SB_FLOAT16,
}

var directions = map[device.Direction]C.int32_t{
	device.Forward: C.SB_FORWARD, device.BackwardData: C.SB_BACKWARD_DATA, device.BackwardFilter: C.SB_BACKWARD_FILTER,
}

// sameType checks that tensors have one type that we compute in.
func (l *lowering) sameType(tensors ...device.Tensor) (C.int32_t, bool) {
	d := tensors[0].DType
	for _, t := range tensors[1:] {
		if t.DType != d {
			l.problem("UNSUPPORTED", "tensors of types %s and %s", d, t.DType)
			return 0, false
		}
	}
	code, ok := elementTypes[d]
	if !ok {
		l.problem("UNSUPPORTED", "tensors of type %s", d)
	}
	return code, ok
}

// geometry checks that a tensor has that many dimensions and a stride for each.
func (l *lowering) geometry(name string, t device.Tensor, dims int) bool {
	if len(t.Sizes) != dims || len(t.Strides) != dims {
		l.problem("BAD_SHAPE", "%s has sizes %v and strides %v, wanted %d dimensions", name, t.Sizes, t.Strides, dims)
		return false
	}
	for _, s := range append(slices.Clone(t.Sizes), t.Strides...) {
		if s < 0 {
			l.problem("BAD_SHAPE", "%s has sizes %v and strides %v: a negative one", name, t.Sizes, t.Strides)
			return false
		}
	}
	return true
}

func (l *lowering) tensorAddress(name string, t device.Tensor) unsafe.Pointer {
	return l.address(name, t.Pointer, tensor.Numel(t.Sizes)*t.DType.Size())
}

// spatial gives a tensor of 3 dimensions a fourth: a row is an image of height 1.
func spatial(sizes []int64, fill int64) []int64 {
	if len(sizes) == 4 || len(sizes) == 2 {
		return sizes
	}
	return slices.Insert(slices.Clone(sizes), len(sizes)-1, fill)
}

func (l *lowering) convolution(c *device.Convolution, to *C.struct_sb_convolution) {
	direction, ok := directions[c.Direction]
	if !ok {
		l.problem("UNSUPPORTED", "a convolution in direction %d", c.Direction)
		return
	}
	code, ok := l.sameType(c.X, c.W, c.Y)
	if !ok {
		return
	}
	dims := len(c.X.Sizes)
	if dims != 3 && dims != 4 {
		l.problem("UNSUPPORTED", "a convolution of %d dimensions: the host has those of 3 and 4", dims)
		return
	}
	if !l.geometry("x", c.X, dims) || !l.geometry("w", c.W, dims) || !l.geometry("y", c.Y, dims) {
		return
	}
	if len(c.Padding) != dims-2 || len(c.Stride) != dims-2 || len(c.Dilation) != dims-2 {
		l.problem("BAD_SHAPE", "padding %v, stride %v and dilation %v of a convolution of %d dimensions",
			c.Padding, c.Stride, c.Dilation, dims)
		return
	}
	x, w, y := spatial(c.X.Sizes, 1), spatial(c.W.Sizes, 1), spatial(c.Y.Sizes, 1)
	padding, stride, dilation := c.Padding, c.Stride, c.Dilation
	if dims == 3 {
		padding, stride, dilation = []int64{0, padding[0]}, []int64{1, stride[0]}, []int64{1, dilation[0]}
	}
	if err := checkConvolution(x, w, y, padding, stride, dilation, c.Groups); err != nil {
		l.problem("BAD_SHAPE", "%v", err)
		return
	}
	*to = C.struct_sb_convolution{
		_type: code, direction: direction, n: C.int64_t(x[0]), groups: C.int64_t(c.Groups), ci: C.int64_t(w[1]), co: C.int64_t(w[0] / c.Groups),
		h: C.int64_t(x[2]), wd: C.int64_t(x[3]), oh: C.int64_t(y[2]), ow: C.int64_t(y[3]),
		kh: C.int64_t(w[2]), kw: C.int64_t(w[3]), sy: C.int64_t(stride[0]), sx: C.int64_t(stride[1]),
		py: C.int64_t(padding[0]), px: C.int64_t(padding[1]), dy: C.int64_t(dilation[0]), dx: C.int64_t(dilation[1]),
		xs: strides(spatial(c.X.Strides, 0)), ws: strides(spatial(c.W.Strides, 0)), ys: strides(spatial(c.Y.Strides, 0)),
		alpha: 1,
	}
	to.xg, to.wg, to.yg = to.ci*to.xs[1], to.co*to.ws[0], to.co*to.ys[1]
	l.place(to, c.X, c.W, c.Y)
}

func strides(s []int64) (out [4]C.int64_t) {
	for i, v := range s {
		out[i] = C.int64_t(v)
	}
	return out
}

// checkConvolution checks sizes of 4 dimensions.
func checkConvolution(x, w, y, padding, stride, dilation []int64, groups int64) error {
	if groups < 1 || w[0]%groups != 0 || x[1] != w[1]*groups || w[0] < 1 || w[1] < 1 || w[2] < 1 || w[3] < 1 {
		return fmt.Errorf("x %v, w %v and %d groups do not fit", x, w, groups)
	}
	want := []int64{x[0], w[0], 0, 0}
	for i := range 2 {
		if padding[i] < 0 || stride[i] < 1 || dilation[i] < 1 {
			return fmt.Errorf("padding %v, stride %v, dilation %v", padding, stride, dilation)
		}
		room := x[2+i] + 2*padding[i] - dilation[i]*(w[2+i]-1) - 1
		if room < 0 {
			return fmt.Errorf("the kernel of w %v is larger than x %v", w, x)
		}
		want[2+i] = room/stride[i] + 1
	}
	if !slices.Equal(y, want) {
		return fmt.Errorf("y is %v, wanted %v", y, want)
	}
	return nil
}

// place sets the addresses of a convolution and notes what it needs to pack its weights.
func (l *lowering) place(to *C.struct_sb_convolution, x, w, y device.Tensor) {
	to.x = l.tensorAddress("x", x)
	to.w = l.tensorAddress("w", w)
	to.y = l.tensorAddress("y", y)
	size := int64(4)
	if x.DType == tensor.Float64 {
		size = 8
	}
	l.packed = max(l.packed, size*int64(to.groups*to.co*to.ci*to.kh*to.kw))
}

// linear is a matrix product with a bias, or one that is added to what the result held.
func (l *lowering) linear(c *device.Linear, to *C.struct_sb_convolution) {
	factors := device.Factors{Alpha: 1}
	if c.Factors != nil {
		factors.Alpha = c.Factors.Alpha
	}
	if c.Bias.Sizes == nil {
		factors.Beta = 1
	} else if _, ok := l.sameType(c.A, c.Bias); !ok || !l.geometry("bias", c.Bias, 1) {
		return
	}
	if !l.matmul(&device.Matmul{A: c.A, B: c.B, D: c.D, Factors: &factors}, to) || c.Bias.Sizes == nil {
		return
	}
	if n := c.D.Sizes[1]; c.Bias.Sizes[0] != n || (n > 1 && c.Bias.Strides[0] != 1) {
		l.problem("BAD_SHAPE", "bias %v with strides %v, wanted %d contiguous elements", c.Bias.Sizes, c.Bias.Strides, n)
		return
	}
	to.bias = l.tensorAddress("bias", c.Bias)
}

// matVec is a product with a matrix of one column.
func (l *lowering) matVec(c *device.MatVec, to *C.struct_sb_convolution) {
	if l.geometry("x", c.X, 1) && l.geometry("d", c.D, 1) {
		l.matmul(&device.Matmul{A: c.A, B: column(c.X), D: column(c.D)}, to)
	}
}

func column(t device.Tensor) device.Tensor {
	t.Sizes, t.Strides = []int64{t.Sizes[0], 1}, []int64{t.Strides[0], 1}
	return t
}

// matmul is a convolution by 1x1 whose image is b: one row of n pixels with k channels.
func (l *lowering) matmul(p *device.Matmul, to *C.struct_sb_convolution) bool {
	a, b, d := p.A, p.B, p.D
	code, ok := l.sameType(a, b, d)
	dims := len(d.Sizes)
	if dims != 3 {
		dims = 2
	}
	if !ok || !l.geometry("a", a, dims) || !l.geometry("b", b, dims) || !l.geometry("d", d, dims) {
		return false
	}
	batches, steps := int64(1), [3]int64{}
	if dims == 3 {
		batches, steps = d.Sizes[0], [3]int64{a.Strides[0], b.Strides[0], d.Strides[0]}
		if a.Sizes[0] != batches || b.Sizes[0] != batches {
			l.problem("BAD_SHAPE", "batches of %d, %d and %d matrices", a.Sizes[0], b.Sizes[0], batches)
			return false
		}
	}
	as, bs, ds := a.Sizes[dims-2:], b.Sizes[dims-2:], d.Sizes[dims-2:]
	m, k, n := as[0], as[1], bs[1]
	if bs[0] != k || ds[0] != m || ds[1] != n || k < 1 {
		l.problem("BAD_SHAPE", "a %v, b %v and d %v do not fit", a.Sizes, b.Sizes, d.Sizes)
		return false
	}
	one := C.int64_t(1)
	at, bt, dt := a.Strides[dims-2:], b.Strides[dims-2:], d.Strides[dims-2:]
	*to = C.struct_sb_convolution{
		_type: code, n: one, groups: C.int64_t(batches), ci: C.int64_t(k), co: C.int64_t(m), h: one, wd: C.int64_t(n), oh: one, ow: C.int64_t(n),
		kh: one, kw: one, sy: one, sx: one, dy: one, dx: one,
		xs: strides([]int64{0, bt[0], 0, bt[1]}),
		ws: strides([]int64{at[0], at[1], 0, 0}),
		ys: strides([]int64{0, dt[0], 0, dt[1]}),
		wg: C.int64_t(steps[0]), xg: C.int64_t(steps[1]), yg: C.int64_t(steps[2]),
		alpha: 1,
	}
	if p.Factors != nil {
		to.alpha, to.beta = C.double(p.Factors.Alpha), C.double(p.Factors.Beta)
	}
	l.place(to, b, a, d)
	return true
}

func (l *lowering) batchNorm(c *device.BatchNorm, to *C.struct_sb_batch_norm) {
	code, ok := l.sameType(c.X, c.Y)
	if !ok {
		return
	}
	dims := len(c.X.Sizes)
	if dims < 2 || dims > 5 || code == C.SB_FLOAT64 {
		l.problem("UNSUPPORTED", "batch norm of %s with %d dimensions", c.X.DType, dims)
		return
	}
	if !l.geometry("x", c.X, dims) || !l.geometry("y", c.Y, dims) {
		return
	}
	if !slices.Equal(c.X.Sizes, c.Y.Sizes) {
		l.problem("BAD_SHAPE", "x is %v and y is %v", c.X.Sizes, c.Y.Sizes)
		return
	}
	sizes, xs, okX := planes(c.X)
	_, ys, okY := planes(c.Y)
	if !okX || !okY {
		l.problem("UNSUPPORTED", "batch norm with sizes %v and strides %v, %v", c.X.Sizes, c.X.Strides, c.Y.Strides)
		return
	}
	to._type = code
	to.n, to.c, to.h, to.w = C.int64_t(sizes[0]), C.int64_t(sizes[1]), C.int64_t(sizes[2]), C.int64_t(sizes[3])
	to.xs, to.ys = strides(xs), strides(ys)
	to.epsilon = C.float(c.Epsilon)
	to.x = l.tensorAddress("x", c.X)
	to.y = l.tensorAddress("y", c.Y)
	to.scale = l.channels("scale", c.Scale, sizes[1])
	to.bias = l.channels("bias", c.Bias, sizes[1])
	to.mean = l.channels("mean", c.Mean, sizes[1])
	to.variance = l.channels("variance", c.Variance, sizes[1])
}

// planes gives a tensor of 2 to 5 dimensions as one of 4; depth and height become one, if the strides allow.
func planes(t device.Tensor) (sizes, strides []int64, ok bool) {
	sizes, strides = slices.Clone(t.Sizes), slices.Clone(t.Strides)
	for len(sizes) < 4 {
		sizes, strides = slices.Insert(sizes, 2, 1), slices.Insert(strides, 2, 0)
	}
	if len(sizes) == 5 {
		if sizes[2] > 1 && strides[2] != sizes[3]*strides[3] {
			return nil, nil, false
		}
		sizes[3] *= sizes[2]
		sizes, strides = slices.Delete(sizes, 2, 3), slices.Delete(strides, 2, 3)
	}
	return sizes, strides, true
}

// channels checks a vector of float32 with one element a channel.
func (l *lowering) channels(name string, t device.Tensor, n int64) *C.float {
	if t.DType != tensor.Float32 || len(t.Sizes) != 1 || t.Sizes[0] != n || len(t.Strides) != 1 || (n > 1 && t.Strides[0] != 1) {
		l.problem("BAD_SHAPE", "%s is %s %v with strides %v, wanted %d contiguous float32", name, t.DType, t.Sizes, t.Strides, n)
		return nil
	}
	return (*C.float)(l.tensorAddress(name, t))
}
