package ops

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"samebits/bridge/recording"
	. "samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/parity/compare"
	"samebits/parity/signature"
	"samebits/parity/values"
)

// alone takes the only operation of a recording apart.
func alone(t *testing.T, b *Builder) *signature.Operation {
	t.Helper()
	var set signature.Set
	if err := set.Add("a", b.R); err != nil {
		t.Fatal(err)
	}
	return set.Operations()[0]
}

// choosing is a run in which an operation on float32 elements has given indices on both sides.
func choosing(t *testing.T, name string, sizes, strides, chosen []int64, args []recording.Argument, elements []float32, reference, native []int64) (*run, *batch) {
	t.Helper()
	b := New("cpu")
	x := b.Tensor(recording.Input, "images", tensor.Float32, sizes...)
	b.R.Values[x].Strides = strides
	b.Input("images", x)
	found, indices := b.Scratch(tensor.Float32, chosen...), b.Scratch(tensor.Int64, chosen...)
	b.Op(name, append(Args(Value("self", x)), args...), found, indices)
	b.Output("values", found)
	b.Output("indices", indices)
	batch, err := newBatch([]*signature.Operation{alone(t, b)}, true)
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for _, e := range elements {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(e))
	}
	of := func(list []int64) *side {
		var out []byte
		for _, i := range list {
			out = binary.LittleEndian.AppendUint64(out, uint64(i))
		}
		return &side{inputs: [][]byte{data}, outputs: [][]byte{nil, out}}
	}
	return &run{Checker: &Checker{}, reference: of(reference), native: of(native)}, batch
}

