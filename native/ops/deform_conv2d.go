package ops

import (
	"math"
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() { register(lowerDeformConv, "torchvision::deform_conv2d") }

// deformation is a deformable convolution: torchvision gathers the pixels of all windows of some images into columns,
// multiplies the weight of each group by its columns, adding to zeros, and then adds the bias.
type deformation struct {
	input, weight, offset, mask, bias, out device.Tensor
	stride, padding, dilation              [2]int64
	groups, offsetGroups                   int64
	masked                                 bool
	parallel                               int64 // images at a time
}

// mostParallel is torchvision's kMaxParallelImgs.
const mostParallel = 32

func lowerDeformConv(b *Builder, op *recording.Operation) error {
	d, err := readDeformation(b, op)
	if err != nil {
		return err
	}
	if err := d.check(op); err != nil || tensor.Numel(d.out.Sizes) == 0 {
		return err
	}
	for _, t := range []*device.Tensor{&d.input, &d.weight, &d.offset, &d.mask, &d.bias} {
		if *t, err = contiguous(b, op, *t); err != nil {
			return err
		}
	}
	return d.emit(b, op)
}

func readDeformation(b *Builder, op *recording.Operation) (d deformation, err error) {
	for _, v := range []struct {
		name string
		to   *device.Tensor
	}{{"input", &d.input}, {"weight", &d.weight}, {"offset", &d.offset}, {"mask", &d.mask}, {"bias", &d.bias}} {
		i, err := ValueArg(op, v.name)
		if err != nil {
			return d, err
		}
		*v.to = b.Tensor(i)
	}
	for _, v := range []struct {
		name  string
		to    *int64
		least int64
	}{
		{"stride_h", &d.stride[0], 1}, {"stride_w", &d.stride[1], 1}, {"pad_h", &d.padding[0], 0}, {"pad_w", &d.padding[1], 0},
		{"dilation_h", &d.dilation[0], 1}, {"dilation_w", &d.dilation[1], 1},
		{"groups", &d.groups, 1}, {"offset_groups", &d.offsetGroups, 1},
	} {
		if *v.to, err = IntArg(op, v.name); err != nil {
			return d, err
		}
		if *v.to < v.least || *v.to > math.MaxInt16 {
			return d, Refuse(op, argumentPath(op, v.name), "%s is %d, wanted %d to %d", v.name, *v.to, v.least, math.MaxInt16)
		}
	}
	if d.masked, err = BoolArg(op, "use_mask"); err != nil {
		return d, err
	}
	out, err := Result(op, 0)
	if err != nil {
		return d, err
	}
	d.out = b.Tensor(out)
	return d, nil
}

// check is torchvision's own.
func (d *deformation) check(op *recording.Operation) error {
	x, w, y := d.input.Sizes, d.weight.Sizes, d.out.Sizes
	if len(x) != 4 || len(w) != 4 || len(d.offset.Sizes) != 4 || len(y) != 4 {
		return Refuse(op, "results[0]", "input %v, weight %v and offset %v; all must have 4 dimensions", x, w, d.offset.Sizes)
	}
	switch d.out.DType {
	case tensor.Float32, tensor.Float16:
	default: // torchvision has no kernel for bfloat16; autocast converts to float32
		return Refuse(op, "results[0]", "a deformable convolution of %s", d.out.DType)
	}
	if x[1] != w[1]*d.groups || w[0]%d.groups != 0 || x[1]%d.offsetGroups != 0 || tensor.Numel(w) == 0 {
		return Refuse(op, argumentPath(op, "weight"), "weight %v for input %v in %d and %d groups", w, x, d.groups, d.offsetGroups)
	}
	if want := []int64{x[0], w[0], d.extent(0), d.extent(1)}; !slices.Equal(y, want) {
		return Refuse(op, "results[0]", "the result has sizes %v, wanted %v", y, want)
	}
	places := d.offsetGroups * w[2] * w[3]
	for _, t := range []struct {
		name   string
		tensor device.Tensor
		sizes  []int64
	}{
		{"input", d.input, x}, {"weight", d.weight, w}, {"bias", d.bias, w[:1]},
		{"offset", d.offset, []int64{x[0], 2 * places, y[2], y[3]}}, {"mask", d.mask, []int64{x[0], places, y[2], y[3]}},
	} {
		if t.tensor.DType != d.out.DType {
			return Refuse(op, argumentPath(op, t.name), "%s is %s, the result %s", t.name, t.tensor.DType, d.out.DType)
		}
		if (t.name != "mask" || d.masked) && !slices.Equal(t.tensor.Sizes, t.sizes) {
			return Refuse(op, argumentPath(op, t.name), "%s has sizes %v, wanted %v", t.name, t.tensor.Sizes, t.sizes)
		}
	}
	if !tensor.IsContiguous(y, d.out.Strides) {
		return Refuse(op, "results[0]", "a result with strides %v", d.out.Strides)
	}
	if n := max(tensor.Numel(x), tensor.Numel(y), x[1]*min(x[0], mostParallel)*y[2]*y[3]); n > math.MaxInt32 {
		return Refuse(op, "results[0]", "%d elements, at most 2^31 are done", n)
	}
	for d.parallel = mostParallel; d.parallel > 1 && x[0]%d.parallel != 0; {
		d.parallel--
	}
	return nil
}

// extent is how many windows fit, down or across.
func (d *deformation) extent(i int) int64 {
	return (d.input.Sizes[2+i]+2*d.padding[i]-d.dilation[i]*(d.weight.Sizes[2+i]-1)-1)/d.stride[i] + 1
}

func (d *deformation) emit(b *Builder, op *recording.Operation) error {
	x, w, y := d.input.Sizes, d.weight.Sizes, d.out.Sizes
	size, places := d.out.DType.Size(), y[2]*y[3]
	depth, width, rows := w[1]*w[2]*w[3], d.parallel*places, w[0]/d.groups
	columns := b.Scratch(d.groups * depth * width * size)
	products := b.Scratch(x[0] * w[0] * places * size)
	suffix, err := Suffix(d.out.DType)
	if err != nil {
		return Refuse(op, "results[0]", "%v", err)
	}
	b.Emit(&device.Fill{To: products, Bytes: x[0] * w[0] * places * size})
	to := products
	for round := int64(0); round < x[0]; round += d.parallel {
		b.launch("deform_conv2d", "deform_columns_"+suffix, x[1]*width, d.columnArgs(columns, round))
		for g := range d.groups {
			c := &device.Matmul{A: matrix(d.weight, rows, depth), B: matrix(d.out, depth, width), D: matrix(d.out, rows, width),
				Factors: &device.Factors{Alpha: 1, Beta: 1}}
			c.A.Offset += g * rows * depth * size
			c.B.Pointer, c.D.Pointer = columns, to
			c.B.Offset += g * depth * width * size
			to.Offset += rows * width * size
			emitAdded(b, c)
		}
	}
	b.launch("deform_conv2d", "deform_bias_"+suffix, tensor.Numel(y), []any{int32(tensor.Numel(y)), products,
		d.bias.Pointer, d.out.Pointer, int32(d.parallel), int32(w[0]), int32(places)})
	return nil
}

// columnArgs are the arguments of the kernel that gathers the columns of the images from number first on.
func (d *deformation) columnArgs(columns device.Pointer, first int64) []any {
	x, w, y := d.input.Sizes, d.weight.Sizes, d.out.Sizes
	args := []any{int32(x[1] * d.parallel * y[2] * y[3])}
	for _, t := range []device.Tensor{d.input, d.offset, d.mask} {
		at := t.Pointer
		at.Offset += first * tensor.Numel(t.Sizes[1:]) * t.DType.Size()
		args = append(args, at)
	}
	args = append(args, columns)
	for _, n := range []int64{x[2], x[3], w[2], w[3], d.padding[0], d.padding[1], d.stride[0], d.stride[1], d.dilation[0], d.dilation[1],
		d.parallel, x[1], d.offsetGroups, y[2], y[3]} {
		args = append(args, int32(n))
	}
	return append(args, flag(d.masked))
}

// matrix is a row-major matrix at a tensor's address.
func matrix(at device.Tensor, rows, columns int64) device.Tensor {
	at.Sizes, at.Strides = []int64{rows, columns}, []int64{columns, 1}
	return at
}

// emitAdded emits a product of row-major matrices that is added to its result in place, as addmm_ does it.
func emitAdded(b *Builder, c *device.Matmul) {
	if byLight(c.D, c.B, c.D, *c.Factors) {
		b.Emit(&device.Linear{A: c.A, B: c.B, D: c.D, Factors: c.Factors})
		return
	}
	b.Emit(c)
}
