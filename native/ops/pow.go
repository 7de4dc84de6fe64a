package ops

import "samebits/bridge/recording"

func init() {
	register(lowerPow, "aten::pow.Tensor_Scalar", "aten::pow_.Scalar")
	register(func(b *Builder, op *recording.Operation) error {
		base, err := number(op, "self")
		if err != nil {
			return err
		}
		if base == 1 {
			return lowerFill(b, op, base)
		}
		exponent, err := ValueArg(op, "exponent")
		if err != nil {
			return err
		}
		out, err := Result(op, 0)
		if err != nil {
			return err
		}
		e := elementwise{file: "pow", entry: "number_pow", out: out, inputs: []int{exponent}, common: b.Value(out).DType, parameters: []any{base}}
		return e.emit(b, op)
	}, "aten::pow.Scalar")
}

// lowerPow takes the way that PyTorch takes for an exponent: some are other operations, some a few products.
func lowerPow(b *Builder, op *recording.Operation) error {
	exponent, err := number(op, "exponent")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	// These are asked of the number as it is, the rest of the number as an element of the tensor has it.
	switch exponent {
	case 0.5:
		return lowerUnary(b, op, elementwise{file: "sqrt", entry: "sqrt"})
	case -0.5:
		return lowerRsqrt(b, op)
	case -1:
		return lowerUnary(b, op, elementwise{file: "reciprocal", entry: "reciprocal"})
	case 0:
		return lowerFill(b, op, 1.0)
	case 1:
		self, err := ValueArg(op, "self")
		if err != nil {
			return err
		}
		return lowerCopy(b, op, self)
	}
	e := elementwise{file: "pow"}
	switch roundNumber(b.Value(out).DType, exponent) {
	case 2:
		e.entry = "pow_2"
	case 3:
		e.entry = "pow_3"
	case -2:
		e.entry = "pow_minus_2"
	default:
		e.entry, e.parameters = "pow_number", []any{exponent}
	}
	return lowerUnary(b, op, e)
}
