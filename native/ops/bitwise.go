package ops

import "samebits/bridge/recording"

func init() {
	for _, name := range []string{"bitwise_and", "bitwise_or"} {
		register(func(b *Builder, op *recording.Operation) error {
			return lowerPair(b, op, elementwise{file: "bitwise", entry: name, pair: true, also: integers})
		}, "aten::"+name+".Tensor", "aten::"+name+"_.Tensor")
	}
	register(func(b *Builder, op *recording.Operation) error {
		return lowerUnary(b, op, elementwise{file: "bitwise", entry: "bitwise_not", also: integers})
	}, "aten::bitwise_not", "aten::bitwise_not_")
}
