package suitetest

import (
	"context"
	"os"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/gate"
	"samebits/parity/launch"
	"samebits/parity/suite"
)

// Bench is what fakes say when they are measured.
type Bench struct {
	Milliseconds map[string]float64     // of a step, by arm; otherwise 1.5
	MeasureFails map[string]error       // by arm
	PrepareFails map[string]error       // by arm
	Compiled     func(logits []float32) // what torch.compile changes
	FirstFails   error                  // of the process of PyTorch that predicts once
	FirstDiffers bool
	Reserves     map[string]int64 // by an eager process of the reference, by family; otherwise 4 MiB
	Uncounted    bool             // nobody counts memory
}

// reserves is what the arm takes of the device: of native half as much as of eager, of the reference's graph twice as much.
func (a *fakeArm) reserves() int64 {
	n, told := a.Reserves[a.family]
	switch {
	case !told:
		return 4 << 20
	case a.kind == "native":
		return n / 2
	case a.name == arm.ReferenceGraph:
		return 2 * n
	}
	return n
}

func (a *fakeArm) Measure(_ context.Context, r arm.MeasureRequest) (arm.MeasureReply, error) {
	if err := a.MeasureFails[a.name]; err != nil {
		return arm.MeasureReply{}, err
	}
	for range r.Warmup + r.Iterations {
		if a.banks.CUDAGraph {
			a.countReplay()
			continue
		}
		a.stats.EagerSteps++
		a.stats.Launches += 5
	}
	ms, told := a.Milliseconds[a.name]
	if !told {
		ms = 1.5
	}
	return arm.MeasureReply{Milliseconds: slices.Repeat([]float64{ms}, r.Iterations)}, nil
}

// counted is what the arm counted, with the memory that it would take on a GPU.
func (a *fakeArm) counted() arm.Stats {
	s := a.stats
	if !a.onGPU || a.Uncounted {
		return s
	}
	s.PeakBytes = 1 << 20
	if a.kind == "reference" {
		s.PeakBytes, s.ReservedBytes = a.reserves()/2, a.reserves()
	}
	return s
}

// NativeIn starts native like Native.
func (s *Starter) NativeIn(_ context.Context, cache string, reference []recording.Setting) (suite.Arm, error) {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	a, err := s.native(reference)
	if err != nil {
		return nil, err
	}
	a.between.cold = true
	return watched{a, &s.Device, a}, nil
}

// FirstReference predicts once.
func (s *Starter) FirstReference(_ context.Context, f launch.First) (launch.FirstReply, error) {
	if s.FirstFails != nil {
		return launch.FirstReply{}, s.FirstFails
	}
	images, err := os.ReadFile(f.Images)
	if err != nil {
		return launch.FirstReply{}, err
	}
	data, err := os.ReadFile(f.Weights)
	if err != nil {
		return launch.FirstReply{}, err
	}
	file, err := safetensors.Decode(data)
	if err != nil {
		return launch.FirstReply{}, err
	}
	w, _ := file.Get("weight")
	a := &fakeArm{weights: parse(w.Data)}
	features, logits := a.compute(parse(images), false)
	if s.FirstDiffers {
		logits[0]++
	}
	sizes := []int64{1, 3, 8, 8}
	outputs := gate.Outputs{gate.NewOutput(tensor.Spec{Name: "features", DType: tensor.Float32, Sizes: sizes}, floats(features)),
		gate.NewOutput(tensor.Spec{Name: "logits", DType: tensor.Float32, Sizes: sizes}, floats(logits))}
	return launch.FirstReply{Stages: []launch.Stage{{Name: "imports", MS: 4000}, {Name: "forward", MS: 1000}}, MaxRSS: 1 << 30,
		Outputs: outputs.Digests(), Finished: 5e9}, nil
}
