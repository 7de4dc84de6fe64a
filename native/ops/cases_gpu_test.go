//go:build gpu

package ops

// Every operation case on a GPU, by kernels of ours and by the libraries of PyTorch. Build where Go is, run where the GPU
// is, in this folder, for the cases are read from goldens:
//
//	go test -c -tags gpu -o ../../build/ops-gpu-test ./ && ../../build/ops-gpu-test -test.run OnGPU
//
// The libraries come from SAMEBITS_TORCH_LIB, or from the torch that python3 would import.

import "testing"

func TestCasesOnGPU(t *testing.T) {
	t.Setenv("SAMEBITS_TEST_DEVICE", "cuda:0")
	runCases(t, func(*opCase) bool { return true })
}

// With norms=off cuDNN itself gives the bits that kernels of ours give in TestCasesOnGPU.
func TestLibraryNormsOnGPU(t *testing.T) {
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
			b.options.LibraryNorms = true
			op, err := c.place(b)
			if err != nil {
				t.Fatal(err)
			}
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

// A batch norm and its activation in one kernel, on the GPU: NaNs too have the bits of two kernels.
func TestFusedBatchNormOnGPU(t *testing.T) {
	t.Setenv("SAMEBITS_TEST_DEVICE", "cuda:0")
	TestFusedBatchNormKeepsBits(t)
}
