package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// wholeTypes are pairs of input types with the type that PyTorch promotes them to.
var wholeTypes = [][3]tensor.DType{
	{tensor.Int64, tensor.Int64, tensor.Int64},
	{tensor.Int32, tensor.Int32, tensor.Int32},
	{tensor.Uint8, tensor.Uint8, tensor.Uint8},
	{tensor.Int32, tensor.Int64, tensor.Int64},
	{tensor.Bool, tensor.Int32, tensor.Int32},
	{tensor.Uint8, tensor.Bool, tensor.Uint8},
}

// testWhole runs an operation of two tensors of whole numbers, of which the second ones are not 0.
func testWhole(t *testing.T, name string, more []any, want func(x, y int64) int64) {
	t.Helper()
	for _, types := range wholeTypes {
		for _, sizes := range [][]int64{{5, 33}, {33}, {5, 1}, {}} {
			b := newBench(t)
			x, y, z := b.tensor(types[0], []int64{5, 33}, nil), b.tensor(types[1], sizes, nil), b.tensor(types[2], []int64{5, 33}, nil)
			b.setFloats(x, []float64{7, -7, 100, -100, 0, 1, 255, -3, 6})
			b.setFloats(y, []float64{3, -2, 100, -7, 1, 200, -1})
			var expected []uint64
			xs, ys := expand(b, x, []int64{5, 33}), expand(b, y, []int64{5, 33})
			for i := range xs {
				expected = append(expected, encode(types[2], float64(want(int64(xs[i]), int64(ys[i])))))
			}
			b.run(operation(name, args(append([]any{"self", x, "other", y}, more...)...), results(z)))
			expectExactly(t, b.bits(z), expected)
			if t.Failed() {
				t.Fatalf("%s of %v with %v", name, types, sizes)
			}
		}
	}
}

func floorDivision(x, y int64) int64 { return int64(math.Floor(float64(x) / float64(y))) }

func TestWholeNumbers(t *testing.T) {
	one := []any{"alpha", int64(1)}
	testWhole(t, "aten::add.Tensor", one, func(x, y int64) int64 { return x + y })
	testWhole(t, "aten::add.Tensor", []any{"alpha", int64(-3)}, func(x, y int64) int64 { return x - 3*y })
	testWhole(t, "aten::sub.Tensor", one, func(x, y int64) int64 { return x - y })
	testWhole(t, "aten::mul.Tensor", nil, func(x, y int64) int64 { return x * y })
	testWhole(t, "aten::maximum", nil, func(x, y int64) int64 { return max(x, y) })
	testWhole(t, "aten::minimum", nil, func(x, y int64) int64 { return min(x, y) })
	testWhole(t, "aten::bitwise_and.Tensor", nil, func(x, y int64) int64 { return x & y })
	testWhole(t, "aten::bitwise_or.Tensor", nil, func(x, y int64) int64 { return x | y })
	testWhole(t, "aten::div.Tensor_mode", []any{"rounding_mode", words("trunc")}, func(x, y int64) int64 { return x / y })
	testWhole(t, "aten::div.Tensor_mode", []any{"rounding_mode", words("floor")}, floorDivision)
}

