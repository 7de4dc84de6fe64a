package ops

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// described adds a value that nothing runs on, without memory for it.
func (b *bench) described(dtype tensor.DType, sizes, strides []int64) int {
	value := b.tensor(dtype, []int64{1}, nil)
	v := &b.recording.Values[value]
	v.Sizes, v.Strides = sizes, strides
	if strides == nil {
		v.Strides = tensor.ContiguousStrides(sizes)
	}
	return value
}

// activationCall is a call of an activation with numbers that cut off some elements.
func activationCall(name string, self, result int) recording.Operation {
	list := []any{"self", self}
	switch strings.TrimSuffix(name, "_") {
	case "aten::leaky_relu":
		list = append(list, "negative_slope", 0.1)
	case "aten::hardtanh":
		list = append(list, "min_val", -0.5, "max_val", 6.0)
	case "aten::clamp":
		list = append(list, "min", -1e-40, "max", nil)
	case "aten::clamp_min":
		list = append(list, "min", 0.0)
	case "aten::clamp_max":
		list = append(list, "max", 1.0)
	case "aten::gelu":
		list = append(list, "approximate", words("none"))
	}
	return operation(name, args(list...), results(result))
}

// computed is bits, but on the host every NaN is the same one: which sign libm and the CPU give it depends on whether the
// compiler made vectors of a loop.
func (b *bench) computed(value int) []uint64 {
	list := b.bits(value)
	if device := os.Getenv("SAMEBITS_TEST_DEVICE"); device == "" || device == "host" {
		for i, v := range b.floats(value) {
			if v != v {
				list[i] = math.MaxUint64
			}
		}
	}
	return list
}

// One kernel for a batch norm and its activation has the bits of two, for numbers of every kind.
func TestFusedBatchNormKeepsBits(t *testing.T) {
	edges := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e-45, -1e-45, 3e-39, -3e-39,
		6e-8, -6e-8, 1, -1, 3, -3, 5.9, 6.1, -20, 88, -104, 65504, -65504, 3e38, -3e38, 0.3, -0.7}
	for _, norm := range []string{"aten::cudnn_batch_norm", "aten::native_batch_norm"} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			if norm == "aten::cudnn_batch_norm" && dtype == tensor.BFloat16 {
				continue // PyTorch never gives it to cuDNN
			}
			for _, name := range slices.Sorted(maps.Keys(activations)) {
				if strings.HasSuffix(name, "_") {
					continue // the same call
				}
				for _, inner := range []int64{31, 32} {
					t.Run(fmt.Sprintf("%s/%s/%s/%d", norm, dtype, name, inner), func(t *testing.T) {
						n := newNormed(t, dtype, []int64{2, 4, inner}, nil, nil)
						// The first two channels pass elements on as they are, with a bias of either zero.
						n.setFloats(n.varian, []float64{1 - testEps, 1 - testEps, 0.25 - testEps, 4 - testEps})
						n.setFloats(n.weight, []float64{1, 1, -2, 0.5})
						n.setFloats(n.mean, []float64{0, 0, 0.5, -1})
						n.setFloats(n.bias, []float64{math.Copysign(0, -1), 0, 0.25, -0.5})
						n.setFloats(n.x, edges)
						last := n.tensor(dtype, []int64{2, 4, inner}, nil)
						call := func(result int) recording.Operation {
							empty := n.tensor(tensor.Float32, []int64{0}, nil)
							list := []any{"input", n.x, "weight", n.weight, "bias", n.bias, "running_mean", n.mean, "running_var", n.varian, "training", false}
							if norm == "aten::cudnn_batch_norm" {
								return operation(norm, args(append(list, "exponential_average_factor", 0.1, "epsilon", testEps)...), results(result, empty, empty, empty))
							}
							return operation(norm, args(append(list, "momentum", 0.1, "eps", testEps)...), results(result, empty, empty))
						}
						next := activationCall(name, n.y, last)
						alone := call(n.y)
						if b := NewBuilder(&n.recording, n); !Fusible(b, &alone, &next) {
							t.Fatal("the pair is not fused")
						}
						n.run(alone)
						n.run(next)
						want := n.computed(last)
						n.setBits(last, []uint64{0})
						n.then = &next
						n.run(call(last))
						if got := n.computed(last); !slices.Equal(got, want) {
							t.Errorf("elements %x, wanted %x", got, want)
						}
					})
				}
			}
		}
	}
}

// What one kernel does not do is not called a pair.
func TestFusible(t *testing.T) {
	channelsLast := []int64{60, 1, 15, 3}
	tests := []struct {
		name      string
		norm      string
		strides   []int64
		options   Options
		training  bool
		next      func(n *normed, result int) recording.Operation
		dtype     tensor.DType
		resultsIn []int64
		want      bool
	}{
		{name: "a pair", want: true},
		{name: "PyTorch's own", norm: "aten::native_batch_norm", want: true},
		{name: "in training", training: true},
		{name: "by the library", options: Options{LibraryNorms: true}},
		{name: "PyTorch's own, whatever the library does", norm: "aten::native_batch_norm", options: Options{LibraryNorms: true}, want: true},
		{name: "channels-last", strides: channelsLast, resultsIn: channelsLast},
		{name: "PyTorch's own, channels-last", norm: "aten::native_batch_norm", strides: channelsLast, resultsIn: channelsLast},
		{name: "another type", dtype: tensor.Float64},
		{name: "another layout", resultsIn: channelsLast},
		{name: "no activation", next: func(n *normed, result int) recording.Operation {
			return operation("aten::exp", args("self", n.y), results(result))
		}},
		{name: "a limit that is no number", next: func(n *normed, result int) recording.Operation {
			return operation("aten::clamp", args("self", n.y, "min", math.NaN(), "max", nil), results(result))
		}},
		{name: "limits that are tensors", next: func(n *normed, result int) recording.Operation {
			return operation("aten::clamp.Tensor", args("self", n.y, "min", n.x, "max", nil), results(result))
		}},
		{name: "gelu by tanh", next: func(n *normed, result int) recording.Operation {
			return operation("aten::gelu", args("self", n.y, "approximate", words("tanh")), results(result))
		}},
		{name: "of another value", next: func(n *normed, result int) recording.Operation {
			return operation("aten::silu", args("self", n.x), results(result))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := newNormed(t, tensor.Float32, []int64{2, 3, 4, 5}, test.strides, test.strides)
			empty := n.tensor(tensor.Float32, []int64{0}, nil)
			norm, epsilon, momentum, outputs := "aten::cudnn_batch_norm", "epsilon", "exponential_average_factor", results(n.y, empty, empty, empty)
			if test.norm != "" {
				norm, epsilon, momentum, outputs = test.norm, "eps", "momentum", outputs[:3]
			}
			producer := operation(norm, args("input", n.x, "weight", n.weight, "bias", n.bias, "running_mean", n.mean,
				"running_var", n.varian, "training", test.training, momentum, 0.1, epsilon, testEps), outputs)
			dtype := tensor.Float32
			if test.dtype != 0 {
				dtype = test.dtype
			}
			result := n.tensor(dtype, []int64{2, 3, 4, 5}, test.resultsIn)
			next := operation("aten::silu", args("self", n.y), results(result))
			if test.next != nil {
				next = test.next(&n, result)
			}
			b := NewBuilder(&n.recording, n)
			b.Options = test.options
			if got := Fusible(b, &producer, &next); got != test.want {
				t.Errorf("fused: %v, wanted %v", got, test.want)
			}
		})
	}
}
