package ops

import "samebits/bridge/recording"

func init() { register(lowerRsqrt, "aten::rsqrt", "aten::rsqrt_") }

func lowerRsqrt(b *Builder, op *recording.Operation) error {
	return lowerUnary(b, op, elementwise{file: "rsqrt", entry: "reciprocal_root"})
}
