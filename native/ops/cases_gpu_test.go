//go:build gpu

package ops

// Every operation case on a GPU, by kernels of ours and by the libraries of PyTorch. Build where Go is, run where the GPU
// is, in this folder, for the cases are read from goldens:
//
//	go test -c -tags gpu -o ../../build/ops-gpu-test ./ && ../../build/ops-gpu-test -test.run OnGPU
//
// The libraries come from SAMEBITS_TORCH_LIB, or from the torch that python3 would import.

import (
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func TestCasesOnGPU(t *testing.T) {
	t.Setenv("SAMEBITS_TEST_DEVICE", "cuda:0")
	runCases(t, func(*opCase) bool { return true })
}

// The kernels of cudnn_bn.cu give cuDNN's bits.
func TestCudnnArithmeticOnGPU(t *testing.T) {
	t.Setenv("SAMEBITS_TEST_DEVICE", "cuda:0")
	goldens := readGoldens(t)
	compared := 0
	for _, c := range readCases(t) {
		g, ok := goldens[c.Name]
		if !ok || c.Operation != "aten::cudnn_batch_norm" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			b := newBench(t)
			op, err := c.place(b)
			if err != nil {
				t.Fatal(err)
			}
			v := &b.recording.Values[op.Arguments[0].Value]
			if !v.Contiguous() || len(v.Sizes) < 3 {
				t.Skip("not NCHW: cuDNN has another kernel")
			}
			op.Name = "test::cudnn_batch_norm"
			Register(Registration{Name: op.Name, Lower: lowerByOurKernels})
			defer delete(registry, op.Name)
			b.run(op)
			if err := c.check(b, &op, g); err != nil {
				t.Error(err)
			}
			compared++
		})
	}
	if compared == 0 {
		t.Errorf("nothing was compared")
	}
}

// lowerByOurKernels is cudnn_batch_norm by cudnn_bn.cu.
func lowerByOurKernels(b *Builder, op *recording.Operation) error {
	s, err := readStatistics(b, op, "epsilon")
	if err != nil {
		return err
	}
	x := b.Value(s.x)
	suffix, err := Suffix(x.DType)
	if err != nil {
		return err
	}
	channels, planes := x.Sizes[1], x.Sizes[0]*x.Sizes[1]
	inner := tensor.Numel(x.Sizes) / planes
	entry := "bn_inference_" + suffix
	if inner%(16/x.DType.Size()) == 0 {
		entry += "_packs"
	}
	invstd := b.Scratch(4 * channels)
	b.launch("cudnn_bn", "bn_invstd_f32", channels,
		[]any{channels, invstd, b.Pointer(s.values["running_var"]), float32(s.epsilon)})
	b.Emit(&device.Kernel{File: "cudnn_bn", Entry: entry, Grid: [3]uint32{uint32(planes), 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []any{b.Pointer(s.y), b.Pointer(s.x), b.Pointer(s.values["weight"]), b.Pointer(s.values["bias"]),
			b.Pointer(s.values["running_mean"]), invstd, uint32(channels), uint32(inner)}})
	return nil
}
