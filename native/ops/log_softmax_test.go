package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// logSoftmax gives the rows in float64.
func logSoftmax(x []float64, width int) []float64 {
	y := make([]float64, len(x))
	for at := 0; at < len(x); at += width {
		most, sum := math.Inf(-1), 0.0
		for _, v := range x[at : at+width] {
			most = math.Max(most, v)
		}
		for _, v := range x[at : at+width] {
			sum += math.Exp(v - most)
		}
		for i := at; i < at+width; i++ {
			y[i] = x[i] - most - math.Log(sum)
		}
	}
	return y
}

var logSoftmaxWidths = []int64{1, 2, 5, 32, 33, 100, 512, 1000}

func TestLogSoftmax(t *testing.T) {
	for _, width := range append([]int64{2048}, logSoftmaxWidths...) {
		for _, types := range [][2]tensor.DType{{tensor.Float32, tensor.Float32}, {tensor.BFloat16, tensor.BFloat16}, {tensor.Float16, tensor.Float32}} {
			if width > longestOfWarp(types[0], types[0] != types[1]) {
				continue
			}
			t.Run(fmt.Sprintf("%d/%s to %s", width, types[0], types[1]), func(t *testing.T) {
				b := newBench(t)
				x, y := b.tensor(types[0], []int64{5, width}, nil), b.tensor(types[1], []int64{5, width}, nil)
				state := uint64(9)
				b.setFloats(x, randoms(&state, int(5*width)))
				b.run(operation("aten::_log_softmax", args("self", x, "dim", int64(1), "half_to_float", types[0] != types[1]), results(y)))
				relative := map[tensor.DType]float64{tensor.Float32: 0x1p-20, tensor.BFloat16: 0x1p-8}[types[1]]
				want := logSoftmax(b.floats(x), int(width))
				for i, got := range b.floats(y) {
					if !(math.Abs(got-want[i]) <= relative*(1+math.Abs(want[i]))) {
						t.Fatalf("element %d is %v, wanted %v", i, got, want[i])
					}
				}
			})
		}
	}
}

// A sum over lanes in PyTorch's order is exact here, and so are the exponentials of 0: grad - sum.
func TestLogSoftmaxBackwardOrder(t *testing.T) {
	for _, width := range logSoftmaxWidths {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			b := newBench(t)
			sizes := []int64{3, width}
			grad, output, dx := b.tensor(tensor.Float32, sizes, nil), b.tensor(tensor.Float32, sizes, nil), b.tensor(tensor.Float32, sizes, nil)
			state := uint64(4)
			b.setFloats(grad, randoms(&state, int(3*width)))
			b.setFloats(output, []float64{0})
			b.run(operation("aten::_log_softmax_backward_data", args("grad_output", grad, "output", output, "dim", int64(-1),
				"input_dtype", tensor.Float32), results(dx)))
			g, got := b.floats(grad), b.floats(dx)
			for at := 0; at < len(g); at += int(width) {
				lanes := make([]float32, min(32, lastPow2(2*width-1)))
				for i := range int(width) {
					lanes[i%len(lanes)] += float32(g[at+i])
				}
				for apart := len(lanes) / 2; apart > 0; apart /= 2 {
					next := make([]float32, len(lanes))
					for l := range lanes {
						next[l] = lanes[l] + lanes[l^apart]
					}
					lanes = next
				}
				for i := at; i < at+int(width); i++ {
					if want := float32(g[i]) - lanes[0]; float32(got[i]) != want {
						t.Fatalf("element %d is %v, wanted %v", i, got[i], want)
					}
				}
			}
		})
	}
}

func TestLogSoftmaxBackward(t *testing.T) {
	for _, types := range [][2]tensor.DType{{tensor.Float32, tensor.Float32}, {tensor.BFloat16, tensor.BFloat16}, {tensor.Float16, tensor.Float16},
		{tensor.Float32, tensor.BFloat16}, {tensor.Float32, tensor.Float16}} {
		t.Run(fmt.Sprintf("%s to %s", types[0], types[1]), func(t *testing.T) {
			b := newBench(t)
			sizes := []int64{4, 1000}
			grad, output, dx := b.tensor(types[0], sizes, nil), b.tensor(types[0], sizes, nil), b.tensor(types[1], sizes, nil)
			state := uint64(8)
			g := randoms(&state, 4000)
			b.setFloats(output, logSoftmax(g, 1000))
			b.setFloats(grad, randoms(&state, 4000))
			b.run(operation("aten::_log_softmax_backward_data", args("grad_output", grad, "output", output, "dim", int64(1),
				"input_dtype", types[1]), results(dx)))
			g, o, got := b.floats(grad), b.floats(output), b.floats(dx)
			relative := map[tensor.DType]float64{tensor.Float32: 0x1p-19, tensor.BFloat16: 0x1p-8, tensor.Float16: 0x1p-10}[types[1]]
			for i := range g {
				sum := 0.0
				for _, v := range g[i/1000*1000 : i/1000*1000+1000] {
					sum += v
				}
				if want := g[i] - math.Exp(o[i])*sum; !(math.Abs(got[i]-want) <= relative*(1+math.Abs(g[i])+math.Abs(want))) {
					t.Fatalf("element %d is %v, wanted %v", i, got[i], want)
				}
			}
		})
	}
}

func TestLogSoftmaxRefusals(t *testing.T) {
	tests := []struct {
		name  string
		sizes []int64
		dim   int64
	}{
		{"not the innermost", []int64{4, 10, 3}, 1},
		{"a long row", []int64{4, 2049}, 1},
		{"no dimension", []int64{4, 10}, 2},
	}
	for _, test := range tests {
		b := newBench(t)
		x, y := b.tensor(tensor.Float32, test.sizes, nil), b.tensor(tensor.Float32, test.sizes, nil)
		if _, err := b.lower(operation("aten::_log_softmax", args("self", x, "dim", test.dim, "half_to_float", false), results(y))); err == nil {
			t.Errorf("%s was not refused", test.name)
		}
		if _, err := b.lower(operation("aten::_log_softmax_backward_data", args("grad_output", x, "output", x, "dim", test.dim,
			"input_dtype", tensor.Float32), results(y))); err == nil {
			t.Errorf("%s: the gradient was not refused", test.name)
		}
	}
}
