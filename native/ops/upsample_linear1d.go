package ops

import (
	"samebits/bridge/recording"
)

func init() { register(lowerLinear, "aten::upsample_linear1d") }

// lowerLinear does what image encoders ask of it at the size that they were made for: tables of relative positions come
// out as long as they are. PyTorch's kernel moves the bits then.
func lowerLinear(b *Builder, op *recording.Operation) error {
	self, err := ValueArg(op, "self")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	x, y := b.Value(self), b.Value(out)
	if !equalSizes(x.Sizes, y.Sizes) {
		return Refuse(op, "arguments[1]", "%v becomes %v: another length is not implemented", x.Sizes, y.Sizes)
	}
	return lowerCopy(b, op, self)
}
