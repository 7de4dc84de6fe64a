package ops

import (
	"fmt"
	"math/bits"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/compare"
	"samebits/parity/gate"
	"samebits/parity/signature"
	"samebits/parity/values"
)

// demand is what can be asked of an operation on the device host, where other code than CUDA's does PyTorch's part.
type demand uint8

const (
	// bounded: an error is measured against double precision, as verify does.
	bounded demand = iota
	// sameValues: numbers are chosen; which of two zeros, and which NaN, is the processor's affair.
	sameValues
	// sameNumbers: each element is rounded once, or not at all; which NaN comes out is the processor's affair.
	sameNumbers
	// sameBits: bits are moved.
	sameBits
)

// demands of operations by name without overload. What is not named, and all that gives whole numbers, see demandOf.
var demands = func() map[string]demand {
	all := map[string]demand{}
	for d, names := range map[demand][]string{
		sameBits: {"clone", "cat", "stack", "constant_pad_nd", "replication_pad2d", "reflection_pad2d", "roll", "flip", "repeat", "index",
			"index_select", "embedding", "where", "masked_fill", "masked_fill_", "fill", "fill_", "full", "zeros", "ones",
			"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "scalar_tensor", "pixel_shuffle", "pixel_unshuffle",
			"channel_shuffle", "im2col", "upsample_nearest2d", "tril", "triu", "unfold_copy"},
		sameNumbers: {"_to_copy", "copy_", "gather", "neg", "neg_", "abs", "abs_", "mul", "mul_", "leaky_relu", "leaky_relu_"},
		sameValues: {"relu", "relu_", "hardtanh", "hardtanh_", "clamp", "clamp_", "clamp_min", "clamp_min_", "clamp_max", "clamp_max_",
			"maximum", "minimum", "threshold_backward", "max_pool2d_with_indices", "max", "min", "amax", "amin", "topk", "sort"},
	} {
		for _, name := range names {
			all["aten::"+name] = d
		}
	}
	return all
}()

// demandOf gives what is demanded of a result. What moves elements and turns them into another type on the way converts them.
func demandOf(r *recording.Recording, op *recording.Operation, d tensor.DType) demand {
	demanded := demands[signature.Base(op.Name)]
	if demanded == bounded && !d.Float() {
		return sameNumbers
	}
	for _, v := range recording.Values(op.Arguments, nil) {
		if from := r.Values[v].DType; demanded == sameBits && d.Float() && from.Float() && from != d {
			return sameNumbers
		}
	}
	return demanded
}

// judge holds an output that differs to what can be asked of it on the device host.
func (r *run) judge(b *batch, i int, kind values.Kind, exact measured, f *Finding) {
	out := &b.outputs[i]
	o := b.ops[out.op]
	d, reference, native := out.spec.DType, r.reference.outputs[i], r.native.outputs[i]
	switch demanded := demandOf(o.Alone, o.Op(), d); {
	case demanded == sameNumbers && compare.EqualNumbers(d, reference, native),
		demanded == sameValues && compare.EqualValues(d, reference, native):
		f.otherNaN = true
		return
	case demanded == sameValues && out.number > 0 && r.sameChoice(b, i):
		f.otherTie = true
		return
	case demanded != bounded:
		f.Differences = append(f.Differences, r.difference(b, i, kind))
		return
	}
	if exact.problem != nil {
		f.unmeasured = exact.problem
		return
	}
	base := compare.Typed{DType: tensor.Float64, Data: exact.outputs[out.nth]}
	rounding := Rounding{Values: kind, Tensor: out.label, Limit: gate.RoundingLimit, Floor: floor(o.Alone, o.Op(), d)}
	var err error
	if rounding.Reference, err = compare.Against(base, compare.Typed{DType: d, Data: reference}); err == nil {
		rounding.Native, err = compare.Against(base, compare.Typed{DType: d, Data: native})
	}
	if err != nil || !within(o.Op(), kind, rounding) {
		difference := r.difference(b, i, kind)
		difference.Rounding = &rounding
		f.Differences = append(f.Differences, difference)
		return
	}
	f.Rounding = append(f.Rounding, rounding)
}

// floor is the error that PyTorch is taken to have at least: half a ULP of the result, and where many elements are put
// together one of float32 for each level of a tree over the largest argument. The CPU sums in wider registers, or in more of
// them, than native does in CUDA's order.
func floor(r *recording.Recording, op *recording.Operation, result tensor.DType) float64 {
	half := compare.Roundoff(result)
	if pointwise[signature.Base(op.Name)] {
		return half
	}
	most := int64(1)
	for _, v := range recording.Values(op.Arguments, nil) {
		most = max(most, r.Values[v].Numel())
	}
	return half + min(compare.Roundoff(tensor.Float32), half)*float64(bits.Len64(uint64(most)))
}

// pointwise operations compute each element from one element of each argument: what of them overflows does not depend on an order.
var pointwise = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range []string{"add", "sub", "rsub", "div", "reciprocal", "sqrt", "rsqrt", "pow", "exp", "log", "log1p", "sin", "cos", "tanh", "erf",
		"sigmoid", "silu", "gelu", "mish", "softplus", "elu", "hardswish", "hardsigmoid", "addcmul", "lerp", "atan2"} {
		all["aten::"+name], all["aten::"+name+"_"] = true, true
	}
	return all
}()

// within holds native's error to PyTorch's. Where many elements are put together, the order decides what overflows and
// whether an infinity or a NaN comes of it, so among edges only errors of numbers count there.
func within(op *recording.Operation, kind values.Kind, r Rounding) bool {
	native := r.Native
	if kind != values.Ordinary && !pointwise[signature.Base(op.Name)] {
		native.Lost = 0
	}
	return native.Within(r.Reference, r.Limit, r.Floor)
}

// sum makes one outcome of what was found with all values.
func (f *Finding) sum(gpu bool) (outcome Outcome, reason, detail string) {
	switch {
	case len(f.Differences) > 0:
		return Differs, "NATIVE_DIFFERS", f.Differences[0].String()
	case f.noise:
		return Skipped, "EAGER_NOISE", "PyTorch gives other bits the second time"
	case f.unmeasured != nil:
		return Skipped, f.unmeasured.Reason, "in double precision, PyTorch: " + f.unmeasured.Summary
	case gpu, len(f.Rounding) == 0 && !f.otherNaN && !f.otherTie:
		return Exact, "", ""
	case len(f.Rounding) > 0:
		worst := 0.0
		for _, x := range f.Rounding {
			if base := max(x.Reference.Max, x.Floor); base > 0 {
				worst = max(worst, x.Native.Max/base)
			}
		}
		return Consistent, "ROUNDING", fmt.Sprintf("against double precision, native's error is at most %.2f times PyTorch's", worst)
	case f.otherTie:
		return Consistent, "OTHER_TIE", "among equal elements native chooses another one"
	}
	return Consistent, "OTHER_NAN", "the numbers are the same; NaNs, or the signs of zeros, are not"
}
