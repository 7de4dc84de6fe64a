package ops

import "samebits/bridge/recording"

func init() {
	register(lowerRsub, "aten::rsub.Scalar")
}

// lowerRsub makes other - alpha * self one fused multiply-add.
func lowerRsub(b *Builder, op *recording.Operation) error {
	other, err := scalar(op, "other")
	if err != nil {
		return err
	}
	alpha, err := scalar(op, "alpha")
	if err != nil {
		return err
	}
	return lowerUnary(b, op, elementwise{file: "rsub", entry: "rsub", parameters: []any{other, negative(alpha)}, also: integers})
}
