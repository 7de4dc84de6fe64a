package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// Launches that PyTorch 2.11 made on an H200 (grid and block as its profiler named them), and what follows from
// Reduce.cuh for other shapes.
func TestReduceLaunch(t *testing.T) {
	tests := []struct {
		name          string
		dtype         tensor.DType
		sizes         []int64
		strides       []int64
		dims          []int64
		alignment     uint32
		grid          [2]int64
		width, height int64
		form          string
	}{
		{"mean of the last two of 1x512x20x20", tensor.Float32, []int64{1, 512, 20, 20}, nil, []int64{2, 3}, 0, [2]int64{32, 1}, 32, 16, "in4"},
		{"the same in bfloat16", tensor.BFloat16, []int64{1, 512, 20, 20}, nil, []int64{2, 3}, 0, [2]int64{32, 1}, 32, 16, "in8"},
		{"sum of dimension 2 of 1x4x16x8400", tensor.Float32, []int64{1, 4, 16, 8400}, nil, []int64{2}, 0, [2]int64{66, 1}, 32, 4, "out4"},
		{"sum of dimension 2 of 4x4x16x2100", tensor.Float32, []int64{4, 4, 16, 2100}, nil, []int64{2}, 0, [2]int64{66, 1}, 32, 4, "out4"},
		{"all of 2^20", tensor.Float32, []int64{1 << 20}, nil, []int64{0}, 0, [2]int64{1, 128}, 512, 1, "in4"},
		{"all of 2^24", tensor.Float32, []int64{1 << 24}, nil, []int64{0}, 0, [2]int64{1, 528}, 512, 1, "in4"},
		{"below a vector", tensor.Float32, []int64{8, 127}, nil, []int64{1}, 0, [2]int64{1, 1}, 64, 8, "out1"},
		{"an odd number of outputs", tensor.Float32, []int64{16, 33}, nil, []int64{0}, 0, [2]int64{1, 1}, 32, 16, "out1"},
		{"two outputs at once", tensor.Float32, []int64{16, 34}, nil, []int64{0}, 0, [2]int64{1, 1}, 16, 16, "out2"},
		{"alignment allows two", tensor.Float32, []int64{16, 64}, nil, []int64{0}, 8, [2]int64{1, 1}, 32, 8, "out2"},
		{"alignment allows one", tensor.Float32, []int64{16, 64}, nil, []int64{0}, 4, [2]int64{1, 1}, 32, 16, "out1"},
		{"a scalar", tensor.Float32, nil, nil, nil, 0, [2]int64{1, 1}, 1, 1, "out1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			strides := test.strides
			if strides == nil {
				strides = tensor.ContiguousStrides(test.sizes)
			}
			reduced := make([]bool, len(test.sizes))
			outSizes := append([]int64(nil), test.sizes...)
			for _, d := range test.dims {
				reduced[d], outSizes[d] = true, 1
			}
			in := &recording.Value{DType: test.dtype, Sizes: test.sizes, Strides: strides, Alignment: test.alignment}
			out := &recording.Value{Sizes: outSizes, Strides: tensor.ContiguousStrides(outSizes)}
			c := configure(axesOf(in, out, reduced, true), test.dtype.Size(), inputVector("sum", test.dtype), alignment(in), h200)
			form := fmt.Sprintf("out%d", c.outVector)
			if c.vectorInput {
				form = fmt.Sprintf("in%d", c.inVector)
			}
			if c.gridX() != test.grid[0] || c.ctas != test.grid[1] || c.width != test.width || c.height != test.height || form != test.form {
				t.Errorf("grid %d x %d, block %d x %d, %s; wanted grid %v, block %d x %d, %s",
					c.gridX(), c.ctas, c.width, c.height, form, test.grid, test.width, test.height, test.form)
			}
		})
	}
}

