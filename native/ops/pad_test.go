package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

// paddings are pairs from the last dimension on.
var paddings = []struct {
	name    string
	self    operand
	padding []int64
}{
	{"nothing", run(2, 3, 5, 8), []int64{0, 0, 0, 0}},
	{"corner", run(1, 3, 8, 8), []int64{1, 0, 1, 0}},
	{"around", run(2, 3, 5, 7), []int64{1, 2, 3, 4}},
	{"rows only", run(2, 4, 5, 16), []int64{0, 0, 3, 1}},
	{"much", run(1, 2, 3, 4), []int64{9, 0, 1, 7}},
	{"cut", run(2, 3, 6, 9), []int64{-2, 3, 1, -3}},
	{"cut to one", run(2, 3, 6, 9), []int64{-8, 0, 2, -7}},
	{"channels last", operand{[]int64{2, 3, 5, 7}, []int64{105, 1, 21, 3}, 0}, []int64{1, 0, 0, 2}},
}

func TestConstantPad(t *testing.T) {
	for _, dtype := range movedTypes {
		for _, c := range paddings {
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				x := c.self.in(b, dtype)
				b.number(x)
				sizes, before := padded(c.self.sizes, c.padding)
				out := b.tensor(dtype, sizes, nil)
				b.run(operation("aten::constant_pad_nd", args("self", x, "pad", c.padding, "value", 5.5), results(out)))
				missing := encode(dtype, 5.5)
				if dtype == tensor.Int64 {
					missing = 5
				}
				b.expectPlaces(x, out, missing, func(at []int64) []int64 {
					place := make([]int64, len(at))
					for d := range at {
						if place[d] = at[d] - before[d]; place[d] < 0 || place[d] >= c.self.sizes[d] {
							return nil
						}
					}
					return place
				})
			})
		}
	}
}

func TestReplicationPad(t *testing.T) {
	for _, dtype := range movedTypes {
		for _, c := range paddings {
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				x := c.self.in(b, dtype)
				b.number(x)
				sizes, before := padded(c.self.sizes, c.padding)
				out := b.tensor(dtype, sizes, nil)
				b.run(operation("aten::replication_pad2d", args("self", x, "padding", c.padding), results(out)))
				b.expectPlaces(x, out, 0, func(at []int64) []int64 {
					place := make([]int64, len(at))
					for d := range at {
						place[d] = min(max(at[d]-before[d], 0), c.self.sizes[d]-1)
					}
					return place
				})
			})
		}
	}
}

// padded gives the sizes of the result and where the input begins in it.
func padded(sizes, padding []int64) (out, before []int64) {
	out, before = append([]int64{}, sizes...), make([]int64, len(sizes))
	for i := 0; i < len(padding); i += 2 {
		d := len(sizes) - 1 - i/2
		out[d] += padding[i] + padding[i+1]
		before[d] = padding[i]
	}
	return out, before
}

// All dimensions may be padded, and an empty input gives the number alone.
func TestConstantPadOfNothing(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Float32, []int64{2, 0}, nil), b.tensor(tensor.Float32, []int64{4, 3}, nil)
	b.run(operation("aten::constant_pad_nd", args("self", x, "pad", []int64{1, 2, 1, 1}, "value", -1.0), results(out)))
	for i, v := range b.floats(out) {
		if v != -1 {
			t.Errorf("element %d is %v, want -1", i, v)
		}
	}
}

func TestPadRefusals(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Float32, []int64{1, 2, 3}, nil), b.tensor(tensor.Float32, []int64{1, 2, 5}, nil)
	empty := b.tensor(tensor.Float32, []int64{1, 2, 0}, nil)
	expectRefusal(t, b, operation("aten::constant_pad_nd", args("self", x, "pad", []int64{1, 2}, "value", 0.0), results(out)), "results[0]")
	expectRefusal(t, b, operation("aten::constant_pad_nd", args("self", x, "pad", []int64{1}, "value", 0.0), results(out)), "arguments[1]")
	expectRefusal(t, b, operation("aten::replication_pad2d", args("self", empty, "padding", []int64{2, 3, 0, 0}), results(out)), "arguments[0]")
}
