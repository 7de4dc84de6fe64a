package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func init() { register(lowerRoll, "aten::roll") }

func lowerRoll(b *Builder, op *recording.Operation) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	shifts, err := IntsArg(op, "shifts")
	if err != nil {
		return err
	}
	dims, err := IntsArg(op, "dims")
	if err != nil {
		return err
	}
	from, to := b.Tensor(self), b.Tensor(out)
	if !equalSizes(from.Sizes, to.Sizes) || from.DType != to.DType {
		return Refuse(op, "results[0]", "%s of %v does not come from %s of %v", to.DType, to.Sizes, from.DType, from.Sizes)
	}
	numel := tensor.Numel(to.Sizes)
	if numel == 0 {
		return nil
	}
	if len(dims) == 0 && len(shifts) == 1 { // all elements as one line
		if !b.Value(out).Contiguous() {
			return Refuse(op, "results[0]", "a line of strides %v", to.Strides)
		}
		if from, err = dense(b, op, from, false); err != nil {
			return err
		}
		from.Sizes, from.Strides, dims = []int64{numel}, []int64{1}, []int64{0}
		to.Sizes, to.Strides = from.Sizes, from.Strides
	}
	if len(shifts) != len(dims) {
		return Refuse(op, argumentPath(op, "shifts"), "shifts %v of dimensions %v", shifts, dims)
	}
	lags, rolled := make([]int64, len(to.Sizes)), make([]bool, len(to.Sizes))
	for i, d := range dims {
		if d < 0 {
			d += int64(len(to.Sizes))
		}
		if d < 0 || d >= int64(len(to.Sizes)) {
			return Refuse(op, argumentPath(op, "dims"), "dimensions %v of %d", dims, len(to.Sizes))
		}
		size := to.Sizes[d]
		lags[d] = ((lags[d]-shifts[i])%size + size) % size
		rolled[d] = lags[d] != 0
	}
	s, original := collapseApart(to.Sizes, rolled, to.Strides, from.Strides)
	if err := s.check(op); err != nil {
		return err
	}
	args := append(append(s.args(), to.Pointer), s.steps(0)...)
	args = append(append(args, from.Pointer), s.steps(1)...)
	for d := range maxDims {
		lag := int64(0)
		if d < len(original) && original[d] >= 0 {
			lag = lags[original[d]]
		}
		args = append(args, uint32(lag))
	}
	b.launch("roll", bitsEntry("roll", to.DType), s.items(to.DType), args)
	return nil
}
