package ops

import (
	"fmt"
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	constant := func(v int64) Lower {
		return func(b *Builder, op *recording.Operation) error { return lowerFill(b, op, v) }
	}
	argument := func(name string) Lower {
		return func(b *Builder, op *recording.Operation) error {
			v, err := scalar(op, name)
			if err != nil {
				return err
			}
			return lowerFill(b, op, v)
		}
	}
	register(constant(0), "aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::zero_")
	register(constant(1), "aten::ones", "aten::ones_like", "aten::new_ones")
	register(argument("fill_value"), "aten::full", "aten::full_like", "aten::new_full")
	register(argument("value"), "aten::fill_.Scalar")
	register(argument("s"), "aten::scalar_tensor")
	register(func(b *Builder, op *recording.Operation) error {
		value, err := ValueArg(op, "value")
		if err != nil {
			return err
		}
		return lowerCopy(b, op, value)
	}, "aten::fill_.Tensor")
}

// lowerFill gives all elements of the result one value.
func lowerFill(b *Builder, op *recording.Operation, v any) error {
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	y := b.Value(out)
	if y.Numel() == 0 {
		return nil
	}
	bits, err := elementBits(y.DType, v)
	if err != nil {
		return Refuse(op, "results[0]", "%v", err)
	}
	s, size := collapse(y.Sizes, y.Strides), y.DType.Size()
	if bits == 0 && s.dense() {
		b.Emit(&device.Fill{To: b.Pointer(out), Bytes: y.Numel() * size})
		return nil
	}
	if err := s.check(op); err != nil {
		return err
	}
	args := append(append(s.args(), b.Pointer(out)), s.steps(0)...)
	if size == 8 {
		args = append(args, bits)
	} else {
		args = append(args, uint32(bits))
	}
	b.launch("fill", fmt.Sprintf("fill_%d", size), s.items(y.DType), args)
	return nil
}

// elementBits gives the bits of a number, an int64 or a float64, in a type, rounded as PyTorch rounds a Python number.
func elementBits(d tensor.DType, number any) (uint64, error) {
	v := realOf(number)
	if n, ok := number.(int64); ok && d == tensor.Int64 {
		return uint64(n), nil
	}
	switch d {
	case tensor.Float32:
		return uint64(math.Float32bits(float32(v))), nil
	case tensor.Float64:
		return math.Float64bits(v), nil
	case tensor.Int64:
		return uint64(int64(v)), nil
	case tensor.Int32:
		return uint64(uint32(int32(v))), nil
	case tensor.Uint8:
		return uint64(uint8(int64(v))), nil
	case tensor.Bool:
		return uint64(flag(v != 0)), nil
	case tensor.BFloat16:
		return smallBits(float32(v), 7, 127), nil
	case tensor.Float16:
		return smallBits(float32(v), 10, 15), nil
	}
	return 0, fmt.Errorf("no kernels for %s", d)
}

// roundNumber gives a Python number as an element of a floating-point type has it.
func roundNumber(d tensor.DType, v float64) float64 {
	switch d {
	case tensor.Float64:
		return v
	case tensor.BFloat16:
		return float64(math.Float32frombits(uint32(smallBits(float32(v), 7, 127)) << 16))
	case tensor.Float16:
		bits := uint32(smallBits(float32(v), 10, 15))
		if bits&0x7c00 == 0x7c00 {
			return math.Copysign(math.Inf(1), v)
		}
		// The exponent of a float32 counts from 112 less.
		return float64(math.Float32frombits(bits&0x8000<<16|bits&0x7fff<<13)) * 0x1p112
	}
	return float64(float32(v))
}

// realOf gives a number that scalar gave as a float64.
func realOf(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v.(float64)
}

// smallBits rounds to a type with so many bits of mantissa and such an exponent bias, to nearest even.
func smallBits(v float32, mantissa, bias int) uint64 {
	sign, infinity := uint64(0), uint64(2*bias+1)<<mantissa
	f := float64(v)
	if math.Signbit(f) {
		sign, f = 0x8000, -f
	}
	switch {
	case f != f:
		return sign | infinity | 1<<(mantissa-1)
	case math.IsInf(f, 1):
		return sign | infinity
	case f == 0:
		return sign
	}
	_, e := math.Frexp(f)
	e = max(e-1, 1-bias)
	units := uint64(math.RoundToEven(math.Ldexp(f, mantissa-e)))
	// The mantissa's leading one, where there is one, adds 1 to the exponent.
	return sign | min(uint64(e+bias-1)<<mantissa+units, infinity)
}
