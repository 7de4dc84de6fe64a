package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestProd(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Int64, tensor.Int32, tensor.Uint8, tensor.Bool} {
		for _, c := range foldShapes {
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				x := c.self.in(b, dtype)
				data := make([]float64, 31)
				for i := range data {
					data[i] = float64(2*i + 1)
					if i%3 == 0 && dtype != tensor.Uint8 {
						data[i] = -data[i]
					}
				}
				b.setFloats(x, data)
				sizes, element, count := foldedSizes(c.self, c.dim, c.keep)
				out := b.tensor(tensor.Int64, sizes, nil)
				b.run(operation("aten::prod.dim_int", args("self", x, "dim", c.dim, "keepdim", c.keep, "dtype", nil), results(out)))
				eachIndex(sizes, func(at []int64) {
					want := int64(1)
					for i := range count {
						want *= int64(decode(dtype, b.at(x, element(at, i))))
					}
					if got := int64(b.at(out, at)); got != want {
						t.Errorf("%v: %d, want %d", at, got, want)
					}
				})
			})
		}
	}
}

func TestProdRefusals(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Float32, []int64{3, 4}, nil), b.tensor(tensor.Float32, []int64{3}, nil)
	expectRefusal(t, b, operation("aten::prod.dim_int", args("self", x, "dim", int64(1), "keepdim", false, "dtype", nil), results(out)), "results[0]")
}