// Ties may be broken otherwise on the CPU; nothing else may.
func TestSameChoice(t *testing.T) {
	two := []float32{5, 1, 5, 2, 7, 7} // rows of three: 5 1 5, 2 7 7
	pool := []float32{1, 2, 2, 0, 1, 3, 0, 0, 3, 0, 0, 0}
	for _, c := range []struct {
		name              string
		operation         string
		sizes, strides    []int64
		chosen            []int64
		args              []recording.Argument
		elements          []float32
		reference, native []int64
		want              bool
	}{
		{"the same", "aten::topk", []int64{2, 3}, []int64{3, 1}, []int64{2, 2}, Args(Int("k", 2), Int("dim", -1)), two, []int64{0, 2, 1, 2}, []int64{0, 2, 1, 2}, true},
		{"other ties", "aten::topk", []int64{2, 3}, []int64{3, 1}, []int64{2, 2}, Args(Int("k", 2), Int("dim", -1)), two, []int64{0, 2, 1, 2}, []int64{2, 0, 2, 1}, true},
		{"no dim is the last", "aten::topk", []int64{2, 3}, []int64{3, 1}, []int64{2, 2}, Args(Int("k", 2)), two, []int64{0, 2, 1, 2}, []int64{2, 0, 2, 1}, true},
		{"another element", "aten::topk", []int64{2, 3}, []int64{3, 1}, []int64{2, 2}, Args(Int("k", 2), Int("dim", -1)), two, []int64{0, 2, 1, 2}, []int64{2, 1, 2, 1}, false},
		{"one element twice", "aten::topk", []int64{2, 3}, []int64{3, 1}, []int64{2, 2}, Args(Int("k", 2), Int("dim", -1)), two, []int64{0, 2, 1, 2}, []int64{0, 0, 1, 2}, false},
		{"behind the last", "aten::topk", []int64{2, 3}, []int64{3, 1}, []int64{2, 2}, Args(Int("k", 2), Int("dim", -1)), two, []int64{0, 2, 1, 2}, []int64{0, 3, 1, 2}, false},
		{"before the first", "aten::topk", []int64{2, 3}, []int64{3, 1}, []int64{2, 2}, Args(Int("k", 2), Int("dim", -1)), two, []int64{0, 2, 1, 2}, []int64{-1, 2, 1, 2}, false},
		{"columns", "aten::sort", []int64{3, 2}, []int64{1, 3}, []int64{3, 2}, Args(Int("dim", 0)), two, []int64{1, 0, 0, 1, 2, 2}, []int64{1, 0, 2, 2, 0, 1}, true},
		{"columns, another element", "aten::sort", []int64{3, 2}, []int64{1, 3}, []int64{3, 2}, Args(Int("dim", 0)), two, []int64{1, 0, 0, 1, 2, 2}, []int64{0, 0, 1, 2, 2, 1}, false},
		{"a dimension that is dropped", "aten::max.dim", []int64{2, 3}, []int64{3, 1}, []int64{2}, Args(Int("dim", 1)), two, []int64{0, 1}, []int64{2, 2}, true},
		{"dropped, another element", "aten::max.dim", []int64{2, 3}, []int64{3, 1}, []int64{2}, Args(Int("dim", 1)), two, []int64{0, 1}, []int64{0, 0}, false},
		{"the first dimension is dropped", "aten::max.dim", []int64{3, 2}, []int64{1, 3}, []int64{2}, Args(Int("dim", 0)), two, []int64{0, 1}, []int64{2, 2}, true},
		{"no such dimension", "aten::max.dim", []int64{2, 3}, []int64{3, 1}, []int64{2}, Args(Int("dim", 2)), two, []int64{0, 1}, []int64{0, 1}, false},
		{"pooled", "aten::max_pool2d_with_indices", []int64{1, 2, 2, 3}, []int64{12, 6, 3, 1}, []int64{1, 2, 1, 1}, nil, pool, []int64{5, 2}, []int64{5, 2}, true},
		{"pooled, a tie", "aten::max_pool2d_with_indices", []int64{1, 2, 2, 3}, []int64{12, 6, 3, 1}, []int64{1, 2, 1, 1}, nil, pool, []int64{1, 2}, []int64{2, 2}, true},
		{"pooled, another element", "aten::max_pool2d_with_indices", []int64{1, 2, 2, 3}, []int64{12, 6, 3, 1}, []int64{1, 2, 1, 1}, nil, pool, []int64{5, 2}, []int64{5, 5}, false},
		{"pooled, outside", "aten::max_pool2d_with_indices", []int64{1, 2, 2, 3}, []int64{12, 6, 3, 1}, []int64{1, 2, 1, 1}, nil, pool, []int64{0, 2}, []int64{6, 2}, false},
		{"chooses nothing", "aten::relu", []int64{2, 3}, []int64{3, 1}, []int64{2}, nil, two, []int64{0, 1}, []int64{0, 1}, false},
	} {
		r, b := choosing(t, c.operation, c.sizes, c.strides, c.chosen, c.args, c.elements, c.reference, c.native)
		if got := r.sameChoice(b, 1); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// How much an operation may be off depends on what it is: those that move bits, or round once, may not be off at all.
func TestDemands(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to tensor.DType
		want     demand
	}{
		{"aten::cat", tensor.Float32, tensor.Float32, sameBits},
		{"aten::cat", tensor.Float32, tensor.BFloat16, sameNumbers},
		{"aten::index.Tensor", tensor.Int64, tensor.Int64, sameBits},
		{"aten::mul.Tensor", tensor.Float32, tensor.Float32, sameNumbers},
		{"aten::relu_", tensor.Float32, tensor.Float32, sameValues},
		{"aten::exp", tensor.Float32, tensor.Float32, bounded},
		{"aten::argmax", tensor.Float32, tensor.Int64, sameNumbers},
	} {
		b := New("cpu")
		x := b.Tensor(recording.Input, "images", c.from, 2, 2)
		b.Op(c.name, Args(Value("self", x)), b.Scratch(c.to, 2, 2))
		if got := demandOf(b.R, &b.R.Operations[0], c.to); got != c.want {
			t.Errorf("%s of %v to %v: %d instead of %d", c.name, c.from, c.to, got, c.want)
		}
	}
}

// Half a ULP of the result, and what a tree of sums adds where elements are put together.
func TestFloor(t *testing.T) {
	const half, bhalf = 1.0 / (1 << 24), 1.0 / (1 << 8)
	for _, c := range []struct {
		name string
		d    tensor.DType
		n    int64
		want float64
	}{
		{"aten::exp", tensor.Float32, 1000, half}, {"aten::exp", tensor.BFloat16, 1000, bhalf},
		{"aten::sum", tensor.Float32, 1, 2 * half}, {"aten::sum", tensor.Float32, 1000, 11 * half}, {"aten::sum", tensor.BFloat16, 1000, bhalf + 10*half},
	} {
		b := New("cpu")
		x := b.Tensor(recording.Input, "images", c.d, c.n)
		b.Op(c.name, Args(Value("self", x)), b.Scratch(c.d, 1))
		if got := floor(b.R, &b.R.Operations[0], c.d); got != c.want {
			t.Errorf("%s of %d in %v: %g instead of %g", c.name, c.n, c.d, got, c.want)
		}
	}
}

// An infinity or NaN that only native has counts, unless an order of summation may make it.
func TestWithin(t *testing.T) {
	lost := Rounding{Limit: 4, Floor: 1e-7, Native: compare.Error{Lost: 1}}
	far := Rounding{Limit: 4, Floor: 1e-7, Native: compare.Error{Max: 5e-7}}
	near := Rounding{Limit: 4, Floor: 1e-7, Native: compare.Error{Max: 3e-7}}
	for _, c := range []struct {
		name  string
		kind  values.Kind
		error Rounding
		want  bool
	}{
		{"aten::exp", values.Ordinary, lost, false}, {"aten::exp", values.Edges, lost, false},
		{"aten::sum", values.Ordinary, lost, false}, {"aten::sum", values.Edges, lost, true}, {"aten::sum", values.Sparse, lost, true},
		{"aten::sum", values.Edges, far, false}, {"aten::sum", values.Edges, near, true}, {"aten::exp", values.Ordinary, near, true},
	} {
		if got := within(&recording.Operation{Name: c.name}, c.kind, c.error); got != c.want {
			t.Errorf("%s, %s values, %+v: %v", c.name, c.kind, c.error, got)
		}
	}
}

func TestDense(t *testing.T) {
	for _, c := range []struct {
		sizes, strides []int64
		want           bool
	}{
		{[]int64{2, 3}, []int64{3, 1}, true}, {[]int64{2, 3}, []int64{1, 2}, true}, {[]int64{2, 1, 3}, []int64{3, 77, 1}, true},
		{[]int64{2, 3}, []int64{4, 1}, false}, {[]int64{2, 3}, []int64{0, 1}, false}, {nil, nil, true},
	} {
		if got := dense(&recording.Value{Sizes: c.sizes, Strides: c.strides}); got != c.want {
			t.Errorf("%v %v: %v", c.sizes, c.strides, got)
		}
	}
}

func TestBroadcast(t *testing.T) {
	at, of := []int64{1, 2, 3}, []int64{2, 3, 4}
	for _, c := range []struct {
		sizes, strides []int64
		want           int64
		ok             bool
	}{
		{of, []int64{12, 4, 1}, 23, true}, {[]int64{4}, []int64{2}, 6, true}, {[]int64{3, 1}, []int64{5, 1}, 10, true}, {nil, nil, 0, true},
		{[]int64{3}, []int64{1}, 0, false}, {[]int64{1, 2, 3, 4}, []int64{24, 12, 4, 1}, 0, false},
	} {
		if got, ok := broadcast(c.sizes, c.strides, at, of); ok != c.ok || ok && got != c.want {
			t.Errorf("%v: %d, %v", c.sizes, got, ok)
		}
	}
}

// Elements come in row-major order, whatever lies before the first.
func TestGather(t *testing.T) {
	v := &recording.Value{DType: tensor.Uint8, Sizes: []int64{2, 3}, Strides: []int64{1, 2}}
	if got := gather(v, 2, []byte{9, 9, 0, 3, 1, 4, 2, 5}); !slices.Equal(got, []byte{0, 1, 2, 3, 4, 5}) {
		t.Errorf("%v", got)
	}
	if at := indexOf(23, []int64{2, 3, 4}); !slices.Equal(at, []int64{1, 2, 3}) {
		t.Errorf("%v", at)
	}
	if got := pattern(tensor.Float32, []byte{0, 0, 0, 0, 0, 0, 0x80, 0xbf}, 1); got != "0xbf800000 (-1)" {
		t.Errorf("%s", got)
	}
	if got := pattern(tensor.Float32, []byte{0, 0, 0, 0, 1}, 1); got != "" {
		t.Errorf("%s", got)
	}
}

// Where a result lies in memory otherwise than in row-major order, a difference is told by its index all the same.
func TestDifferenceOfATurnedResult(t *testing.T) {
	b := New("cuda")
	x := b.Tensor(recording.Input, "images", tensor.Float32, 2, 3)
	b.Input("images", x)
	y := b.Scratch(tensor.Float32, 2, 3)
	b.R.Values[y].Strides = []int64{1, 2}
	b.Op("aten::neg", Args(Value("self", x)), y)
	b.Output("output", y)
	batch, err := newBatch([]*signature.Operation{alone(t, b)}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 24)
	for i := range 6 {
		binary.LittleEndian.PutUint32(want[4*i:], math.Float32bits(float32(i)))
	}
	got := slices.Clone(want)
	binary.LittleEndian.PutUint32(got[4*4:], math.Float32bits(-4)) // the fifth in memory: row 0, column 2
	r := &run{Checker: &Checker{}, reference: &side{inputs: [][]byte{want}, outputs: [][]byte{want}}, native: &side{outputs: [][]byte{got}}}
	d := r.difference(batch, 0, values.Ordinary)
	if !slices.Equal(d.At, []int64{0, 2}) || d.Reference != "0x40800000 (4)" || d.Native != "0xc0800000 (-4)" || d.Bits.Different != 1 || d.Beside {
		t.Errorf("%+v", d)
	}
	if len(d.Operands) != 1 || d.Operands[0] != (Element{"self", "0x40000000 (2)"}) { // of a contiguous tensor
		t.Errorf("%+v", d.Operands)
	}
}

// On the CPU there are no values on which it is known to differ; on a GPU there are all.
func TestTame(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to tensor.DType
		want     values.Domain
	}{
		{"aten::topk", tensor.Float32, tensor.Float32, values.Domain{NoNaN: true}},
		{"aten::sort", tensor.Float32, tensor.Float32, values.Domain{NoNaN: true}},
		{"aten::_to_copy", tensor.Float32, tensor.Int64, values.Domain{Low: -100, High: 100}},
		{"aten::_to_copy", tensor.Float32, tensor.BFloat16, values.Domain{}},
		{"aten::_to_copy", tensor.Int64, tensor.Int32, values.Domain{}},
		{"aten::neg", tensor.Float32, tensor.Float32, values.Domain{}},
	} {
		for _, onCPU := range []bool{true, false} {
			b := New("cpu")
			x := b.Tensor(recording.Input, "images", c.from, 2, 3)
			b.Input("images", x)
			y := b.Scratch(c.to, 2, 3)
			b.Op(c.name, Args(Value("self", x)), y)
			b.Output("output", y)
			batch, err := newBatch([]*signature.Operation{alone(t, b)}, onCPU)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if !onCPU {
				want = values.Domain{}
			}
			if got := batch.inputs[0].domain; got.NoNaN != want.NoNaN || got.Low != want.Low || got.High != want.High {
				t.Errorf("%s of %v to %v, on the CPU %v: %+v", c.name, c.from, c.to, onCPU, got)
			}
		}
	}
}
