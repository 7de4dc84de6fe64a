package ops

import (
	"fmt"
	"testing"

	"samebits/bridge/tensor"
)

// adder gives the sum of two numbers as a type has it.
func adder(dtype tensor.DType) func(a, b float64) float64 {
	return func(a, b float64) float64 {
		if dtype != tensor.Float64 && dtype != tensor.Int64 {
			return decode(dtype, encode(dtype, float64(float32(a)+float32(b))))
		}
		return a + b
	}
}

// sklansky scans a list whose length is a power of two: both halves, then the left one's total onto all of the right one.
func sklansky(add func(a, b float64) float64, v []float64) {
	if len(v) == 1 {
		return
	}
	left, right := v[:len(v)/2], v[len(v)/2:]
	sklansky(add, left)
	sklansky(add, right)
	for i := range right {
		right[i] = add(right[i], left[len(left)-1])
	}
}

// scanLine is one line as each of PyTorch's kernels scans it.
func scanLine(dtype tensor.DType, form string, width int, line []float64) []float64 {
	add := adder(dtype)
	out := make([]float64, len(line))
	switch form {
	case "outer":
		total := 0.0
		for i, v := range line {
			total = add(total, v)
			out[i] = total
		}
	case "inner":
		total := 0.0
		for start := 0; start < len(line); start += 2 * width {
			chunk := make([]float64, 2*width)
			copy(chunk, line[start:])
			chunk[0] = add(chunk[0], total)
			sklansky(add, chunk)
			copy(out[start:], chunk)
			total = chunk[len(chunk)-1]
		}
	case "vector":
		items := int(vectorTile(dtype) / 128)
		var own [128]float64 // totals of threads, then what lies before each
		for t := range own {
			for j := range items {
				if i := t*items + j; i < len(line) {
					if j == 0 {
						own[t] = line[i]
					} else {
						own[t] = add(own[t], line[i])
					}
				}
			}
		}
		before, warps := own, [4]float64{}
		for w := range 4 {
			lanes := own[w*32:][:32]
			scanned := make([]float64, 32)
			copy(scanned, lanes)
			for o := 1; o < 32; o *= 2 {
				next := append([]float64{}, scanned...)
				for l := o; l < 32; l++ {
					next[l] = add(scanned[l-o], scanned[l])
				}
				scanned = next
			}
			copy(before[w*32+1:(w+1)*32], scanned)
			warps[w] = scanned[31]
		}
		total := warps[0]
		for w := 1; w < 4; w++ {
			for l := range 32 {
				if l == 0 {
					before[w*32] = total
				} else {
					before[w*32+l] = add(total, before[w*32+l])
				}
			}
			total = add(total, warps[w])
		}
		for i, v := range line {
			switch t := i / items; {
			case i%items > 0:
				out[i] = add(out[i-1], v)
			case t > 0:
				out[i] = add(before[t], v)
			default:
				out[i] = v
			}
		}
	}
	return out
}

func TestCumsum(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64, tensor.Int64} {
		for _, c := range []struct {
			name  string
			self  operand
			dim   int64
			form  string
			width int
		}{
			{"rows", run(4, 5, 80), -1, "inner", 32},
			{"square", run(1, 40, 40), 2, "inner", 16},
			{"long rows", run(3, 2500), 1, "inner", 512},
			{"very many short rows", run(1100, 2), 1, "inner", 512}, // where PyTorch's arithmetic wraps
			{"columns", run(2, 30, 40), 1, "outer", 0},
			{"first", run(33, 7), 0, "outer", 0},
			{"turned rows", operand{[]int64{6, 50}, []int64{1, 6}, 3}, 1, "inner", 64},
			{"turned columns", operand{[]int64{5, 30, 4}, []int64{120, 1, 30}, 0}, 1, "outer", 0},
			{"a short line", run(128), 0, "vector", 0},
			{"a line", run(1, 800, 1), 1, "vector", 0},
			{"one", run(1), 0, "vector", 0},
		} {
			t.Run(dtype.String()+" "+c.name, func(t *testing.T) {
				b := newBench(t)
				x := c.self.in(b, dtype)
				state := uint64(9)
				data := randoms(&state, 3000)
				if dtype == tensor.Int64 {
					for i := range data {
						data[i] = float64(int(data[i] * 100))
					}
				}
				b.setFloats(x, data)
				dim := int(c.dim+int64(len(c.self.sizes))) % len(c.self.sizes)
				want := make(map[string]float64)
				eachIndex(replaced(c.self.sizes, dim, 1), func(at []int64) {
					line := make([]float64, c.self.sizes[dim])
					for i := range line {
						line[i] = decode(dtype, b.at(x, replaced(at, dim, int64(i))))
					}
					for i, v := range scanLine(dtype, c.form, c.width, line) {
						want[fmt.Sprint(replaced(at, dim, int64(i)))] = v
					}
				})
				out := b.tensor(dtype, c.self.sizes, nil)
				b.run(operation("aten::cumsum", args("self", x, "dim", c.dim, "dtype", nil), results(out)))
				b.run(operation("aten::cumsum_", args("self", x, "dim", c.dim, "dtype", nil), results(x)))
				eachIndex(c.self.sizes, func(at []int64) {
					v := encode(dtype, want[fmt.Sprint(at)])
					if dtype == tensor.Int64 {
						v = uint64(int64(want[fmt.Sprint(at)]))
					}
					for _, got := range []uint64{b.at(out, at), b.at(x, at)} {
						if got != v {
							t.Fatalf("%v: %#x, want %#x", at, got, v)
						}
					}
				})
			})
		}
	}
}

