package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

// Gradients are gathered in the order of windows, row by row.
func TestMaxPoolBackward(t *testing.T) {
	cases := append([]pooling{
		{"resnet", run(2, 3, 12, 14), []int64{3, 3}, []int64{2, 2}, []int64{1, 1}, []int64{1, 1}, false},
		{"overlapping", run(1, 2, 9, 10), []int64{5, 5}, []int64{1, 1}, []int64{2, 2}, []int64{1, 1}, false},
		{"dilated", run(2, 3, 11, 13), []int64{3, 2}, []int64{1, 2}, []int64{1, 1}, []int64{2, 3}, false},
	}, poolings...)
	for _, dtype := range floatTypes {
		for _, p := range cases {
			t.Run(dtype.String()+" "+p.name, func(t *testing.T) {
				b := newBench(t)
				x := p.input.in(b, dtype)
				b.setFloats(x, []float64{1, 2, 2, 0, -1, 2, 7, 3.5})
				y, index, grad := p.like(p.shape()).in(b, dtype), p.like(p.shape()).in(b, tensor.Int64), p.like(p.shape()).in(b, dtype)
				dx := p.input.in(b, dtype)
				state := uint64(12)
				b.setFloats(grad, randoms(&state, 5000))
				b.run(operation("aten::max_pool2d_with_indices", p.maxArgs(x), results(y, index)))
				op := operation("aten::max_pool2d_with_indices_backward", append(args("grad_output", grad), append(p.maxArgs(x),
					args("indices", index)...)...), results(dx))
				if channelsLast(&b.recording.Values[x]) {
					if _, err := b.lower(op); err == nil {
						t.Fatal("channels-last was not refused")
					}
					return
				}
				b.run(op)
				sizes, out := b.recording.Values[x].Sizes, b.recording.Values[grad].Sizes
				plane, windows := int(tensor.Numel(sizes[len(sizes)-2:])), int(tensor.Numel(out[len(out)-2:]))
				places, gradients := b.bits(index), b.floats(grad)
				sums := make([]float64, tensor.Numel(sizes))
				for i, at := range places {
					to := i/windows*plane + int(at)
					if dtype == tensor.Float64 {
						sums[to] += gradients[i]
					} else {
						sums[to] = float64(float32(sums[to]) + float32(gradients[i]))
					}
				}
				want := make([]uint64, len(sums))
				for i, v := range sums {
					want[i] = encode(dtype, v)
				}
				expectBits(t, dtype, b.bits(dx), want, 0)
			})
		}
	}
}
