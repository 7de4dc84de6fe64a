package ops

import "samebits/bridge/recording"

func init() {
	register(func(b *Builder, op *recording.Operation) error {
		e := elementwise{file: "gelu", entry: "gelu"}
		switch how, err := textArg(op, "approximate"); {
		case err != nil:
			return err
		case how == "tanh":
			e.entry = "gelu_tanh"
		case how != "none":
			return Refuse(op, argumentPath(op, "approximate"), "approximation %q is not done", how)
		}
		return lowerUnary(b, op, e)
	}, "aten::gelu", "aten::gelu_")
}