func TestWholeFunctions(t *testing.T) {
	values := []float64{0, 1, 5, 77, 200}
	for _, dtype := range []tensor.DType{tensor.Int64, tensor.Int32, tensor.Uint8, tensor.Bool} {
		for name, c := range map[string]struct {
			more []any
			want func(float64) float64
		}{
			"aten::neg":         {nil, func(x float64) float64 { return -x }},
			"aten::abs":         {nil, math.Abs},
			"aten::clamp":       {[]any{"min", int64(2), "max", int64(80)}, func(x float64) float64 { return min(max(x, 2), 80) }},
			"aten::clamp_min":   {[]any{"min", int64(2)}, func(x float64) float64 { return max(x, 2) }},
			"aten::rsub.Scalar": {[]any{"other", int64(250), "alpha", int64(1)}, func(x float64) float64 { return 250 - x }},
			"aten::bitwise_not": {nil, func(x float64) float64 { return float64(^int64(x)) }},
		} {
			if dtype == tensor.Bool && name != "aten::bitwise_not" {
				continue
			}
			b := newBench(t)
			x, y := b.tensor(dtype, []int64{40}, nil), b.tensor(dtype, []int64{40}, nil)
			b.setFloats(x, values)
			var expected []uint64
			for _, v := range b.floats(x) {
				if dtype == tensor.Bool {
					expected = append(expected, encode(dtype, 1-v))
				} else {
					expected = append(expected, encode(dtype, c.want(v)))
				}
			}
			b.run(operation(name, args(append([]any{"self", x}, c.more...)...), results(y)))
			expectExactly(t, b.bits(y), expected)
			if t.Failed() {
				t.Fatalf("%s %s", name, dtype)
			}
		}
	}
}

// A number of its own type keeps all its digits.
func TestLargeWholeNumbers(t *testing.T) {
	b := newBench(t)
	x, mask, y := b.tensor(tensor.Int64, []int64{3}, nil), b.tensor(tensor.Bool, []int64{3}, nil), b.tensor(tensor.Int64, []int64{3}, nil)
	b.setBits(x, []uint64{1, 2, 3})
	b.setBits(mask, []uint64{0, 1, 0})
	b.run(operation("aten::masked_fill.Scalar", args("self", x, "mask", mask, "value", int64(math.MaxInt64)), results(y)))
	expectExactly(t, b.bits(y), []uint64{1, math.MaxInt64, 3})
	b.run(operation("aten::add.Tensor", args("self", x, "other", int64(1<<53+1), "alpha", int64(1)), results(y)))
	expectExactly(t, b.bits(y), []uint64{1<<53 + 2, 1<<53 + 3, 1<<53 + 4})
	b.run(operation("aten::full", args("size", []int64{3}, "fill_value", int64(math.MaxInt64)), results(y)))
	expectExactly(t, b.bits(y), []uint64{math.MaxInt64, math.MaxInt64, math.MaxInt64})
}

var comparisons = map[string]func(x, y float64) bool{
	"eq": func(x, y float64) bool { return x == y },
	"ne": func(x, y float64) bool { return x != y },
	"lt": func(x, y float64) bool { return x < y },
	"le": func(x, y float64) bool { return x <= y },
	"gt": func(x, y float64) bool { return x > y },
	"ge": func(x, y float64) bool { return x >= y },
}

func TestCompare(t *testing.T) {
	types := append([][3]tensor.DType{{tensor.Bool, tensor.Bool, tensor.Bool}}, pairTypes...)
	for _, pair := range append(types, wholeTypes...) {
		for _, l := range binaryLayouts {
			for name, want := range comparisons {
				t.Run(fmt.Sprintf("%s %s %s %s", name, pair[0], pair[1], l.name), func(t *testing.T) {
					b := newBench(t)
					x, y, z := l.a.in(b, pair[0]), l.b.in(b, pair[1]), l.y.in(b, tensor.Bool)
					b.setFloats(x, operandValues(pair[0], 0))
					b.setFloats(y, operandValues(pair[1], 5))
					sizes := b.recording.Values[z].Sizes
					xs, ys := expand(b, x, sizes), expand(b, y, sizes)
					common := promote(&b.recording.Values[x], &b.recording.Values[y])
					var expected []uint64
					for i := range xs {
						p, q := decode(common, encode(common, xs[i])), decode(common, encode(common, ys[i]))
						expected = append(expected, bit(want(p, q)))
					}
					b.run(operation("aten::"+name+".Tensor", args("self", x, "other", y), results(z)))
					expectExactly(t, b.bits(z), expected)
				})
			}
		}
	}
}

