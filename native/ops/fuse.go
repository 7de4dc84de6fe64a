package ops

import (
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// This file is what lets one kernel do two operations: a producer, whose registration has Fuses, and the activation that
// is all that reads its result. Between the two the kernel rounds to the result's type, so the bits are those of two
// kernels. Package plan finds the pairs (plan/fuse.go); the producer's lowering is then given the activation in
// Builder.Then, and finds the activation's result in the place of its own.

// activation is an element-wise function that kernels/NAME.cu has an entry for, and its numbers.
type activation struct {
	name string
	p, q float32
}

// activations are the operations that may follow in a producer's kernel. Each reads its numbers or says that it has none
// that a kernel can take.
var activations = map[string]func(op *recording.Operation) (activation, bool){}

func init() {
	add := func(read func(op *recording.Operation) (activation, bool), names ...string) {
		for _, name := range names {
			activations["aten::"+name], activations["aten::"+name+"_"] = read, read
		}
	}
	for _, name := range []string{"relu", "silu", "sigmoid", "hardsigmoid", "hardswish"} {
		add(func(*recording.Operation) (activation, bool) { return activation{name: name}, true }, name)
	}
	add(func(op *recording.Operation) (activation, bool) {
		how, err := textArg(op, "approximate")
		return activation{name: "gelu"}, err == nil && how == "none"
	}, "gelu")
	add(func(op *recording.Operation) (activation, bool) {
		slope, err := number(op, "negative_slope")
		return activation{name: "leaky_relu", p: float32(slope)}, err == nil
	}, "leaky_relu")
	between := func(low, high string) func(op *recording.Operation) (activation, bool) {
		return func(op *recording.Operation) (activation, bool) {
			limits, fill, err := readLimits(op, tensor.Float32, low, high)
			if err != nil || fill {
				return activation{}, false
			}
			return activation{name: "clamp", p: float32(realOf(limits[0])), q: float32(realOf(limits[1]))}, true
		}
	}
	add(between("min", "max"), "clamp")
	add(between("min", ""), "clamp_min")
	add(between("", "max"), "clamp_max")
	add(between("min_val", "max_val"), "hardtanh")
}

// Fusible reports whether the kernel of one operation can also do the next one, which reads its result: an activation of
// the same type and layout.
func Fusible(b *Builder, producer, next *recording.Operation) bool {
	known, ok := Lookup(producer.Name)
	if !ok || known.Fuses == nil || !known.Fuses(b, producer) {
		return false
	}
	read, ok := activations[next.Name]
	if !ok {
		return false
	}
	if _, ok := read(next); !ok {
		return false
	}
	from, err := Result(producer, 0)
	if err != nil {
		return false
	}
	self, err := ValueArg(next, "self")
	if err != nil || self != from || len(recording.Values(next.Arguments, nil)) != 1 {
		return false
	}
	to, err := Result(next, 0)
	if err != nil || len(recording.Values(next.Results, nil)) != 1 {
		return false
	}
	v, r := b.Value(from), b.Value(to)
	return v.DType == r.DType && slices.Equal(v.Sizes, r.Sizes) && slices.Equal(v.Strides, r.Strides)
}

// then gives the activation that the operation's kernel is to do too, once: a lowering that does not ask has forgotten it.
func (b *Builder) then() (activation, bool) {
	if b.Then == nil {
		return activation{}, false
	}
	a, ok := activations[b.Then.Name](b.Then)
	b.Then = nil
	return a, ok
}
