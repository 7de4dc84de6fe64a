package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() {
	register(lowerTruths("all"), "aten::all.dim")
	register(lowerTruths("any"), "aten::any.dim")
}

func lowerTruths(entry string) Lower {
	return func(b *Builder, op *recording.Operation) error {
		f, err := readFold(b, op, 1)
		if err != nil {
			return err
		}
		if y := b.Value(f.outs[0]); y.DType != tensor.Bool && y.DType != tensor.Uint8 {
			return Refuse(op, "results[0]", "a result of %s", y.DType)
		}
		return f.emit(b, op, "all", entry)
	}
}
