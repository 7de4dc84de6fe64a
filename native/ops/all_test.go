package ops

import (
	"fmt"
	"testing"

	"samebits/bridge/tensor"
)

func TestTruths(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Bool, tensor.Uint8, tensor.Int32, tensor.Int64, tensor.Float32, tensor.BFloat16} {
		for _, c := range append(foldShapes, foldShapes[0]) {
			for name, every := range map[string]bool{"all": true, "any": false} {
				t.Run(fmt.Sprintf("%s %s %s", name, dtype, c.name), func(t *testing.T) {
					b := newBench(t)
					x := c.self.in(b, dtype)
					sizes, element, count := foldedSizes(c.self, c.dim, c.keep)
					data := make([]float64, 997)
					for i := range data { // mostly what does not decide; the sign of a zero does not count
						data[i] = 3
						if (int64(i)%(count+1) == 0) == every {
							data[i] = 0
						}
					}
					b.setFloats(x, data)
					out := b.tensor(tensor.Bool, sizes, nil)
					b.run(operation("aten::"+name+".dim", args("self", x, "dim", c.dim, "keepdim", c.keep), results(out)))
					eachIndex(sizes, func(at []int64) {
						want := every
						for i := range count {
							v := decode(dtype, b.at(x, element(at, i))) != 0
							want = every && want && v || !every && (want || v)
						}
						if got := b.at(out, at); got != encode(tensor.Bool, map[bool]float64{true: 1}[want]) {
							t.Errorf("%v: %d, want %v", at, got, want)
						}
					})
				})
			}
		}
	}
}

// Of nothing all are true, and none is.
func TestTruthsOfNothing(t *testing.T) {
	for name, want := range map[string]uint64{"all": 1, "any": 0} {
		b := newBench(t)
		x, out := b.tensor(tensor.Bool, []int64{3, 0}, nil), b.tensor(tensor.Bool, []int64{3}, nil)
		b.run(operation("aten::"+name+".dim", args("self", x, "dim", int64(1), "keepdim", false), results(out)))
		expectBits(t, tensor.Bool, b.bits(out), []uint64{want, want, want}, 0)
	}
}

func TestTruthRefusals(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Bool, []int64{3, 4}, nil), b.tensor(tensor.Int64, []int64{3}, nil)
	expectRefusal(t, b, operation("aten::all.dim", args("self", x, "dim", int64(1), "keepdim", false), results(out)), "results[0]")
}