// orderedSum adds one output's inputs in the order that a configuration prescribes. at gives input number i as the kernel
// counts, take adds one; misaligned is the number of elements between the last aligned address and the row.
func orderedSum(c *reduceConfig, at func(i int64) float32, take func(sum, v float32) float32, misaligned int64) float32 {
	extent := func(mult, n int64) int64 {
		if mult == 0 {
			return 1
		}
		return n
	}
	nx, ny, nc := extent(c.inMult[0], c.width), extent(c.inMult[1], c.height), extent(c.inMult[2], c.ctas)
	var ctas []float32
	for cta := range nc {
		var rows []float32
		for y := range ny {
			var lanes []float32
			for x := range nx {
				first := x*c.inMult[0] + y*c.inMult[1] + cta*c.inMult[2]
				if c.vectorInput {
					lanes = append(lanes, vectorSum(c, at, take, misaligned, first, x, y == 0 && cta == 0))
				} else {
					lanes = append(lanes, stridedSum(c, at, take, first))
				}
			}
			rows = append(rows, halve(lanes))
		}
		ctas = append(ctas, halve(rows))
	}
	if nc == 1 {
		return ctas[0]
	}
	// The last block: threads take partial sums in turn, then along y, then along x.
	threads := make([]float32, c.width*c.height)
	step := c.width * c.height
	if c.inMult[0] == 0 {
		threads, step = make([]float32, c.height), c.height
	}
	for i, v := range ctas {
		threads[int64(i)%step] += v
	}
	if c.inMult[0] == 0 {
		return halve(threads)
	}
	var columns []float32
	for x := range c.width {
		var column []float32
		for y := range c.height {
			column = append(column, threads[y*c.width+x])
		}
		columns = append(columns, halve(column))
	}
	return halve(columns)
}

// halve adds the upper half to the lower one until one is left.
func halve(v []float32) float32 {
	v = append([]float32(nil), v...)
	for n := len(v) / 2; n > 0; n /= 2 {
		for i := range n {
			v[i] += v[i+n]
		}
	}
	return v[0]
}

func stridedSum(c *reduceConfig, at func(int64) float32, take func(sum, v float32) float32, first int64) float32 {
	var acc [4]float32
	for i, k := first, 0; i < c.inputs; i, k = i+c.stepInput, k+1 {
		acc[k%4] = take(acc[k%4], at(i))
	}
	return acc[0] + acc[1] + acc[2] + acc[3]
}

func vectorSum(c *reduceConfig, at func(int64) float32, take func(sum, v float32) float32, misaligned, first, x int64, edges bool) float32 {
	v := c.inVector
	acc := make([]float32, v)
	begin := int64(0) // first element of the first whole vector
	if misaligned > 0 {
		begin = v - misaligned
		if edges && x >= misaligned && x < v {
			acc[0] = take(acc[0], at(x-misaligned))
		}
	}
	whole := (c.inputs - begin) / v
	for i := first; i < whole; i += c.stepInput {
		for j := range v {
			acc[j] = take(acc[j], at(begin+i*v+j))
		}
	}
	if tail := begin + whole*v + x; edges && tail < c.inputs {
		acc[0] = take(acc[0], at(tail))
	}
	sum := acc[0]
	for _, a := range acc[1:] {
		sum += a
	}
	return sum
}

