package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

type nllTest struct {
	*bench
	x, target, loss, total, grad, dx int
}

func newNLL(t *testing.T, dtype tensor.DType, rows, classes int64) *nllTest {
	n := &nllTest{bench: newBench(t)}
	n.x, n.target = n.tensor(dtype, []int64{rows, classes}, nil), n.tensor(tensor.Int64, []int64{rows}, nil)
	n.loss, n.total, n.grad = n.tensor(dtype, nil, nil), n.tensor(dtype, nil, nil), n.tensor(dtype, nil, nil)
	n.dx = n.tensor(dtype, []int64{rows, classes}, nil)
	state := uint64(6)
	n.setFloats(n.x, randoms(&state, int(rows*classes)))
	n.setFloats(n.grad, []float64{0.75})
	targets := make([]uint64, rows)
	for i := range targets {
		targets[i] = uint64(i*7) % uint64(classes)
	}
	n.setBits(n.target, targets)
	return n
}

func (n *nllTest) forward(reduction int64, ignore int64) {
	n.run(operation("aten::nll_loss_forward", args("self", n.x, "target", n.target, "weight", nil, "reduction", reduction,
		"ignore_index", ignore), results(n.loss, n.total)))
}

func (n *nllTest) backward(reduction int64, ignore int64) {
	n.run(operation("aten::nll_loss_backward", args("grad_output", n.grad, "self", n.x, "target", n.target, "weight", nil,
		"reduction", reduction, "ignore_index", ignore, "total_weight", n.total), results(n.dx)))
}

// The order of the sum is that of a block whose size follows the number of rows.
func TestNLLLoss(t *testing.T) {
	for _, rows := range []int64{1, 4, 16, 33, 800, 3000} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			for _, reduction := range []int64{1, 2} {
				t.Run(fmt.Sprintf("%d rows/%s/%d", rows, dtype, reduction), func(t *testing.T) {
					const classes, ignore = 11, 3
					n := newNLL(t, dtype, rows, classes)
					n.forward(reduction, ignore)
					threads := map[int64]int{800: 64, 3000: 256}[rows]
					if threads == 0 {
						threads = 32
					}
					sums, counts := make([]float32, threads), make([]float32, threads)
					x, targets := n.floats(n.x), n.bits(n.target)
					for i, c := range targets {
						if c != ignore {
							sums[i%threads] -= float32(x[i*classes+int(c)])
							counts[i%threads]++
						}
					}
					sum, count := halve(sums), halve(counts)
					want := sum
					if reduction == 1 {
						want = sum / count
					}
					expectBits(t, dtype, n.bits(n.loss), []uint64{encode(dtype, float64(want))}, 0)
					expectBits(t, dtype, n.bits(n.total), []uint64{encode(dtype, float64(count))}, 0)

					n.backward(reduction, ignore)
					g := float32(n.floats(n.grad)[0])
					if reduction == 1 {
						g /= float32(n.floats(n.total)[0])
					}
					gradient := make([]uint64, rows*classes)
					for i, c := range targets {
						if c != ignore {
							gradient[i*classes+int(c)] = encode(dtype, float64(-g))
						}
					}
					expectBits(t, dtype, n.bits(n.dx), gradient, 0)
				})
			}
		}
	}
}

// A target that is no class gives NaN and no gradient, and touches nothing else: run checks that.
func TestNLLLossOutOfRange(t *testing.T) {
	for _, bad := range []uint64{11, 1 << 40, math.MaxUint64} {
		n := newNLL(t, tensor.Float32, 4, 11)
		n.setBits(n.target, []uint64{1, bad, 2, 3})
		n.forward(1, -100)
		if v := n.floats(n.loss)[0]; v == v {
			t.Errorf("target %d: the loss is %v, wanted NaN", int64(bad), v)
		}
		n.backward(1, -100)
		for i, v := range n.floats(n.dx) {
			if want := map[int]float64{1: -0.1875, 24: -0.1875, 36: -0.1875}[i]; v != want {
				t.Errorf("target %d: gradient %d is %v, wanted %v", int64(bad), i, v, want)
			}
		}
	}
}

func TestNLLLossRefusals(t *testing.T) {
	n := newNLL(t, tensor.Float32, 4, 11)
	weight := n.tensor(tensor.Float32, []int64{11}, nil)
	for name, a := range map[string][]any{
		"class weights":     {"self", n.x, "target", n.target, "weight", weight, "reduction", int64(1), "ignore_index", int64(-100)},
		"no reduction":      {"self", n.x, "target", n.target, "weight", nil, "reduction", int64(0), "ignore_index", int64(-100)},
		"floats as targets": {"self", n.x, "target", weight, "weight", nil, "reduction", int64(1), "ignore_index", int64(-100)},
	} {
		if _, err := n.lower(operation("aten::nll_loss_forward", args(a...), results(n.loss, n.total))); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}
