package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() {
	register(lowerDivMode, "aten::div.Tensor_mode", "aten::div_.Tensor_mode", "aten::div.Scalar_mode", "aten::div_.Scalar_mode")
}

// lowerDivMode divides and rounds towards zero or minus infinity. By a number, floating-point types multiply with its
// reciprocal, which here is that of the number in the type that is computed in.
func lowerDivMode(b *Builder, op *recording.Operation) error {
	if a, ok := op.Arg("rounding_mode"); ok && a.Kind == recording.None {
		return lowerDiv(b, op)
	}
	mode, err := textArg(op, "rounding_mode")
	if err != nil {
		return err
	}
	if mode != "floor" && mode != "trunc" {
		return Refuse(op, argumentPath(op, "rounding_mode"), "rounding mode %q is not done", mode)
	}
	self, other, value, common, err := operands(b, op)
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	e := elementwise{file: "div_mode", entry: "div_" + mode, pair: true, out: out, inputs: []int{self, other}, common: common,
		also: []tensor.DType{tensor.Int64, tensor.Int32, tensor.Uint8}}
	if other >= 0 {
		return e.emit(b, op)
	}
	if !common.Float() {
		return Refuse(op, argumentPath(op, "other"), "%s divided by a number is not done", common)
	}
	divisor := realOf(value)
	if common != tensor.Float64 {
		divisor = float64(float32(divisor))
	}
	inverse := 1 / divisor
	if common != tensor.Float64 {
		inverse = float64(float32(inverse))
	}
	e.entry, e.inputs, e.parameters = e.entry+"_number", []int{self}, []any{inverse}
	if mode == "floor" {
		if divisor == 0 { // PyTorch divides as if no mode were given
			return lowerDiv(b, op)
		}
		e.parameters = []any{divisor, inverse}
	}
	return e.emit(b, op)
}
