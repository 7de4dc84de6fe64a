package ops

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// fma32 is a*b+c rounded once to float32.
func fma32(a, b, c float32) float32 {
	x, y, z := float64(a), float64(b), float64(c)
	if p := x * y; math.IsInf(p, 0) || p != p || math.IsInf(z, 0) || z != z || (p == 0 && z == 0) {
		return float32(p + z)
	}
	exact := new(big.Float).SetPrec(600).SetMode(big.ToNearestEven)
	exact.Mul(new(big.Float).SetPrec(600).SetFloat64(x), new(big.Float).SetPrec(600).SetFloat64(y))
	exact.Add(exact, new(big.Float).SetPrec(600).SetFloat64(z))
	if exact.Sign() == 0 {
		return float32(x*y + z) // a sum of opposite numbers
	}
	f, _ := exact.Float32()
	return f
}

func TestFma32(t *testing.T) {
	tests := []struct{ a, b, c, want float32 }{
		{1 + 0x1p-12, 1 + 0x1p-12, -1, 0x1p-11 + 0x1p-24},
		{3, 5, 7, 22},
		{1 + 0x1p-23, 1 - 0x1p-24, -1, 0x1p-24 - 0x1p-47},
		{0x1p-100, 0x1p-100, 1, 1},
		{2, float32(math.Inf(1)), 1, float32(math.Inf(1))},
	}
	for _, test := range tests {
		if got := fma32(test.a, test.b, test.c); got != test.want {
			t.Errorf("%g*%g+%g is %g, wanted %g", test.a, test.b, test.c, got, test.want)
		}
	}
}

// normed is what both batch norms are tested with: a bench and its values. Variances are such that rsqrt is exact on
// every device.
type normed struct {
	*bench
	x, y                       int
	weight, bias, mean, varian int
}

const testEps = 0x1p-10

func newNormed(t *testing.T, dtype tensor.DType, sizes, in, out []int64) normed {
	n := normed{bench: newBench(t)}
	n.x, n.y = n.tensor(dtype, sizes, in), n.tensor(dtype, sizes, out)
	channels := []int64{sizes[1]}
	for _, p := range []*int{&n.weight, &n.bias, &n.mean, &n.varian} {
		*p = n.tensor(tensor.Float32, channels, nil)
	}
	state := uint64(11)
	n.setFloats(n.x, randoms(&state, int(tensor.Numel(sizes))))
	for _, p := range []int{n.weight, n.bias, n.mean} {
		n.setFloats(p, randoms(&state, int(sizes[1])))
	}
	n.setFloats(n.varian, []float64{1 - testEps, 4 - testEps, 0.25 - testEps, 16 - testEps})
	return n
}

// check compares y with the one order of operations: fma(invstd, weight*(x-mean), bias), then what last does.
func (n *normed) check(weight, bias bool, last func(float32) float32) {
	n.t.Helper()
	v := &n.recording.Values[n.y]
	inner := int(tensor.Numel(v.Sizes[2:]))
	inputs := n.floats(n.x)
	param := func(value, c int, present bool, missing float32) float32 {
		if !present {
			return missing
		}
		return float32(n.floats(value)[c])
	}
	want := make([]uint64, len(inputs))
	for i, x := range inputs {
		c := i / inner % int(v.Sizes[1])
		invstd := 1 / float32(math.Sqrt(float64(float32(n.floats(n.varian)[c])+testEps)))
		centred := float32(x) - float32(n.floats(n.mean)[c])
		r := fma32(invstd, param(n.weight, c, weight, 1)*centred, param(n.bias, c, bias, 0))
		want[i] = encode(v.DType, float64(last(r)))
	}
	expectBits(n.t, v.DType, n.bits(n.y), want, 0)
}

func same(v float32) float32 { return v }

