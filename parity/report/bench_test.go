package report

import (
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/bench"
	"samebits/parity/launch"
	"samebits/parity/result"
)

func TestBenchCell(t *testing.T) {
	c := bench.Cell{Task: "detect", Family: "yolo9", Size: "t", ImgSize: 640, Batch: 1, Precision: "fp32", Outcome: bench.Partly, Notes: []string{"the GPU was busy"},
		Arms: []bench.Arm{
			{Name: arm.ReferenceEager, Outcome: bench.Measured, Step: &bench.Spread{MedianMS: 14.071, MinMS: 13.5, IQRMS: 0.2, Steps: 100},
				Memory: bench.Memory{PeakBytes: 91 << 20, ReservedBytes: 12 << 30, MaxRSSBytes: 3 << 30}, Launches: 821, LaunchUnit: "operations"},
			{Name: arm.ReferenceCompile, Outcome: bench.Refused, Problems: []result.Problem{{Reason: "COMPILE_FAILED", Summary: "no compiler", Detail: "install one"}}},
			{Name: arm.NativeGraph, Outcome: bench.Measured, Step: &bench.Spread{MedianMS: 3.1114, MinMS: 3, IQRMS: 0.02, Steps: 480}, Note: "says this"},
		},
		First: []bench.First{
			{Name: bench.FirstWarm, MS: 1111, Times: []float64{1111}, Stages: []launch.Stage{{Name: "start", MS: 31.26}, {Name: "load", MS: 1079.5}}},
			{Name: bench.FirstReference, MS: 8000, Times: []float64{8000}, MaxRSS: 2 << 30},
			{Name: bench.FirstCold, Outcome: bench.Broken, Problems: []result.Problem{{Reason: "OUT_OF_MEMORY", Summary: "none is left"}}},
		}}
	var b strings.Builder
	if err := BenchCell(&b, &c, "cuda:0"); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"yolo9-t detect 640 batch 1 fp32 on cuda:0: partly",
		"of reference-eager",
		"reference-eager 14.07 ms 13.50 ms 0.200 ms 100 1.000 91 MiB 12.0 GiB - 3072 MiB 821 operations -",
		"native-graph 3.111 ms 3.000 ms 0.020 ms 480 0.221 - - - - - -",
		"first prediction, native-graph, kernels in the cache 1.11 s 0.139 host peak - (start 31.3 ms, load 1.08 s)",
		"first prediction, eager PyTorch 8.00 s host peak 2048 MiB",
		"reference-compile problem COMPILE_FAILED: no compiler install one",
		"native-graph: says this",
		"first prediction of native-graph, no kernel in the cache problem OUT_OF_MEMORY: none is left",
		"note: the GPU was busy",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(b.String())
	}
}