func TestCompareNumber(t *testing.T) {
	for _, dtype := range elementTypes {
		for name, want := range comparisons {
			for _, number := range []any{0.1, 0.5, int64(1), int64(0), -3.0} {
				b := newBench(t)
				x, y := b.tensor(dtype, []int64{41}, nil), b.tensor(tensor.Bool, []int64{41}, nil)
				b.setFloats(x, operandValues(dtype, 0))
				common := dtype
				if _, whole := number.(int64); !whole && !dtype.Float() {
					common = tensor.Float32
				} else if !dtype.Float() {
					common = tensor.Int64
				}
				limit := decode(common, encode(common, realOf(number)))
				var expected []uint64
				for _, v := range b.floats(x) {
					expected = append(expected, bit(want(v, limit)))
				}
				b.run(operation("aten::"+name+".Scalar", args("self", x, "other", number), results(y)))
				expectExactly(t, b.bits(y), expected)
				if t.Failed() {
					t.Fatalf("%s %s %v", name, dtype, number)
				}
			}
		}
	}
}

func TestLogical(t *testing.T) {
	for _, dtype := range elementTypes {
		b := newBench(t)
		x, y, z := b.tensor(dtype, []int64{41}, nil), b.tensor(tensor.Bool, []int64{41}, nil), b.tensor(tensor.Bool, []int64{41}, nil)
		b.setFloats(x, operandValues(dtype, 0))
		b.setBits(y, []uint64{1, 0, 0, 1, 1})
		var not, and, or []uint64
		for i, v := range b.floats(x) {
			q := b.bits(y)[i] != 0
			not, and, or = append(not, bit(v == 0)), append(and, bit(v != 0 && q)), append(or, bit(v != 0 || q))
		}
		b.run(operation("aten::logical_not", args("self", x), results(z)))
		expectExactly(t, b.bits(z), not)
		b.run(operation("aten::logical_and", args("self", x, "other", y), results(z)))
		expectExactly(t, b.bits(z), and)
		b.run(operation("aten::logical_or", args("self", x, "other", y), results(z)))
		expectExactly(t, b.bits(z), or)
	}
}

// Choices move elements with all their bits.
func TestChoices(t *testing.T) {
	for _, dtype := range elementTypes {
		for _, l := range binaryLayouts {
			b := newBench(t)
			x, y, z := l.a.in(b, dtype), l.b.in(b, dtype), l.y.in(b, dtype)
			sizes := b.recording.Values[z].Sizes
			mask := b.tensor(tensor.Bool, sizes, nil)
			b.setBits(x, []uint64{0xfff8123456787fc1, 0xff80ffc1ffa1fda1, 0x7f8000017f817c01})
			b.setBits(y, []uint64{5, 0x0102030405060708})
			b.setBits(mask, []uint64{1, 0, 0, 1, 1, 0, 1})
			masks := b.bits(mask)
			xs, ys := expandBits(b, x, sizes), expandBits(b, y, sizes)
			filled := encode(dtype, 1)
			var chosen, fills []uint64
			for i := range masks {
				c, f := ys[i], xs[i]
				if masks[i] != 0 {
					c, f = xs[i], filled
				}
				chosen, fills = append(chosen, c), append(fills, f)
			}
			b.run(operation("aten::where.self", args("condition", mask, "self", x, "other", y), results(z)))
			expectExactly(t, b.bits(z), chosen)
			b.run(operation("aten::masked_fill.Scalar", args("self", x, "mask", mask, "value", int64(1)), results(z)))
			expectExactly(t, b.bits(z), fills)
			if t.Failed() {
				t.Fatalf("%s %s", dtype, l.name)
			}
		}
	}
}

// expandBits is expand of raw elements.
func expandBits(b *bench, value int, sizes []int64) []uint64 {
	all := b.bits(value)
	places := newBench(b.t)
	v := b.recording.Values[value]
	index := places.tensor(tensor.Int64, v.Sizes, nil)
	var order []uint64
	for i := range all {
		order = append(order, uint64(i))
	}
	if len(order) > 0 {
		places.setBits(index, order)
	}
	var list []uint64
	for _, at := range expand(places, index, sizes) {
		list = append(list, all[int(at)])
	}
	return list
}