// The bits of sums and means are those of an emulation of the order, over shapes that reach every path.
func TestReduceOrder(t *testing.T) {
	tests := []struct {
		name    string
		sizes   []int64
		strides []int64
		offset  int64
		dims    []int64
		keepdim bool
	}{
		{"vectors", []int64{5, 400}, nil, 0, []int64{1}, false},
		{"last two, kept", []int64{1, 6, 20, 20}, nil, 0, []int64{-1, -2}, true},
		{"vectors with a tail", []int64{3, 405}, nil, 0, []int64{1}, false},
		{"vectors, misaligned", []int64{3, 405}, nil, 1, []int64{1}, false},
		{"vectors over several rows of threads", []int64{2, 9000}, nil, 0, []int64{1}, false},
		{"vectors over several blocks", []int64{300001}, nil, 3, []int64{0}, false},
		{"shorter than a vector", []int64{7, 3}, nil, 0, []int64{1}, false},
		{"a single input", []int64{5, 1}, nil, 0, []int64{1}, true},
		{"four outputs", []int64{2, 16, 84}, nil, 0, []int64{1}, false},
		{"two outputs", []int64{2, 16, 42}, nil, 0, []int64{1}, false},
		{"one output at a time", []int64{2, 19, 7}, nil, 0, []int64{1}, true},
		{"outputs, misaligned", []int64{19, 8}, nil, 1, []int64{0}, false},
		{"outputs over rows of threads", []int64{3000, 8}, nil, 0, []int64{0}, false},
		{"outputs over blocks", []int64{40000, 4}, nil, 0, []int64{0}, false},
		{"outer and inner", []int64{6, 5, 7, 3}, nil, 0, []int64{0, 2}, false},
		{"images and pixels", []int64{4, 5, 9, 11}, nil, 0, []int64{0, 2, 3}, false},
		{"channels-last pixels", []int64{2, 8, 5, 6}, []int64{240, 1, 48, 8}, 0, []int64{2, 3}, true},
		{"a gap between rows", []int64{6, 200}, []int64{256, 1}, 0, []int64{1}, false},
		{"every other column", []int64{6, 200}, []int64{400, 2}, 0, []int64{1}, false},
		{"everything", []int64{3, 5, 7}, nil, 0, nil, false},
	}
	dtypes := []struct{ in, out tensor.DType }{
		{tensor.Float32, tensor.Float32}, {tensor.BFloat16, tensor.BFloat16}, {tensor.Float16, tensor.Float16},
		{tensor.BFloat16, tensor.Float32}, {tensor.Float16, tensor.Float32},
	}
	for _, test := range tests {
		for _, d := range dtypes {
			for _, name := range []string{"aten::sum.dim_IntList", "aten::mean.dim", "aten::linalg_vector_norm"} {
				t.Run(fmt.Sprintf("%s/%s to %s/%s", test.name, d.in, d.out, name), func(t *testing.T) {
					checkReduce(t, name, d.in, d.out, test.sizes, test.strides, test.offset, test.dims, test.keepdim)
				})
			}
		}
	}
}

var reductionFiles = map[string]string{
	"aten::sum.dim_IntList": "sum", "aten::mean.dim": "mean", "aten::linalg_vector_norm": "vector_norm",
}

func checkReduce(t *testing.T, name string, in, out tensor.DType, sizes, strides []int64, offset int64, dims []int64, keepdim bool) {
	if strides == nil {
		strides = tensor.ContiguousStrides(sizes)
	}
	reduced, err := reducedDims(&recording.Operation{}, dims, len(sizes))
	if err != nil {
		t.Fatal(err)
	}
	var outSizes []int64
	for d := range sizes {
		switch {
		case !reduced[d]:
			outSizes = append(outSizes, sizes[d])
		case keepdim:
			outSizes = append(outSizes, 1)
		}
	}
	b := newBench(t)
	x := b.tensorAt(in, sizes, strides, offset)
	y := b.tensor(out, outSizes, nil)
	state := uint64(7)
	b.setFloats(x, randoms(&state, int(tensor.Numel(sizes))))
	list := args("self", x, "dim", dims, "keepdim", keepdim, "dtype", nil)
	take := func(sum, v float32) float32 { return sum + v }
	if name == "aten::linalg_vector_norm" {
		list = append(list, args("ord", 2.0)...)
		take = func(sum, v float32) float32 { return fma32(v, v, sum) }
		if len(outSizes) > 0 && tensor.Numel(outSizes) == tensor.Numel(sizes) {
			return // absolute values, see TestVectorNormRefusals
		}
	}
	b.run(operation(name, list, results(y)))

	vx, vy := &b.recording.Values[x], &b.recording.Values[y]
	axes := axesOf(vx, vy, reduced, keepdim)
	c := configure(axes, in.Size(), inputVector(reductionFiles[name], in), alignment(vx), h200)
	factor := float32(1)
	if name == "aten::mean.dim" {
		factor = float32(c.outputs) / float32(vx.Numel())
	}
	inputs, outputs := axes[:c.reduced], axes[c.reduced:]
	at := func(element int64) float32 {
		raw := b.bytes[vx.Storage][element*in.Size():][:in.Size()]
		return float32(decode(in, getBits(raw)))
	}
	for o := range c.outputs {
		from, to := int64(0), int64(0)
		for i, rest := 0, o; i < len(outputs); i++ {
			from += rest % outputs[i].size * outputs[i].in
			to += rest % outputs[i].size * outputs[i].out
			rest /= outputs[i].size
		}
		input := func(i int64) float32 {
			place := vx.Offset + from
			for _, a := range inputs {
				place += i % a.size * a.in
				i /= a.size
			}
			return at(place)
		}
		sum := orderedSum(&c, input, take, (vx.Offset+from)%c.inVector) * factor
		if name == "aten::linalg_vector_norm" {
			sum = float32(math.Sqrt(float64(sum)))
		}
		want := encode(out, float64(sum))
		if got := getBits(b.bytes[vy.Storage][to*out.Size():][:out.Size()]); got != want {
			t.Fatalf("output %d: %v (%#x), wanted %v (%#x)", o, decode(out, got), got, decode(out, want), want)
		}
	}
}

