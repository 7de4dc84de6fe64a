package ops

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/compare"
	"samebits/parity/signature"
	"samebits/parity/values"
)

// What outputs are full of before a step: another byte on either side.
const (
	referencePoison = 0xFF
	nativePoison    = 0xA5
)

// compare runs a batch on both sides and gives a finding to each of its operations, or says what failed.
func (r *run) compare(ctx context.Context, b *batch) []failure {
	for _, s := range []*side{r.reference, r.native} { // one after the other: native is told of PyTorch's environment
		if err := s.ensure(ctx, max(r.room, b.room(false))); err != nil {
			return []failure{{s, err}}
		}
	}
	if failed := r.both(func(s *side) error { return s.load(ctx, b) }); failed != nil {
		return failed
	}
	found := make([]Finding, len(b.ops))
	for _, kind := range r.Kinds {
		if failed := r.kind(ctx, b, kind, found); failed != nil {
			return failed
		}
	}
	for i, o := range b.ops {
		f := &found[i]
		outcome, reason, detail := f.sum(r.gpu())
		done := r.find(o, outcome, reason, detail)
		done.Differences, done.Rounding = f.Differences, f.Rounding
	}
	return nil
}

// kind runs one step on values of one kind and adds what differs to the findings.
func (r *run) kind(ctx context.Context, b *batch, kind values.Kind, found []Finding) []failure {
	b.fill(kind, r.Seed, r.reference.inputs)
	parallel(len(b.inputs), func(i int) { copy(r.native.inputs[i], r.reference.inputs[i]) })
	poisons := map[*side]byte{r.reference: referencePoison, r.native: nativePoison}
	if failed := r.both(func(s *side) error { return s.step(ctx, poisons[s]) }); failed != nil {
		return failed
	}
	differ := make([]bool, len(b.outputs))
	parallel(len(b.outputs), func(i int) { differ[i] = !bytes.Equal(r.reference.outputs[i], r.native.outputs[i]) })
	var which []int
	for i, d := range differ {
		if d {
			which = append(which, i)
		}
	}
	if len(which) == 0 {
		return nil
	}
	noisy, failed := r.again(ctx, b, which)
	if failed != nil {
		return failed
	}
	var exact map[*signature.Operation]measured
	if !r.gpu() {
		var err error
		if exact, err = r.measure(ctx, b, which, kind); err != nil {
			return []failure{{r.double, err}}
		}
	}
	for _, i := range which {
		f := &found[b.outputs[i].op]
		switch {
		case noisy[i]:
			f.noise = true
		case r.gpu():
			f.Differences = append(f.Differences, r.difference(b, i, kind))
		default:
			r.judge(b, i, kind, exact[b.ops[b.outputs[i].op]], f)
		}
	}
	return nil
}

// again runs PyTorch once more on the same inputs: which of the outputs that differ are not even PyTorch's own twice.
func (r *run) again(ctx context.Context, b *batch, which []int) (map[int]bool, []failure) {
	held := map[int][]byte{}
	for _, i := range which {
		held[i] = slices.Clone(r.reference.outputs[i])
	}
	if err := r.reference.step(ctx, referencePoison); err != nil {
		return nil, []failure{{r.reference, err}}
	}
	noisy := map[int]bool{}
	for _, i := range which {
		noisy[i] = !bytes.Equal(held[i], r.reference.outputs[i])
	}
	return noisy, nil
}

// difference describes how an output differs.
func (r *run) difference(b *batch, i int, kind values.Kind) Difference {
	out := &b.outputs[i]
	o := b.ops[out.op]
	d := Difference{Values: kind, Tensor: out.label}
	reference, native := r.reference.outputs[i], r.native.outputs[i]
	v := &o.Alone.Values[out.value]
	sizes := v.Sizes
	if out.memory {
		before := int64(0)
		if out.written {
			before = v.Offset
		}
		if out.spec.DType == v.DType {
			a, b := gather(v, before, reference), gather(v, before, native)
			if bytes.Equal(a, b) { // the tensor itself is right: something was written beside it
				d.Beside, sizes = true, out.spec.Sizes
			} else {
				reference, native = a, b
			}
		} else {
			sizes = out.spec.Sizes
		}
	}
	d.Bits, _ = compare.Bits(out.spec.DType, reference, native) // both have the same length, of whole elements
	if n := d.Bits.FirstIndex; n >= 0 {
		d.At = indexOf(n, sizes)
		d.Reference, d.Native = pattern(out.spec.DType, reference, n), pattern(out.spec.DType, native, n)
		if !d.Beside {
			d.Operands = r.operands(b, out.op, o, d.At, sizes)
		}
	}
	return d
}

// operands gives what lies at an index in the arguments that have such an index, broadcast.
func (r *run) operands(b *batch, op int, o *signature.Operation, at, sizes []int64) []Element {
	var found []Element
	args := o.Op().Arguments
	for i := range args {
		for _, value := range recording.Values(args[i:i+1], nil) {
			v := &o.Alone.Values[value]
			where, ok := broadcast(v.Sizes, v.Strides, at, sizes)
			data := r.storageOf(b, op, v.Storage)
			if !ok || data == nil || len(found) == mostOperands {
				continue
			}
			found = append(found, Element{args[i].Name, pattern(v.DType, data[v.Offset*v.DType.Size():], where)})
		}
	}
	return found
}

const mostOperands = 8

// broadcast gives the distance from a tensor's first element to the one that an index of a larger tensor meets.
func broadcast(sizes, strides, at, of []int64) (int64, bool) {
	if len(sizes) > len(of) {
		return 0, false
	}
	skip, where := len(of)-len(sizes), int64(0)
	for d, n := range sizes {
		switch {
		case n == of[skip+d]:
			where += at[skip+d] * strides[d]
		case n != 1:
			return 0, false
		}
	}
	return where, true
}

// pattern shows the bits of an element and the number they stand for.
func pattern(d tensor.DType, data []byte, i int64) string {
	size := d.Size()
	if (i+1)*size > int64(len(data)) {
		return ""
	}
	raw := slices.Clone(data[i*size : (i+1)*size])
	slices.Reverse(raw)
	return fmt.Sprintf("0x%x (%s)", raw, compare.Text(d, data, i))
}