func TestNativeBatchNorm(t *testing.T) {
	tests := []struct {
		name         string
		sizes        []int64
		in, out      []int64
		weight, bias bool
	}{
		{"packs", []int64{2, 5, 8, 16}, nil, nil, true, true},
		{"single elements", []int64{2, 5, 3, 7}, nil, nil, true, true},
		{"a large plane", []int64{1, 3, 80, 90}, nil, nil, true, true},
		{"three dimensions", []int64{2, 3, 24}, nil, nil, true, true},
		{"two dimensions", []int64{4, 6}, nil, nil, true, true},
		{"channels-last", []int64{2, 6, 4, 5}, []int64{120, 1, 30, 6}, []int64{120, 1, 30, 6}, true, true},
		{"an input with gaps", []int64{2, 4, 8, 4}, []int64{256, 32, 4, 1}, nil, true, true},
		{"no weight", []int64{2, 5, 8, 4}, nil, nil, false, true},
		{"no bias", []int64{2, 5, 8, 4}, nil, nil, true, false},
	}
	for _, test := range tests {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%s/%s", test.name, dtype), func(t *testing.T) {
				n := newNormed(t, dtype, test.sizes, test.in, test.out)
				channels := []int64{test.sizes[1]}
				savedMean, savedInvstd := n.tensor(tensor.Float32, channels, nil), n.tensor(tensor.Float32, channels, nil)
				optional := func(value int, present bool) any {
					if present {
						return value
					}
					return nil
				}
				n.run(operation("aten::native_batch_norm", args("input", n.x, "weight", optional(n.weight, test.weight),
					"bias", optional(n.bias, test.bias), "running_mean", n.mean, "running_var", n.varian,
					"training", false, "momentum", 0.1, "eps", testEps), results(n.y, savedMean, savedInvstd)))
				n.check(test.weight, test.bias, same)
				expectBits(t, tensor.Float32, n.bits(savedMean), n.bits(n.mean), 0)
				for c, v := range n.floats(savedInvstd) {
					if want := 1 / math.Sqrt(n.floats(n.varian)[c]+testEps); v != want {
						t.Errorf("save_invstd[%d] is %v, wanted %v", c, v, want)
					}
				}
			})
		}
	}
}

// Saved statistics that nobody reads, or that are empty as on the CPU, are not written.
func TestNativeBatchNormUnneeded(t *testing.T) {
	n := newNormed(t, tensor.BFloat16, []int64{1, 4, 2, 8}, nil, nil)
	unread, empty := n.tensor(tensor.Float32, []int64{4}, nil), n.tensor(tensor.Float32, []int64{0}, nil)
	n.unneeded(unread)
	commands, err := n.lower(operation("aten::native_batch_norm", args("input", n.x, "weight", n.weight, "bias", n.bias,
		"running_mean", n.mean, "running_var", n.varian, "training", false, "momentum", 0.1, "eps", testEps), results(n.y, unread, empty)))
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) != 2 {
		t.Errorf("commands %s, wanted invstd and transform", describe(commands))
	}
}

// The kernels that are cuDNN's arithmetic: like PyTorch's own, and then -0 becomes 0.
func TestCudnnArithmetic(t *testing.T) {
	for _, test := range []struct {
		dtype tensor.DType
		entry string
		inner int64
	}{
		{tensor.Float32, "bn_inference_f32", 15}, {tensor.Float32, "bn_inference_f32_packs", 16},
		{tensor.Float16, "bn_inference_f16", 15}, {tensor.Float16, "bn_inference_f16_packs", 16},
	} {
		t.Run(test.entry, func(t *testing.T) {
			n := newNormed(t, test.dtype, []int64{2, 3, test.inner}, nil, nil)
			// The first channel's first element is its mean, the bias -0: fma gives -0 for a negative weight.
			n.setFloats(n.weight, []float64{-1, 2, 0.5})
			n.setFloats(n.mean, []float64{1, 0.5, 2})
			n.setFloats(n.bias, []float64{math.Copysign(0, -1), 1, 3})
			n.setFloats(n.x, append([]float64{1}, n.floats(n.x)[1:]...))
			invstd := n.tensor(tensor.Float32, []int64{3}, nil)
			name := "test::" + test.entry
			Register(Registration{Name: name, Lower: func(b *Builder, _ *recording.Operation) error {
				b.launch("cudnn_bn", "bn_invstd_f32", 3, []any{int64(3), b.Pointer(invstd), b.Pointer(n.varian), float32(testEps)})
				b.Emit(&device.Kernel{File: "cudnn_bn", Entry: test.entry, Grid: [3]uint32{6, 1, 1}, Block: [3]uint32{256, 1, 1},
					Args: []any{b.Pointer(n.y), b.Pointer(n.x), b.Pointer(n.weight), b.Pointer(n.bias), b.Pointer(n.mean),
						b.Pointer(invstd), uint32(3), uint32(test.inner)}})
				return nil
			}})
			defer delete(registry, name)
			n.run(operation(name, nil, results(n.y, invstd)))
			n.check(true, true, func(v float32) float32 { return v + 0 })
			if bits := n.bits(n.y)[0]; bits != 0 {
				t.Errorf("the first element is %#x, wanted 0", bits)
			}
		})
	}
}
