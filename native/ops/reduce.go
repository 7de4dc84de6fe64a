package ops

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// reduction is one call of a kernel file made of reduce.cuh.
type reduction struct {
	file, suffix string // sum, f32
	in, out      int    // values
	number       int64  // bytes of what is added
	axes         []axis
	config       reduceConfig
}

// newReduction reads the arguments that sum.dim_IntList and mean.dim share; sum and mean reduce everything.
func newReduction(b *Builder, op *recording.Operation, file string) (*reduction, error) {
	in, err := ValueArg(op, "self")
	if err != nil {
		return nil, err
	}
	out, err := Result(op, 0)
	if err != nil {
		return nil, err
	}
	if _, ok := op.Arg("dim"); !ok {
		return reduce(b, op, file, in, out, nil, false)
	}
	dims, err := IntsArg(op, "dim")
	if err != nil {
		return nil, err
	}
	keepdim, err := BoolArg(op, "keepdim")
	if err != nil {
		return nil, err
	}
	return reduce(b, op, file, in, out, dims, keepdim)
}

// reduce makes a reduction of value in to value out.
func reduce(b *Builder, op *recording.Operation, file string, in, out int, dims []int64, keepdim bool) (*reduction, error) {
	x, y := b.Value(in), b.Value(out)
	reduced, err := reducedDims(op, dims, len(x.Sizes))
	if err != nil {
		return nil, err
	}
	if !reducesTo(x.Sizes, y.Sizes, reduced, keepdim) {
		return nil, Refuse(op, "results[0]", "sizes %v do not reduce to %v over dimensions %v", x.Sizes, y.Sizes, dims)
	}
	r := &reduction{file: file, in: in, out: out, axes: axesOf(x, y, reduced, keepdim)}
	if err := r.setTypes(op, x.DType, y.DType); err != nil {
		return nil, err
	}
	if x.Numel() == 0 {
		return r, nil
	}
	if !fits32(r.axes, y.DType.Size(), x.DType.Size()) {
		return nil, Refuse(op, "arguments[0]", "%v elements need 64-bit offsets", x.Sizes)
	}
	r.config = configure(r.axes, x.DType.Size(), inputVector(file, x.DType), alignment(x), processorOf(b.Recording))
	if r.config.reduced > maxAxes || r.config.rest > maxAxes {
		return nil, Refuse(op, "arguments[0]", "strides %v leave more than %d dimensions", x.Strides, maxAxes)
	}
	return r, nil
}

// setTypes refuses pairs of types that no kernel file has entries for.
func (r *reduction) setTypes(op *recording.Operation, from, to tensor.DType) error {
	r.number = 4
	switch {
	case from == tensor.Float32 || from == tensor.BFloat16 || from == tensor.Float16:
		if to != from && to != tensor.Float32 {
			return Refuse(op, "results[0]", "%s to %s would need a conversion first", from, to)
		}
	case r.file == "sum" && (from == tensor.Int64 || from == tensor.Bool):
		if to != tensor.Int64 {
			return Refuse(op, "results[0]", "%s to %s would need a conversion first", from, to)
		}
		r.number = 8
	default:
		return Refuse(op, "arguments[0]", "no kernel for %s", from)
	}
	if r.suffix = "bool"; from != tensor.Bool {
		var err error
		r.suffix, err = Suffix(from)
		return err
	}
	return nil
}

// inputVector is how many neighbouring inputs PyTorch's kernel loads at once: 8 of 16 bits, but not in norms.
func inputVector(file string, from tensor.DType) int64 {
	if from.Size() == 2 && file != "vector_norm" {
		return 8
	}
	return 4
}

// reducedDims marks the dimensions to reduce; none named means all.
func reducedDims(op *recording.Operation, dims []int64, rank int) ([]bool, error) {
	reduced := make([]bool, rank)
	for _, d := range dims {
		if d < 0 {
			d += int64(max(rank, 1))
		}
		if d < 0 || d >= int64(max(rank, 1)) {
			return nil, Refuse(op, "arguments", "no dimension %d in %d", d, rank)
		}
		if rank > 0 {
			reduced[d] = true
		}
	}
	if len(dims) == 0 {
		for d := range reduced {
			reduced[d] = true
		}
	}
	return reduced, nil
}

func reducesTo(in, out []int64, reduced []bool, keepdim bool) bool {
	var want []int64
	for d, size := range in {
		switch {
		case !reduced[d]:
			want = append(want, size)
		case keepdim:
			want = append(want, 1)
		}
	}
	if len(want) != len(out) {
		return false
	}
	for d := range want {
		if want[d] != out[d] {
			return false
		}
	}
	return true
}

// alignment is the power of two, at most 512, that divides an address in memory laid out by the plan.
func alignment(v *recording.Value) int64 {
	a := int64(512)
	if v.Alignment != 0 {
		a = int64(v.Alignment)
	}
	for v.Offset*v.DType.Size()%a != 0 {
		a /= 2
	}
	return a
}

// maxAxes is how many dimensions the kernels take after merging, of inputs and of outputs.
const maxAxes = 4

// emit appends the launch; more are arguments that the file's entries have beside those of reduce.cuh.
func (r *reduction) emit(b *Builder, more ...any) error {
	y, c := b.Value(r.out), &r.config
	form := fmt.Sprintf("out%d", c.outVector)
	if c.vectorInput {
		form = "in"
	}
	grid := c.gridX()
	var staging, finished device.Pointer
	if c.inMult[2] != 0 {
		staging, finished = b.Scratch(c.stagingBytes(r.number)), b.Scratch(4*grid)
		b.Emit(&device.Fill{To: finished, Bytes: 4 * grid})
	} else {
		staging, finished = b.Pointer(r.out), b.Pointer(r.out) // not used
	}
	wide := int32(0)
	if y.DType == tensor.Float32 {
		wide = 1
	}
	args := []any{b.Pointer(r.out), wide, b.Pointer(r.in), staging, finished}
	for _, n := range []int64{c.inputs, c.outputs, c.stepInput, c.stepOutput, c.ctas,
		c.inMult[0], c.inMult[1], c.inMult[2], c.outMult[0], c.outMult[1], c.reduced, c.rest} {
		args = append(args, uint32(n))
	}
	inputs, outputs := r.axes[:c.reduced], r.axes[c.reduced:]
	args = appendAxes(args, inputs, func(a axis) int64 { return a.size })
	args = appendAxes(args, inputs, func(a axis) int64 { return a.in })
	args = appendAxes(args, outputs, func(a axis) int64 { return a.size })
	args = appendAxes(args, outputs, func(a axis) int64 { return a.in })
	args = appendAxes(args, outputs, func(a axis) int64 { return a.out })
	b.Emit(&device.Kernel{
		File:   r.file,
		Entry:  fmt.Sprintf("%s_%s_%s", r.file, r.suffix, form),
		Grid:   [3]uint32{uint32(grid), uint32(c.ctas), 1},
		Block:  [3]uint32{uint32(c.width), uint32(c.height), 1},
		Shared: uint32(c.sharedBytes(r.number)),
		Args:   append(args, more...),
	})
	return nil
}

func appendAxes(args []any, axes []axis, field func(axis) int64) []any {
	for i := range maxAxes {
		n := int64(0)
		if i < len(axes) {
			n = field(axes[i])
		}
		args = append(args, uint32(n))
	}
	return args
}
