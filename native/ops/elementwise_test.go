package ops

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func TestCollapse(t *testing.T) {
	for _, c := range []struct {
		name    string
		sizes   []int64
		strides [][]int64
		want    space
	}{
		{"contiguous", []int64{2, 3, 4}, [][]int64{{12, 4, 1}, {12, 4, 1}}, space{[]int64{24}, [][]int64{{1}, {1}}}},
		{"scalar", nil, [][]int64{nil, nil}, space{[]int64{1}, [][]int64{{1}, {1}}}},
		{"ones have any stride", []int64{1, 4, 1}, [][]int64{{9, 1, 7}, {4, 1, 1}}, space{[]int64{4}, [][]int64{{1}, {1}}}},
		{"channels last", []int64{2, 3, 4, 5}, [][]int64{{60, 1, 15, 3}, {60, 1, 15, 3}}, space{[]int64{120}, [][]int64{{1}, {1}}}},
		{"transposed input", []int64{4, 5}, [][]int64{{5, 1}, {1, 4}}, space{[]int64{5, 4}, [][]int64{{1, 5}, {4, 1}}}},
		{"slice of channels", []int64{2, 3, 4}, [][]int64{{12, 4, 1}, {24, 4, 1}}, space{[]int64{12, 2}, [][]int64{{1, 12}, {1, 24}}}},
		{"repeated row", []int64{2, 3}, [][]int64{{3, 1}, {0, 1}}, space{[]int64{3, 2}, [][]int64{{1, 3}, {1, 0}}}},
		{"repeated everywhere", []int64{2, 3}, [][]int64{{3, 1}, {0, 0}}, space{[]int64{6}, [][]int64{{1}, {0}}}},
		{"result with gaps", []int64{1, 2, 8400}, [][]int64{{2, 1, 2}, {2, 1, 2}, {33600, 8400, 1}},
			space{[]int64{2, 8400}, [][]int64{{1, 2}, {1, 2}, {8400, 1}}}},
	} {
		if got := collapse(c.sizes, c.strides...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPromote(t *testing.T) {
	row, point := []int64{3}, []int64{}
	for _, c := range []struct {
		a     tensor.DType
		sizes []int64
		b     tensor.DType
		other []int64
		want  tensor.DType
	}{
		{tensor.BFloat16, row, tensor.Float32, row, tensor.Float32},
		{tensor.BFloat16, row, tensor.Float32, point, tensor.BFloat16},
		{tensor.Float32, point, tensor.BFloat16, row, tensor.BFloat16},
		{tensor.Float32, point, tensor.BFloat16, point, tensor.Float32},
		{tensor.Int64, row, tensor.BFloat16, point, tensor.BFloat16},
		{tensor.Int64, row, tensor.Float16, row, tensor.Float16},
		{tensor.Float16, row, tensor.BFloat16, row, tensor.Float32},
		{tensor.Uint8, row, tensor.Int8, row, tensor.Int16},
		{tensor.Bool, row, tensor.Int32, point, tensor.Int32},
		{tensor.Float32, row, tensor.Float64, row, tensor.Float64},
	} {
		a, b := &recording.Value{DType: c.a, Sizes: c.sizes}, &recording.Value{DType: c.b, Sizes: c.other}
		for _, got := range []tensor.DType{promote(a, b), promote(b, a)} {
			if got != c.want {
				t.Errorf("%s%v with %s%v: %s, want %s", c.a, c.sizes, c.b, c.other, got, c.want)
			}
		}
	}
}

// operand is a tensor of a test case: strides nil are contiguous.
type operand struct {
	sizes, strides []int64
	offset         int64
}

func (o operand) in(b *bench, dtype tensor.DType) int {
	strides := o.strides
	if strides == nil {
		strides = tensor.ContiguousStrides(o.sizes)
	}
	return b.tensorAt(dtype, o.sizes, strides, o.offset)
}

func run(sizes ...int64) operand { return operand{sizes: sizes} }

// unaryLayouts are pairs of an input and a result.
var unaryLayouts = []struct {
	name    string
	x, y    operand
	inPlace bool
}{
	{"scalar", run(), run(), true},
	{"one", run(1), run(1), true},
	{"less than a pack", run(7), run(7), true},
	{"packs and rest", run(1027), run(1027), true},
	{"many blocks", run(5, 1301), run(5, 1301), true},
	{"empty", run(3, 0), run(3, 0), true},
	{"unaligned", operand{[]int64{333}, []int64{1}, 1}, operand{[]int64{333}, []int64{1}, 3}, false},
	{"slice", operand{[]int64{3, 16, 10}, []int64{500, 20, 1}, 0}, run(3, 16, 10), true},
	{"slice of whole packs", operand{[]int64{3, 160}, []int64{320, 1}, 16}, run(3, 160), true},
	{"transposed", operand{[]int64{40, 24}, []int64{1, 40}, 0}, run(40, 24), false},
	{"channels last", operand{[]int64{2, 3, 5, 7}, []int64{105, 1, 21, 3}, 0}, operand{[]int64{2, 3, 5, 7}, []int64{105, 1, 21, 3}, 0}, true},
	{"to channels last", run(2, 8, 5, 7), operand{[]int64{2, 8, 5, 7}, []int64{280, 1, 56, 8}, 0}, false},
	{"every second", operand{[]int64{50}, []int64{2}, 1}, operand{[]int64{50}, []int64{3}, 0}, true},
	{"expanded", operand{[]int64{6, 8, 16}, []int64{16, 0, 1}, 0}, run(6, 8, 16), false},
	{"expanded inside", operand{[]int64{6, 8, 16}, []int64{8, 1, 0}, 0}, run(6, 8, 16), false},
	{"eight dimensions", operand{[]int64{2, 3, 2, 3, 2, 3, 2, 3}, []int64{12800, 3200, 1600, 400, 200, 50, 25, 5}, 0},
		run(2, 3, 2, 3, 2, 3, 2, 3), false},
}

var floatTypes = []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64}

// testUnary runs an operation over every layout and type against a function of numbers of that type.
func testUnary(t *testing.T, name string, ulps map[tensor.DType]uint64, want func(tensor.DType, float64) float64) {
	testFunction(t, name, nil, ulps, want)
}

// testFunction is testUnary with arguments beside self.
func testFunction(t *testing.T, name string, more []any, ulps map[tensor.DType]uint64, want func(tensor.DType, float64) float64) {
	base, overload, _ := strings.Cut(name, ".")
	inPlace := base + "_"
	if overload != "" {
		inPlace += "." + overload
	}
	for _, dtype := range floatTypes {
		for _, l := range unaryLayouts {
			t.Run(fmt.Sprintf("%s %s", dtype, l.name), func(t *testing.T) {
				check := func(b *bench, x, y int, called string) {
					b.setFloats(x, edges())
					var expected []uint64
					for _, v := range b.floats(x) {
						expected = append(expected, encode(dtype, want(dtype, v)))
					}
					b.run(operation(called, args(append([]any{"self", x}, more...)...), results(y)))
					expectBits(t, dtype, b.bits(y), expected, ulps[dtype])
				}
				b := newBench(t)
				check(b, l.x.in(b, dtype), l.y.in(b, dtype), name)
				if _, known := Lookup(inPlace); l.inPlace && known {
					b = newBench(t)
					x := l.x.in(b, dtype)
					check(b, x, x, inPlace)
				}
			})
		}
	}
}

// binaryLayouts are two inputs and a result.
var binaryLayouts = []struct {
	name    string
	a, b, y operand
}{
	{"scalars", run(), run(), run()},
	{"packs and rest", run(1027), run(1027), run(1027)},
	{"many blocks", run(3, 1511), run(3, 1511), run(3, 1511)},
	{"empty", run(0), run(0), run(0)},
	{"unaligned", operand{[]int64{333}, []int64{1}, 1}, run(333), run(333)},
	{"scalar tensor", run(4, 33), run(), run(4, 33)},
	{"scalar tensor first", run(), run(4, 33), run(4, 33)},
	{"row", run(5, 48), run(48), run(5, 48)},
	{"column", run(5, 48), run(5, 1), run(5, 48)},
	{"long rows", run(3, 9001), run(3, 1), run(3, 9001)},
	{"one long row", run(1, 9216), run(1, 1), run(1, 9216)},
	{"bias of maps", run(2, 6, 4, 8), run(6, 1, 1), run(2, 6, 4, 8)},
	{"bias of odd maps, first", run(5, 1, 1), run(2, 5, 3, 7), run(2, 5, 3, 7)},
	{"bias of channels last", operand{[]int64{2, 8, 3, 5}, []int64{120, 1, 40, 8}, 0}, run(8, 1, 1),
		operand{[]int64{2, 8, 3, 5}, []int64{120, 1, 40, 8}, 0}},
	{"rows of a slice, unaligned", operand{[]int64{4, 16}, []int64{40, 1}, 3}, run(4, 1), operand{[]int64{4, 16}, []int64{24, 1}, 5}},
	{"both repeated", run(5, 1, 7), run(3, 1), run(5, 3, 7)},
	{"bins", run(2, 4, 16, 24), run(1, 1, 16, 1), run(2, 4, 16, 24)},
	{"anchors", operand{[]int64{1, 2, 84}, []int64{2, 1, 2}, 0}, operand{[]int64{3, 2, 84}, []int64{336, 84, 1}, 168},
		operand{[]int64{3, 2, 84}, []int64{168, 1, 2}, 0}},
	{"strides of ones", run(1, 4, 84), operand{[]int64{1, 84}, []int64{1, 1}, 0}, run(1, 4, 84)},
	{"channels last and not", operand{[]int64{2, 3, 5, 7}, []int64{105, 1, 21, 3}, 0}, run(2, 3, 5, 7),
		operand{[]int64{2, 3, 5, 7}, []int64{105, 1, 21, 3}, 0}},
}

// pairTypes are input types and the type of the result.
var pairTypes = [][3]tensor.DType{
	{tensor.Float32, tensor.Float32, tensor.Float32},
	{tensor.BFloat16, tensor.BFloat16, tensor.BFloat16},
	{tensor.Float16, tensor.Float16, tensor.Float16},
	{tensor.Float64, tensor.Float64, tensor.Float64},
	{tensor.BFloat16, tensor.Float32, tensor.Float32},
	{tensor.Float32, tensor.Float16, tensor.Float32},
	{tensor.Float16, tensor.BFloat16, tensor.Float32},
	{tensor.Int64, tensor.Float32, tensor.Float32},
	{tensor.BFloat16, tensor.Bool, tensor.BFloat16},
	{tensor.Int32, tensor.Float64, tensor.Float64},
}

// testBinary runs an operation over every layout and types. want computes in the result's type (float32 for 16 bits).
func testBinary(t *testing.T, name string, more []any, want func(tensor.DType, float64, float64) float64) {
	for _, types := range pairTypes {
		for _, l := range binaryLayouts {
			t.Run(fmt.Sprintf("%s %s %s", types[0], types[1], l.name), func(t *testing.T) {
				b := newBench(t)
				x, y, z := l.a.in(b, types[0]), l.b.in(b, types[1]), l.y.in(b, types[2])
				b.setFloats(x, operandValues(types[0], 0))
				b.setFloats(y, operandValues(types[1], 5))
				expected := pairwise(b, x, y, z, want)
				b.run(operation(name, args(append([]any{"self", x, "other", y}, more...)...), results(z)))
				expectBits(t, types[2], b.bits(z), expected, 0)
			})
		}
	}
}

// operandValues are edges, in another order for every shift, so that pairs of them meet.
func operandValues(dtype tensor.DType, shift int) []float64 {
	if !dtype.Float() {
		return []float64{0, 1, 3, 200, 77}[shift%5:]
	}
	list := edges()
	list = append(list[shift:], list[:shift]...)
	return list[:len(list)-shift%3]
}

// pairwise computes a result element by element: inputs are rounded to the result's type before and the result after.
func pairwise(b *bench, x, y, z int, want func(tensor.DType, float64, float64) float64) []uint64 {
	sizes, dtype := b.recording.Values[z].Sizes, b.recording.Values[z].DType
	xs, ys := expand(b, x, sizes), expand(b, y, sizes)
	var list []uint64
	for i := range xs {
		p, q := decode(dtype, encode(dtype, xs[i])), decode(dtype, encode(dtype, ys[i]))
		list = append(list, encode(dtype, want(dtype, p, q)))
	}
	return list
}

// expand gives the elements of a value repeated to a larger shape.
func expand(b *bench, value int, sizes []int64) []float64 {
	v := &b.recording.Values[value]
	all := b.floats(value)
	var list []float64
	for i := range tensor.Numel(sizes) {
		at, step, rest := int64(0), int64(1), i
		for d := len(sizes) - 1; d >= 0; d-- {
			own := d - len(sizes) + len(v.Sizes)
			if own >= 0 {
				if v.Sizes[own] != 1 {
					at += rest % sizes[d] * step
				}
				step *= v.Sizes[own]
			}
			rest /= sizes[d]
		}
		list = append(list, all[at])
	}
	return list
}

// fused is a*b+c with one rounding, in float32 unless dtype is float64.
func fused(dtype tensor.DType, a, b, c float64) float64 {
	if dtype == tensor.Float64 {
		return math.FMA(a, b, c)
	}
	a, b, c = float64(float32(a)), float64(float32(b)), float64(float32(c))
	plain := a*b + c // exact where it is zero, infinite or no number
	if plain == 0 || plain-plain != 0 {
		return plain
	}
	sum := new(big.Float).SetPrec(600).SetFloat64(a)
	sum.Mul(sum, new(big.Float).SetPrec(600).SetFloat64(b))
	sum.Add(sum, new(big.Float).SetPrec(600).SetFloat64(c))
	f, _ := sum.Float32()
	return float64(f)
}

// inType computes in float32 unless dtype is float64.
func inType(dtype tensor.DType, a, b float64, single func(a, b float32) float32, double func(a, b float64) float64) float64 {
	if dtype == tensor.Float64 {
		return double(a, b)
	}
	return float64(single(float32(a), float32(b)))
}

// expectRefusal lowers an operation that must be refused at a path.
func expectRefusal(t *testing.T, b *bench, op recording.Operation, path string) {
	t.Helper()
	_, err := b.lower(op)
	problems, ok := diag.Of(err)
	if !ok || problems[0].Path != path {
		t.Errorf("wanted a problem at %s, got %v", path, err)
	}
}

func TestElementwiseRefusals(t *testing.T) {
	b := newBench(t)
	nine := b.tensor(tensor.Float32, []int64{2, 2, 2, 2, 2, 2, 2, 2, 2}, []int64{1 << 17, 1 << 15, 1 << 13, 1 << 11, 1 << 9, 1 << 7, 1 << 5, 1 << 3, 2})
	expectRefusal(t, b, operation("aten::silu", args("self", nine), results(b.tensor(tensor.Float32, []int64{2, 2, 2, 2, 2, 2, 2, 2, 2}, nil))), "results[0]")

	x, whole, narrow := b.tensor(tensor.Float32, []int64{4}, nil), b.tensor(tensor.Int64, []int64{4}, nil), b.tensor(tensor.Int16, []int64{4}, nil)
	expectRefusal(t, b, operation("aten::silu", args("self", whole), results(whole)), "results[0]")
	expectRefusal(t, b, operation("aten::silu", args("self", narrow), results(x)), "arguments[0]")
	expectRefusal(t, b, operation("aten::div.Tensor", args("self", whole, "other", whole), results(whole)), "results[0]")
	expectRefusal(t, b, operation("aten::add.Tensor", args("self", x, "other", x), results(x)), "arguments")

	short := b.tensor(tensor.Float32, []int64{3}, nil)
	expectRefusal(t, b, operation("aten::mul.Tensor", args("self", x, "other", short), results(x)), "arguments")
	expectRefusal(t, b, operation("aten::mul.Tensor", args("self", x, "other", "text"), results(x)), "arguments[1]")

	double := b.tensor(tensor.Float64, []int64{4}, nil)
	expectRefusal(t, b, operation("aten::mul_.Tensor", args("self", x, "other", double), results(x)), "results[0]")

	slot := args("self", x, "other", x)
	slot[1] = recording.Argument{Name: "other", Kind: recording.SlotOf}
	expectRefusal(t, b, operation("aten::mul.Tensor", slot, results(x)), "arguments[1]")
}
