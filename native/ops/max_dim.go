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
		return f.emit(b, op, "max_dim", entry)
	}
}
