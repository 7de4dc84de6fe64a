package ops

import (
	"samebits/bridge/recording"
)

func init() { register(lowerIm2col, "aten::im2col") }

func lowerIm2col(b *Builder, op *recording.Operation) error {
	self, out, err := selfAndResult(op)
	if err != nil {
		return err
	}
	in, err := planeOf(op, b.Value(self), argumentPath(op, "self"))
	if err != nil {
		return err
	}
	w, err := windowOf(op)
	if err != nil {
		return err
	}
	y := b.Value(out)
	sizes, strides := y.Sizes, y.Strides
	if len(b.Value(self).Sizes) == 3 {
		sizes, strides = insert(sizes, 0, 1), insert(strides, 0, 0)
	}
	var steps [2]int64 // of the window over rows and columns
	for i := range steps {
		reach := int64(w.dilation[i])*int64(w.kernel[i]-1) + 1
		steps[i] = (in.sizes[2+i]+2*int64(w.padding[i])-reach)/int64(w.stride[i]) + 1
	}
	kh, kw := int64(w.kernel[0]), int64(w.kernel[1])
	if !equalSizes(sizes, []int64{in.sizes[0], in.sizes[1] * kh * kw, steps[0] * steps[1]}) || b.Value(self).DType != y.DType {
		return Refuse(op, "results[0]", "%s of %v does not come from %s of %v", y.DType, y.Sizes, b.Value(self).DType, b.Value(self).Sizes)
	}
	if y.Numel() == 0 {
		return nil
	}
	row, column := in.strides[2], in.strides[3]
	s := space{
		sizes: []int64{steps[1], steps[0], kw, kh, in.sizes[1], in.sizes[0]},
		strides: [][]int64{
			{strides[2], strides[2] * steps[1], strides[1], strides[1] * kw, strides[1] * kw * kh, strides[0]},
			{column * int64(w.stride[1]), row * int64(w.stride[0]), column * int64(w.dilation[1]), row * int64(w.dilation[0]), in.strides[1], in.strides[0]},
		},
	}
	if err := s.check(op); err != nil {
		return err
	}
	args := append(append(s.args(), b.Pointer(out)), s.steps(0)...)
	args = append(append(args, b.Pointer(self)), s.steps(1)...)
	args = append(args, int32(in.sizes[2]), int32(in.sizes[3]), w.stride[0], w.stride[1], w.padding[0], w.padding[1],
		w.dilation[0], w.dilation[1], row*int64(w.padding[0])+column*int64(w.padding[1]))
	b.launch("im2col", bitsEntry("im2col", y.DType), s.numel(), args)
	return nil
}