func TestFillFromTensor(t *testing.T) {
	b := newBench(t)
	x, value := b.tensorAt(tensor.BFloat16, []int64{3, 4}, []int64{8, 1}, 2), b.tensor(tensor.Float32, nil, nil)
	b.setFloats(value, []float64{1.01171875})
	b.run(operation("aten::fill_.Tensor", args("self", x, "value", value), results(x)))
	for i, got := range b.bits(x) {
		if got != 0x3f82 {
			t.Errorf("[%d] %#x", i, got)
		}
	}
}

func TestArange(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Uint8} {
		b := newBench(t)
		y := b.tensor(dtype, []int64{201}, nil)
		b.run(operation("aten::arange", args("end", int64(201)), results(y)))
		for i, got := range b.bits(y) {
			if want := encode(dtype, float64(i)); got != want {
				t.Fatalf("%s [%d]: %#x, want %#x", dtype, i, got, want)
			}
		}
		if !dtype.Float() {
			continue
		}
		b.run(operation("aten::arange.start_step", args("start", 0.5, "end", 40.0, "step", 0.1), results(y)))
		for i, got := range b.bits(y) {
			if want := encode(dtype, fused(dtype, float64(i), 0.1, 0.5)); got != want {
				t.Fatalf("%s [%d] by steps: %#x, want %#x", dtype, i, got, want)
			}
		}
	}
}

// Quotients by numbers and tensors; Python's // is what floor means.
func TestDivMode(t *testing.T) {
	values := []float64{7, -7, 0, 0.3, -0.3, 3000, -3000, 5.5, -5.5, 1, 2, 3, -8, 100.25}
	for _, dtype := range floatTypes {
		for _, divisor := range []float64{2, -2, 0.5, -4} { // what these divide is exact
			for mode, round := range map[string]func(float64) float64{"floor": math.Floor, "trunc": math.Trunc} {
				b := newBench(t)
				x, y, z := b.tensor(dtype, []int64{14}, nil), b.tensor(dtype, []int64{1}, nil), b.tensor(dtype, []int64{14}, nil)
				b.setFloats(x, values)
				b.setFloats(y, []float64{divisor})
				var expected []uint64
				for _, v := range b.floats(x) {
					expected = append(expected, encode(dtype, round(v/divisor)))
				}
				b.run(operation("aten::div.Tensor_mode", args("self", x, "other", y, "rounding_mode", words(mode)), results(z)))
				expectBits(t, dtype, b.bits(z), expected, 0)
				b.run(operation("aten::div.Tensor_mode", args("self", x, "other", divisor, "rounding_mode", words(mode)), results(z)))
				expectBits(t, dtype, b.bits(z), expected, 0)
				if t.Failed() {
					t.Fatalf("%s %s by %g", mode, dtype, divisor)
				}
			}
		}
	}
	b := newBench(t)
	x, whole := b.tensor(tensor.Float32, []int64{4}, nil), b.tensor(tensor.Int64, []int64{4}, nil)
	expectRefusal(t, b, operation("aten::div.Tensor_mode", args("self", x, "other", x, "rounding_mode", words("up")), results(x)), "arguments[2]")
	expectRefusal(t, b, operation("aten::div.Tensor_mode", args("self", whole, "other", int64(2), "rounding_mode", words("floor")), results(whole)), "arguments[1]")
	commands, err := b.lower(operation("aten::div.Tensor_mode", args("self", x, "other", 0.0, "rounding_mode", words("floor")), results(x)))
	if err != nil || describe(commands) != "[mul_number_f32]" {
		t.Errorf("by 0: %s, %v", describe(commands), err)
	}
	commands, err = b.lower(operation("aten::div.Tensor_mode", args("self", x, "other", x, "rounding_mode", nil), results(x)))
	if err != nil || describe(commands) != "[div_f32]" {
		t.Errorf("without a mode: %s, %v", describe(commands), err)
	}
}

// bit is how a truth value lies in memory.
func bit(yes bool) uint64 { return uint64(flag(yes)) }
