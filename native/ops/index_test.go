package ops

import (
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// indexArgs are the arguments of index.Tensor; an index of -1 is none.
func indexArgs(self int, indices ...int) []recording.Argument {
	list := recording.Argument{Name: "indices", Kind: recording.List}
	for _, i := range indices {
		a := argument(nil)
		if i >= 0 {
			a = argument(i)
		}
		list.Items = append(list.Items, a)
	}
	return append(args("self", self), list)
}

func TestIndex(t *testing.T) {
	sizes := []int64{10, 11, 12, 8}
	row, column, point := run(6), run(5, 1), run()
	for _, c := range []struct {
		name    string
		indices []*operand // of self's dimensions; nil: none
		want    []int64
		first   int // where the dimensions of the indices begin in the result
	}{
		{"first", []*operand{&row}, []int64{6, 11, 12, 8}, 0},
		{"second", []*operand{nil, &row}, []int64{10, 6, 12, 8}, 1},
		{"last", []*operand{nil, nil, nil, &row}, []int64{10, 11, 12, 6}, 3},
		{"neighbours are broadcast", []*operand{nil, &row, &column}, []int64{10, 5, 6, 8}, 1},
		{"a point", []*operand{&column, &point}, []int64{5, 1, 12, 8}, 0},
		{"apart: to the front", []*operand{nil, &row, nil, &column}, []int64{5, 6, 10, 12}, 0},
		{"all", []*operand{&row, &row, &column, &point}, []int64{5, 6}, 0},
	} {
		for _, dtype := range movedTypes {
			for _, kind := range []tensor.DType{tensor.Int64, tensor.Int32} {
				t.Run(dtype.String()+" by "+kind.String()+" "+c.name, func(t *testing.T) {
					b := newBench(t)
					x := b.tensorAt(dtype, sizes, []int64{96, 960, 8, 1}, 2)
					b.number(x)
					indices, shape := make([]int, len(c.indices)), []int64(nil)
					for d, o := range c.indices {
						if indices[d] = -1; o == nil {
							continue
						}
						indices[d] = o.in(b, kind)
						for i, e := range b.element(indices[d]) { // half of them negative
							putBits(e, uint64(int64(i*5+d)%(2*sizes[d])-sizes[d]))
						}
						shape, _ = commonSizes(shape, o.sizes)
					}
					out := b.tensor(dtype, c.want, nil)
					b.run(operation("aten::index.Tensor", indexArgs(x, indices...), results(out)))
					b.expectPlaces(x, out, 0, func(at []int64) []int64 {
						rest := append(append([]int64{}, at[:c.first]...), at[c.first+len(shape):]...)
						var place []int64
						for d, size := range sizes {
							if d >= len(indices) || indices[d] < 0 {
								place, rest = append(place, rest[0]), rest[1:]
								continue
							}
							// at's part of the indices, in the index that is broadcast
							v := &b.recording.Values[indices[d]]
							here := append([]int64{}, at[c.first+len(shape)-len(v.Sizes):c.first+len(shape)]...)
							for k, size := range v.Sizes {
								here[k] %= size
							}
							i := int64(b.at(indices[d], here))
							if kind == tensor.Int32 {
								i = int64(int32(i))
							}
							place = append(place, (i+size)%size)
						}
						return place
					})
				})
			}
		}
	}
}

func TestIndexRefusals(t *testing.T) {
	b := newBench(t)
	x, mask := b.tensor(tensor.Float32, []int64{5, 6}, nil), b.tensor(tensor.Bool, []int64{5}, nil)
	two, three := b.tensor(tensor.Int64, []int64{2}, nil), b.tensor(tensor.Int64, []int64{3}, nil)
	out := b.tensor(tensor.Float32, []int64{5, 6}, nil)
	for _, c := range []struct {
		path    string
		out     int
		indices []int
	}{
		{"arguments[1].list[0]", out, []int{mask}}, // how many elements it chooses is not known
		{"arguments[1].list[1]", out, []int{two, three}},
		{"results[0]", out, []int{two}},
		{"arguments[1]", out, []int{-1, -1, two}},
		{"arguments", out, []int{-1}},
	} {
		expectRefusal(t, b, operation("aten::index.Tensor", indexArgs(x, c.indices...), results(c.out)), c.path)
	}
}
