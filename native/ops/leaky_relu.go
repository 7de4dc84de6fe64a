package ops

import "samebits/bridge/recording"

func init() {
	register(func(b *Builder, op *recording.Operation) error {
		slope, err := number(op, "negative_slope")
		if err != nil {
			return err
		}
		return lowerUnary(b, op, elementwise{file: "leaky_relu", entry: "leaky_relu", parameters: []any{slope}})
	}, "aten::leaky_relu", "aten::leaky_relu_")
}