// randoms gives numbers whose sums depend on the order of additions.
func randoms(state *uint64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		*state = *state*6364136223846793005 + 1442695040888963407
		bits := *state >> 33
		list[i] = math.Ldexp(float64(bits%2048)/2048+1, int(bits>>11%7)-3)
		if bits>>20&1 == 1 {
			list[i] = -list[i]
		}
	}
	return list
}

func TestReduceRefusals(t *testing.T) {
	tests := []struct {
		name     string
		in, out  tensor.DType
		outSizes []int64
		dims     []int64
	}{
		{"integers", tensor.Int32, tensor.Int64, []int64{4}, []int64{1}},
		{"truth values as they are", tensor.Bool, tensor.Bool, []int64{4}, []int64{1}},
		{"a conversion first", tensor.Float32, tensor.BFloat16, []int64{4}, []int64{1}},
		{"a result of other sizes", tensor.Float32, tensor.Float32, []int64{5}, []int64{1}},
		{"a dimension that is not there", tensor.Float32, tensor.Float32, []int64{4}, []int64{2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			x, y := b.tensor(test.in, []int64{4, 8}, nil), b.tensor(test.out, test.outSizes, nil)
			op := operation("aten::sum.dim_IntList", args("self", x, "dim", test.dims, "keepdim", false, "dtype", nil), results(y))
			if _, err := b.lower(op); err == nil {
				t.Error("it was not refused")
			}
		})
	}
}

// A sum over blocks takes another path on a GPU with another number of multiprocessors.
func TestReduceProcessor(t *testing.T) {
	grid := func(environment ...recording.Setting) uint32 {
		b := newBench(t)
		b.recording.Header.Environment = environment
		x, y := b.tensor(tensor.Float32, []int64{1 << 22}, nil), b.tensor(tensor.Float32, nil, nil)
		commands, err := b.lower(operation("aten::sum.dim_IntList", args("self", x, "dim", nil, "keepdim", false, "dtype", nil), results(y)))
		if err != nil {
			t.Fatal(err)
		}
		return commands[len(commands)-1].(*device.Kernel).Grid[1]
	}
	if n := grid(); n != 512 {
		t.Errorf("%d blocks, wanted 512", n)
	}
	if n := grid(recording.Setting{Key: "multiprocessors", Value: "78"}); n != 312 {
		t.Errorf("%d blocks with 78 multiprocessors, wanted 312", n)
	}
}

