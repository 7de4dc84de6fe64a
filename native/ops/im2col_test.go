package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestIm2col(t *testing.T) {
	for _, dtype := range movedTypes {
		for _, c := range []struct {
			name                              string
			self                              operand
			kernel, dilation, padding, stride []int64
		}{
			{"3x3", run(1, 1, 12, 12), []int64{3, 3}, []int64{1, 1}, []int64{0, 0}, []int64{1, 1}},
			{"padded", run(2, 3, 6, 5), []int64{3, 2}, []int64{1, 1}, []int64{1, 2}, []int64{1, 1}},
			{"steps", run(2, 3, 8, 9), []int64{2, 3}, []int64{1, 1}, []int64{0, 0}, []int64{2, 3}},
			{"dilated", run(1, 2, 9, 11), []int64{3, 3}, []int64{2, 3}, []int64{2, 1}, []int64{3, 2}},
			{"without images", run(3, 6, 5), []int64{2, 2}, []int64{1, 1}, []int64{1, 0}, []int64{1, 1}},
			{"channels last", operand{[]int64{2, 3, 6, 5}, []int64{90, 1, 15, 3}, 0}, []int64{2, 2}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}},
		} {
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				x := c.self.in(b, dtype)
				b.number(x)
				n := len(c.self.sizes) - 3
				rest := c.self.sizes[n:]
				var steps [2]int64
				for i := range steps {
					steps[i] = (rest[1+i]+2*c.padding[i]-c.dilation[i]*(c.kernel[i]-1)-1)/c.stride[i] + 1
				}
				area := c.kernel[0] * c.kernel[1]
				out := b.tensor(dtype, append(append([]int64{}, c.self.sizes[:n]...), rest[0]*area, steps[0]*steps[1]), nil)
				b.run(operation("aten::im2col", args("self", x, "kernel_size", c.kernel, "dilation", c.dilation, "padding", c.padding,
					"stride", c.stride), results(out)))
				b.expectPlaces(x, out, 0, func(at []int64) []int64 {
					tap, step := at[n]%area, at[n+1]
					row := step/steps[1]*c.stride[0] + tap/c.kernel[1]*c.dilation[0] - c.padding[0]
					column := step%steps[1]*c.stride[1] + tap%c.kernel[1]*c.dilation[1] - c.padding[1]
					if row < 0 || row >= rest[1] || column < 0 || column >= rest[2] {
						return nil
					}
					return append(append([]int64{}, at[:n]...), at[n]/area, row, column)
				})
			})
		}
	}
}

func TestIm2colRefusals(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Float32, []int64{1, 1, 8, 8}, nil), b.tensor(tensor.Float32, []int64{1, 9, 49}, nil)
	op := operation("aten::im2col", args("self", x, "kernel_size", []int64{3, 3}, "dilation", []int64{1, 1}, "padding", []int64{0, 0},
		"stride", []int64{1, 1}), results(out))
	expectRefusal(t, b, op, "results[0]")
}
