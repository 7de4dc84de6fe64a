package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// operands reads self and other of a binary operation and the type that it computes in. other is -1 if it is a Python
// number, which is then in value.
func operands(b *Builder, op *recording.Operation) (self, other int, value any, common tensor.DType, err error) {
	if self, err = ValueArg(op, "self"); err != nil {
		return
	}
	out, err := Result(op, 0)
	if err != nil {
		return
	}
	common = b.Value(out).DType
	a, ok := op.Arg("other")
	if !ok || a.Kind != recording.ValueOf {
		other = -1
		value, err = scalar(op, "other")
		return
	}
	other = a.Value
	if classOf(op.Name) == InPlace { // the result's type is self's, whatever is computed in
		common = promote(b.Value(self), b.Value(other))
	}
	return
}

// promote is PyTorch's type promotion of two tensors: a tensor without dimensions gives its type only where the other's
// is of a lesser kind (truth values, integers, floating point).
func promote(a, b *recording.Value) tensor.DType {
	if len(a.Sizes) == 0 && len(b.Sizes) > 0 {
		a, b = b, a
	}
	if len(b.Sizes) == 0 && len(a.Sizes) > 0 && kind(b.DType) <= kind(a.DType) {
		return a.DType
	}
	return promoteTypes(a.DType, b.DType)
}

// promoteNumber is the same of a tensor and a Python number, which counts for its kind only.
func promoteNumber(d tensor.DType, number recording.Kind) tensor.DType {
	switch {
	case number == recording.Real && !d.Float():
		return tensor.Float32 // PyTorch's default
	case number == recording.Integer && d == tensor.Bool:
		return tensor.Int64
	}
	return d
}

func kind(d tensor.DType) int {
	switch {
	case d == tensor.Bool:
		return 0
	case d.Float():
		return 2
	}
	return 1
}

func promoteTypes(a, b tensor.DType) tensor.DType {
	switch {
	case a == b || kind(a) > kind(b):
		return a
	case kind(a) < kind(b):
		return b
	case a == tensor.Uint8 && b == tensor.Int8, a == tensor.Int8 && b == tensor.Uint8:
		return tensor.Int16
	case a == tensor.Float16 && b == tensor.BFloat16, a == tensor.BFloat16 && b == tensor.Float16:
		return tensor.Float32
	}
	return max(a, b) // types of a kind are numbered by what they can hold
}

// register makes names of one lowering: a function and its in-place form.
func register(lower Lower, names ...string) {
	for _, name := range names {
		Register(Registration{Name: name, Class: classOf(name), Lower: lower})
	}
}