// The width of a block is PyTorch's, read from its launches.
func TestScanWidth(t *testing.T) {
	for _, c := range []struct{ lines, size, want uint32 }{
		{20480, 80, 16}, {20480, 640, 16}, {40, 40, 16}, {20, 80, 32}, {3, 2500, 512}, {1 << 20, 80, 512}, {1100, 2, 512},
	} {
		if got := scanWidth(c.lines, c.size); got != c.want {
			t.Errorf("%d lines of %d: %d, want %d", c.lines, c.size, got, c.want)
		}
	}
}

// The input is converted to the result's type first; -0 becomes +0 where something is added to it.
func TestCumsumConverts(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Bool, []int64{2, 3}, nil), b.tensor(tensor.Float32, []int64{2, 3}, nil)
	b.setBits(x, []uint64{1, 0, 1, 1, 1, 1})
	b.run(operation("aten::cumsum", args("self", x, "dim", int64(0), "dtype", tensor.Float32), results(out)))
	if got := fmt.Sprint(b.floats(out)); got != "[1 0 1 2 1 2]" {
		t.Errorf("sums %s", got)
	}
	for _, c := range []struct {
		sizes []int64
		want  uint64
	}{{[]int64{1}, 1 << 31}, {[]int64{2, 1}, 0}} {
		b := newBench(t)
		x, out := b.tensor(tensor.Float32, c.sizes, nil), b.tensor(tensor.Float32, c.sizes, nil)
		b.setBits(x, []uint64{1 << 31})
		b.run(operation("aten::cumsum", args("self", x, "dim", int64(-1), "dtype", nil), results(out)))
		if got := b.bits(out)[0]; got != c.want {
			t.Errorf("%v: the sum of -0 is %#x, want %#x", c.sizes, got, c.want)
		}
	}
}

// Integers of a line longer than one tile are right in any order; floating-point numbers are not.
func TestCumsumLongLine(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Int64, []int64{3000}, nil), b.tensor(tensor.Int64, []int64{3000}, nil)
	var want []uint64
	total := uint64(0)
	for i, e := range b.element(x) {
		v := uint64(i*i) - 1000
		putBits(e, v)
		total += v
		want = append(want, total)
	}
	b.run(operation("aten::cumsum", args("self", x, "dim", int64(0), "dtype", nil), results(out)))
	expectBits(t, tensor.Int64, b.bits(out), want, 0)

	long, sums := b.tensor(tensor.Float32, []int64{1921}, nil), b.tensor(tensor.Float32, []int64{1921}, nil)
	expectRefusal(t, b, operation("aten::cumsum", args("self", long, "dim", int64(0), "dtype", nil), results(sums)), "arguments[0]")
}

func TestCumsumRefusals(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Float32, []int64{3, 4}, nil), b.tensor(tensor.Int32, []int64{3, 4}, nil)
	expectRefusal(t, b, operation("aten::cumsum", args("self", x, "dim", int64(0), "dtype", nil), results(out)), "results[0]")
	expectRefusal(t, b, operation("aten::cumsum", args("self", x, "dim", int64(2), "dtype", nil), results(x)), "arguments[1]")
}