func TestSumOfNothing(t *testing.T) {
	b := newBench(t)
	x, y := b.tensor(tensor.Float32, []int64{3, 0}, nil), b.tensor(tensor.Float32, []int64{3}, nil)
	b.run(operation("aten::sum.dim_IntList", args("self", x, "dim", []int64{1}, "keepdim", false, "dtype", nil), results(y)))
	for i, bits := range b.bits(y) {
		if bits != 0 {
			t.Errorf("element %d is %#x, wanted 0", i, bits)
		}
	}
}

// Sums of integers and of truth values are exact and wrap.
func TestSumOfIntegers(t *testing.T) {
	tests := []struct {
		name    string
		sizes   []int64
		strides []int64
		dims    []int64
	}{
		{"vectors", []int64{3, 1001}, nil, []int64{1}},
		{"short", []int64{5, 40}, nil, []int64{1}},
		{"outputs", []int64{40, 12}, nil, []int64{0}},
		{"over blocks", []int64{40000, 4}, nil, []int64{0}},
		{"gaps", []int64{6, 200}, []int64{400, 2}, []int64{1}},
		{"everything", []int64{3, 5, 7}, nil, nil},
	}
	for _, test := range tests {
		for _, d := range []tensor.DType{tensor.Int64, tensor.Bool} {
			t.Run(fmt.Sprintf("%s/%s", test.name, d), func(t *testing.T) {
				b := newBench(t)
				x := b.tensor(d, test.sizes, orContiguous(test.sizes, test.strides))
				var outSizes []int64
				for i, size := range test.sizes {
					if test.dims != nil && int64(i) != test.dims[0] {
						outSizes = append(outSizes, size)
					}
				}
				y := b.tensor(tensor.Int64, outSizes, nil)
				data := []uint64{1, 0, 2, 1, 255}
				if d == tensor.Int64 {
					data = []uint64{5, 1 << 62, 1<<64 - 3, 7, 1 << 63}
				}
				b.setBits(x, data)
				b.run(operation("aten::sum.dim_IntList", args("self", x, "dim", test.dims, "keepdim", false, "dtype", nil), results(y)))
				want := make([]uint64, tensor.Numel(outSizes))
				for i, v := range b.bits(x) {
					if d == tensor.Bool && v != 0 {
						v = 1
					}
					o := 0
					switch {
					case test.dims == nil:
					case test.dims[0] == 0:
						o = i % int(test.sizes[1])
					default:
						o = i / int(test.sizes[1])
					}
					want[o] += v
				}
				for i, got := range b.bits(y) {
					if got != want[i] {
						t.Fatalf("sum %d is %#x, wanted %#x", i, got, want[i])
					}
				}
			})
		}
	}
}

func TestVectorNormRefusals(t *testing.T) {
	tests := []struct {
		name  string
		in    tensor.DType
		order any
		dims  []int64
	}{
		{"another order", tensor.Float32, 1.0, []int64{1}},
		{"integers", tensor.Int64, 2.0, []int64{1}},
		{"absolute values", tensor.Float32, 2.0, []int64{2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			x := b.tensor(test.in, []int64{4, 8, 1}, nil)
			sizes := []int64{4, 8, 1}
			sizes[test.dims[0]] = 1
			y := b.tensor(test.in, sizes, nil)
			op := operation("aten::linalg_vector_norm", args("self", x, "ord", test.order, "dim", test.dims, "keepdim", true, "dtype", nil), results(y))
			if _, err := b.lower(op); err == nil {
				t.Error("it was not refused")
			}
		})
	}
}

// A sum without dimensions is that of everything, and so is a mean.
func TestReduceEverything(t *testing.T) {
	for name, want := range map[string]float64{"aten::sum": 78, "aten::mean": 6.5} {
		b := newBench(t)
		x, y := b.tensor(tensor.Float32, []int64{3, 4}, nil), b.tensor(tensor.Float32, nil, nil)
		b.setFloats(x, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
		b.run(operation(name, args("self", x, "dtype", nil), results(y)))
		if got := b.floats(y)[0]; got != want {
			t.Errorf("%s is %v, wanted %v", name, got, want)
		}
	}
}
