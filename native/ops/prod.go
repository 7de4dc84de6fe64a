package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() { register(lowerProd, "aten::prod.dim_int") }

// lowerProd does integers, whose product does not depend on the order of its factors.
func lowerProd(b *Builder, op *recording.Operation) error {
	f, err := readFold(b, op, 1)
	if err != nil {
		return err
	}
	x, y := b.Value(f.in), b.Value(f.outs[0])
	if x.DType.Float() || y.DType != tensor.Int64 {
		return Refuse(op, "results[0]", "the product of %s in %s; integers and int64 are done", x.DType, y.DType)
	}
	return f.emit(b, op, "prod", "prod")
}
