package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// gathered is what order.gather is for, element by element.
func gathered(v *recording.Value, place []byte) []byte {
	size := v.DType.Size()
	rows := make([]byte, 0, v.Numel()*size)
	for i := range v.Numel() {
		at := int64(0)
		for d := len(v.Sizes) - 1; d >= 0; d-- {
			at += i % v.Sizes[d] * v.Strides[d]
			i /= v.Sizes[d]
		}
		rows = append(rows, place[at*size:][:size]...)
	}
	return rows
}

func noise(n int64, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func value(d tensor.DType, sizes, strides []int64) *recording.Value {
	return &recording.Value{DType: d, Sizes: sizes, Strides: strides}
}

func check(t *testing.T, v *recording.Value) {
	t.Helper()
	place := noise(spanBytes(v), 1)
	want := gathered(v, place)
	o := newOrder(v)
	rows := make([]byte, len(want))
	if o.gather(rows, place); !bytes.Equal(rows, want) {
		t.Fatalf("%s%v:%v: gathered otherwise than element by element", v.DType, v.Sizes, v.Strides)
	}
	back := noise(int64(len(place)), 2)
	kept := bytes.Clone(back)
	o.scatter(rows, back)
	if !bytes.Equal(gathered(v, back), want) {
		t.Fatalf("%s%v:%v: other elements came back", v.DType, v.Sizes, v.Strides)
	}
	// What lies between the elements stays.
	ours := value(tensor.Uint8, v.Sizes, v.Strides)
	if size := v.DType.Size(); size > 1 {
		ours = value(tensor.Uint8, append(append([]int64{}, v.Sizes...), size), nil)
		for _, s := range v.Strides {
			ours.Strides = append(ours.Strides, s*size)
		}
		ours.Strides = append(ours.Strides, 1)
	}
	used := make([]byte, len(back))
	uses := newOrder(ours)
	uses.scatter(bytes.Repeat([]byte{1}, int(ours.Numel())), used)
	for i := range back {
		if used[i] == 0 && back[i] != kept[i] {
			t.Fatalf("%s%v:%v: byte %d is no element's, and changed", v.DType, v.Sizes, v.Strides, i)
		}
	}
}

func TestOrder(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Uint8, tensor.BFloat16, tensor.Float32, tensor.Int64} {
		for _, v := range []*recording.Value{
			value(dtype, nil, nil),
			value(dtype, []int64{1, 1}, []int64{7, 3}),
			value(dtype, []int64{5}, []int64{3}),
			value(dtype, []int64{2, 3, 4}, []int64{12, 4, 1}),
			value(dtype, []int64{2, 3, 4}, []int64{24, 8, 2}),
			value(dtype, []int64{3, 2}, []int64{1, 3}),
			value(dtype, []int64{1, 8400, 4}, []int64{33600, 1, 8400}),
			value(dtype, []int64{2, 33, 65}, []int64{33 * 65, 1, 33}),
			value(dtype, []int64{3, 19, 40, 33}, []int64{19 * 40 * 33, 1, 19 * 33, 19}), // channels-last
			value(dtype, []int64{3, 5, 7}, []int64{50, 1, 6}),                           // gaps
			value(dtype, []int64{4, 6, 5}, []int64{5, 0, 1}),                            // expanded
			value(dtype, []int64{1100, 1000}, []int64{1, 1100}),                         // several threads, even for bytes
			value(dtype, []int64{2, 70, 100, 90}, []int64{70 * 9000, 1, 70 * 90, 70}),
		} {
			check(t, v)
		}
	}
}

// Any permutation of dimensions, cut out of a larger storage.
func TestOrderOfAnyStrides(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for range 2000 {
		sizes, strides := make([]int64, 1+r.IntN(5)), []int64(nil)
		for d := range sizes {
			sizes[d] = 1 + r.Int64N(9)
		}
		strides = make([]int64, len(sizes))
		step := 1 + r.Int64N(3)
		for _, d := range r.Perm(len(sizes)) {
			strides[d] = step
			step *= sizes[d] + r.Int64N(3)
		}
		check(t, value([]tensor.DType{tensor.Uint8, tensor.Float16, tensor.Int32, tensor.Float64}[r.IntN(4)], sizes, strides))
	}
}

func TestOrderTakesNoMemory(t *testing.T) {
	v := value(tensor.Float32, []int64{1, 100, 84}, []int64{8400, 1, 100})
	place, rows := noise(spanBytes(v), 1), make([]byte, v.Numel()*4)
	o := newOrder(v)
	if n := testing.AllocsPerRun(20, func() { o.gather(rows, place) }); n != 0 {
		t.Errorf("it takes memory %v times", n)
	}
}

func BenchmarkOrder(b *testing.B) {
	for _, v := range []*recording.Value{
		value(tensor.Float32, []int64{1, 8400, 80}, []int64{8400 * 80, 1, 8400}),
		value(tensor.Float32, []int64{1, 8400, 4}, []int64{8400 * 4, 1, 8400}),
		value(tensor.Float32, []int64{3, 150, 128, 128}, []int64{150 << 14, 1, 150 << 7, 150}),
		value(tensor.BFloat16, []int64{3, 150, 128, 128}, []int64{150 << 14, 1, 150 << 7, 150}),
	} {
		b.Run(fmt.Sprintf("%s%v", v.DType, v.Sizes), func(b *testing.B) {
			place, rows := noise(spanBytes(v), 1), make([]byte, v.Numel()*v.DType.Size())
			o := newOrder(v)
			b.SetBytes(int64(len(rows)))
			for b.Loop() {
				o.gather(rows, place)
			}
		})
	}
}
