package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() {
	register(lowerExtreme("max"), "aten::max.dim")
	register(lowerExtreme("min"), "aten::min.dim")
}

func lowerExtreme(entry string) Lower {
	return func(b *Builder, op *recording.Operation) error {
		f, err := readFold(b, op, 2)
		if err != nil {
			return err
		}
		x, y, at := b.Value(f.in), b.Value(f.outs[0]), b.Value(f.outs[1])
		if y.DType != x.DType || at.DType != tensor.Int64 {
			return Refuse(op, "results[0]", "%s gives %s and places of %s", x.DType, y.DType, at.DType)
		}
		if f.count(b) == 0 {
			return Refuse(op, argumentPath(op, "self"), "no element along dimension %d of %v", f.dim, x.Sizes)
		}
		return f.emit(b, op, "max_dim", entry, f.route(b)...)
	}
}

// route tells kernels/max_dim.cu which threads of PyTorch's reduction see which elements.
func (f *fold) route(b *Builder) []any {
	x, y := b.Value(f.in), b.Value(f.outs[0])
	reduced := make([]bool, len(x.Sizes))
	if len(reduced) > 0 {
		reduced[f.dim] = true
	}
	if y.Numel() == 0 {
		return []any{uint32(0), uint32(0), uint32(0), uint32(0)}
	}
	const vector = 4 // of every type
	c := configure(axesOf(x, y, reduced, f.keep), x.DType.Size(), vector, alignment(x), processorOf(b.Recording))
	width, loads := int64(0), int64(0)
	if c.inMult[0] != 0 {
		width = c.width
	}
	if c.vectorInput {
		loads = c.inVector
	}
	return []any{uint32(width), uint32(loads), uint32(c.inMult[2]), uint32(c.ctas)}
}
