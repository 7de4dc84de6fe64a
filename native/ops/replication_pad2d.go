package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() { register(lowerReplicationPad, "aten::replication_pad2d") }

func lowerReplicationPad(b *Builder, op *recording.Operation) error {
	p, err := readPadding(b, op, "padding")
	if err != nil {
		return err
	}
	if tensor.Numel(p.to.Sizes) == 0 {
		return nil
	}
	if tensor.Numel(p.from.Sizes) == 0 {
		return Refuse(op, argumentPath(op, "self"), "an empty tensor gives %v", p.to.Sizes)
	}
	return p.emit(b, op, "replication_pad2d")
}
