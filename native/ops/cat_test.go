package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

// catCase is the inputs of a concatenation; strides nil are contiguous.
type catCase struct {
	name     string
	dim      int64
	inputs   []operand
	result   operand
	types    []tensor.DType // of the inputs; default: the result's
	launches int
}

var catCases = []catCase{
	{name: "channels of one image", dim: 1, inputs: []operand{run(1, 3, 4, 5), run(1, 2, 4, 5)}, result: run(1, 5, 4, 5), launches: 1},
	{name: "channels of four images", dim: 1, inputs: []operand{run(4, 3, 4, 5), run(4, 2, 4, 5), run(4, 1, 4, 5)}, result: run(4, 6, 4, 5), launches: 1},
	{name: "slices of a split", dim: 1, result: run(2, 12, 8, 8), launches: 1,
		inputs: []operand{{[]int64{2, 4, 8, 8}, []int64{512, 64, 8, 1}, 0}, {[]int64{2, 4, 8, 8}, []int64{512, 64, 8, 1}, 256}, run(2, 4, 8, 8)}},
	{name: "last dimension", dim: -1, inputs: []operand{run(3, 5), run(3, 2), run(3, 9)}, result: run(3, 16), launches: 1},
	{name: "first dimension", dim: 0, inputs: []operand{run(3, 5), run(1, 5)}, result: run(4, 5), launches: 1},
	{name: "empty inputs pass", dim: 1, inputs: []operand{run(0), run(2, 3), run(2, 0)}, result: run(2, 3), launches: 1},
	{name: "nothing at all", dim: 0, inputs: []operand{run(0)}, result: run(0), launches: 0},
	{name: "transposed inputs", dim: 1, result: run(1, 4, 84), launches: 2,
		inputs: []operand{{[]int64{1, 2, 84}, []int64{2, 1, 2}, 0}, {[]int64{1, 2, 84}, []int64{2, 1, 2}, 0}}},
	{name: "channels last", dim: 1, result: operand{[]int64{2, 5, 4, 3}, []int64{60, 1, 15, 5}, 0}, launches: 1,
		inputs: []operand{{[]int64{2, 2, 4, 3}, []int64{24, 1, 6, 2}, 0}, {[]int64{2, 3, 4, 3}, []int64{36, 1, 9, 3}, 0}}},
	{name: "twenty inputs", dim: 0, result: run(20, 7), launches: 3, inputs: many(20, run(1, 7))},
	{name: "mixed types", dim: 0, result: run(6, 4), launches: 3, inputs: many(3, run(2, 4)),
		types: []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Int64}},
}

func many(n int, o operand) []operand {
	list := make([]operand, n)
	for i := range list {
		list[i] = o
	}
	return list
}

func TestCat(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float64, tensor.Uint8} {
		for _, c := range catCases {
			if c.types != nil && dtype != tensor.Float32 {
				continue
			}
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				var inputs []int
				for i, o := range c.inputs {
					from := dtype
					if c.types != nil {
						from = c.types[i]
					}
					x := o.in(b, from)
					for k, e := range b.element(x) {
						putBits(e, encode(from, float64(10*i+k%10)))
					}
					inputs = append(inputs, x)
				}
				out := c.result.in(b, dtype)
				expected := concatenated(b, inputs, out, c.dim)
				op := operation("aten::cat", args("tensors", inputs, "dim", c.dim), results(out))
				commands, err := b.lower(op)
				if err != nil {
					t.Fatal(err)
				}
				if len(commands) != c.launches && c.types == nil {
					t.Errorf("%d launches, want %d", len(commands), c.launches)
				}
				b.run(op)
				expectBits(t, dtype, b.bits(out), expected, 0)
			})
		}
	}
}

