package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() { register(lowerConstantPad, "aten::constant_pad_nd") }

func lowerConstantPad(b *Builder, op *recording.Operation) error {
	p, err := readPadding(b, op, "pad")
	if err != nil {
		return err
	}
	value, err := scalar(op, "value")
	if err != nil {
		return err
	}
	if tensor.Numel(p.to.Sizes) == 0 {
		return nil
	}
	if tensor.Numel(p.from.Sizes) == 0 { // the input is nowhere, and nothing is read from it
		p.from.Pointer = p.to.Pointer
	}
	bits, err := elementBits(p.to.DType, value)
	if err != nil {
		return Refuse(op, argumentPath(op, "value"), "%v", err)
	}
	return p.emit(b, op, "constant_pad_nd", bits)
}