// concatenated walks the result in logical order and takes each element from the input that its index falls into.
func concatenated(b *bench, inputs []int, out int, dim int64) []uint64 {
	sizes := b.recording.Values[out].Sizes
	if dim < 0 {
		dim += int64(len(sizes))
	}
	contents := make([][]float64, len(inputs))
	for i, x := range inputs {
		contents[i] = b.floats(x)
	}
	var list []uint64
	index := make([]int64, len(sizes))
	for range tensor.Numel(sizes) {
		rest := index[dim]
		for i, x := range inputs {
			v := &b.recording.Values[x]
			if v.Numel() == 0 {
				continue
			}
			if rest >= v.Sizes[dim] {
				rest -= v.Sizes[dim]
				continue
			}
			at := int64(0)
			for d := range sizes {
				k := index[d]
				if int64(d) == dim {
					k = rest
				}
				at = at*v.Sizes[d] + k
			}
			list = append(list, encode(b.recording.Values[out].DType, contents[i][at]))
			break
		}
		for d := len(sizes) - 1; d >= 0; d-- {
			if index[d]++; index[d] < sizes[d] {
				break
			}
			index[d] = 0
		}
	}
	return list
}

// Rows of every alignment, so that every width of words is used.
func TestCatOddRows(t *testing.T) {
	for width := int64(1); width <= 40; width++ {
		b := newBench(t)
		x := b.tensorAt(tensor.Uint8, []int64{5, width}, []int64{width + width%3*8, 1}, width%2)
		y := b.tensor(tensor.Uint8, []int64{5, 16}, nil)
		for _, v := range []int{x, y} {
			for k, e := range b.element(v) {
				e[0] = byte(k + 3)
			}
		}
		out := b.tensor(tensor.Uint8, []int64{5, width + 16}, nil)
		expected := concatenated(b, []int{x, y}, out, 1)
		b.run(operation("aten::cat", args("tensors", []int{x, y}, "dim", int64(1)), results(out)))
		expectBits(t, tensor.Uint8, b.bits(out), expected, 0)
	}
}

func TestStack(t *testing.T) {
	for dim := int64(-3); dim < 3; dim++ {
		b := newBench(t)
		x, y := b.tensor(tensor.BFloat16, []int64{4, 6}, nil), b.tensor(tensor.BFloat16, []int64{4, 6}, []int64{1, 4})
		for i, v := range []int{x, y} {
			for k, e := range b.element(v) {
				putBits(e, uint64(100*i+k))
			}
		}
		at := (dim + 3) % 3
		out := b.tensor(tensor.BFloat16, insert([]int64{4, 6}, int(at), 2), nil)
		unsqueezed := func(v int) int {
			o := b.recording.Values[v]
			return b.view(v, insert(o.Sizes, int(at), 1), insert(o.Strides, int(at), 0), 0)
		}
		expected := concatenated(b, []int{unsqueezed(x), unsqueezed(y)}, out, at)
		b.run(operation("aten::stack", args("tensors", []int{x, y}, "dim", dim), results(out)))
		expectBits(t, tensor.BFloat16, b.bits(out), expected, 0)
	}
}

func TestCatRefusals(t *testing.T) {
	b := newBench(t)
	x, wide := b.tensor(tensor.Float32, []int64{2, 3}, nil), b.tensor(tensor.Float32, []int64{2, 4}, nil)
	out := b.tensor(tensor.Float32, []int64{4, 3}, nil)
	expectRefusal(t, b, operation("aten::cat", args("tensors", []int{x, wide}, "dim", int64(0)), results(out)), "arguments[0].list[1]")
	expectRefusal(t, b, operation("aten::cat", args("tensors", []int{x, x, x}, "dim", int64(0)), results(out)), "arguments[0].list[2]")
	expectRefusal(t, b, operation("aten::cat", args("tensors", []int{x}, "dim", int64(0)), results(out)), "results[0]")
	expectRefusal(t, b, operation("aten::cat", args("tensors", []int{x, x}, "dim", int64(2)), results(out)), "arguments[1]")
}
