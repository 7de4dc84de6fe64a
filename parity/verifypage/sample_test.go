package verifypage

import (
	"fmt"
	"strings"

	"samebits/bridge/arm"
	"samebits/parity/compare"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/schedule"
)

// hostile is what no plugin should say: markup, another script, quotes of all kinds, control characters, text that turns
// around.
const hostile = `</script><script>alert("x")</script><img src=x onerror=alert(1)> ' " ` + "` {{.}} &amp; \x1b[31m\x00\xff \u202egnp.exe"

func digestOf(n int) string { return fmt.Sprintf("%064x", n+1) }

func finding(arms ...string) gate.Finding {
	f := gate.Finding{Outcome: gate.Passed}
	for _, name := range arms {
		if f.Arms == nil {
			f.Arms = map[string]gate.Finding{}
		}
		f.Arms[name] = gate.Finding{Outcome: gate.Passed, Figures: gate.EngagedFigures{Captures: 1, Nodes: 1910, Steps: 15, Replays: 15, Launches: 15 * 1910}}
	}
	return f
}

// exact is a result as a GPU gives it, of a family with a name.
func exact(family, precision string) result.Result {
	r := result.Result{Schema: 1, Task: "detect", Family: family, Size: "t", ImgSize: 640, Batch: 1, Mode: gate.Predict, Precision: precision, Profile: "exact-1",
		Device: "cuda:0", Verdict: result.Exact, Summary: "all arms give the same bits (3 probes, 2 outputs)",
		Arms: []string{arm.ReferenceEager, arm.ReferenceGraph, arm.NativeEager, arm.NativeGraph}, Gates: map[gate.ID]gate.Finding{},
		Timings: map[string]result.Timing{}, Memory: map[string]result.Memory{}, Weights: 8 << 20,
		Environment: map[string]string{"gpu": "NVIDIA H200", "driver": "580.159", "torch": "2.11.0+cu130", "engine_build": digestOf(len(family))},
		Reproduce:   "parity verify " + family + " --size t --precision " + precision}
	for _, id := range gate.Order(gate.Predict) {
		r.Gates[id] = finding()
	}
	r.Gates[gate.Engaged] = finding(arm.ReferenceGraph, arm.NativeGraph)
	passages := gate.Finding{Outcome: gate.Passed, Figures: gate.SituationFigures{Passages: []gate.PassageFigures{{Situation: "stream", Steps: 3, Replays: 3,
		Facts: map[string]string{"stream": "another"}}, {Situation: "thread", Steps: 2, Replays: 2}}}}
	r.Gates[gate.OtherStream] = gate.Sum(map[string]gate.Finding{arm.ReferenceGraph: passages, arm.NativeGraph: passages})
	r.Gates[gate.SameRecording] = gate.Finding{Outcome: gate.Passed, Figures: gate.RecordingFigures{Recordings: 4, Operations: 1282}}
	r.Digests = result.Digests{Recording: digestOf(1), Weights: digestOf(2), Inputs: map[string]map[string]string{}, Outputs: map[string]map[string]map[string]string{}}
	for n, name := range r.Arms {
		r.Timings[name] = result.Timing{MedianMS: 4 - 0.5*float64(n), MinMS: 3 - 0.5*float64(n), Iterations: 200, Warmup: 20}
		m := result.Memory{PeakBytes: int64(120-10*n) << 20}
		if n < 2 {
			m.ReservedBytes = 200 << 20
		} else {
			m.ArenaBytes = 40 << 20
		}
		r.Memory[name] = m
		outputs := map[string]map[string]string{}
		for p, probe := range []string{"noise", "twin", "photo"} {
			r.Digests.Inputs[probe] = map[string]string{"images": digestOf(10 + p)}
			outputs[probe] = map[string]string{"boxes": digestOf(20 + p), "scores": digestOf(30 + p)}
		}
		r.Digests.Outputs[name] = outputs
	}
	r.Launches = &result.Launches{Kinds: []string{"kernel silu", "library convolution", "memory fill", "other"}}
	for i := range 1235 {
		r.Launches.Order += string(result.Letters[[]int{1, 0, 1, 0, 0, 2, 3}[(i+i/40)%7]])
		r.Launches.Lanes += string(rune('0' + i/30%3*(i/200%2)))
	}
	at := 0.0
	for _, name := range []string{"recorder", arm.ReferenceEager, arm.ReferenceEager, arm.ReferenceGraph, arm.NativeEager, arm.NativeGraph} {
		p := result.Process{Arm: name}
		for i, phase := range []string{"start", "build", "load", "prepare", "steps", "measure"} {
			took := float64(40*(i+1)) + 0.3
			p.Phases = append(p.Phases, result.Phase{Name: phase, At: at, Took: took, Waited: float64(i % 2), Calls: i + 1})
			at += took
		}
		at -= 300
		r.Processes = append(r.Processes, p)
	}
	return r
}

// differs is a cell in which native gives other bits, and whose plugin says what it should not.
func differs() result.Result {
	r := exact("dfine", "fp32")
	r.Verdict, r.Reason, r.Summary = result.Differs, gate.NativeDiffers, "NATIVE: native-eager: "+hostile
	bits := compare.Figures{Elements: 705600, Different: 1234, FirstIndex: 7, MaxULP: 4096, MeanULP: 2.5, NaN: 3, MaxAbs: 0.00012}
	histogram := []compare.Bucket{{Count: 704366}, {Least: 1, Most: 1, Count: 1000}, {Least: 2, Most: 3, Count: 200}, {Least: 1 << 63, Most: 1<<64 - 1, Count: 1}}
	failed := gate.Finding{Outcome: gate.Failed, Reason: gate.NativeDiffers, Detail: "probe noise, output boxes: " + hostile, Reproduce: "parity trace dfine --probe noise",
		Figures: gate.NativeFigures{Probes: 3, Outputs: 2, Differences: []gate.Difference{{Probe: "noise", Output: "boxes" + hostile, DType: "float32", Sizes: []int64{1, 84, 8400},
			Want: digestOf(20), Got: digestOf(99), Bits: bits, Histogram: histogram}},
			First: map[string]any{"probe": "noise", "operation": 17, "of": 1282, "result": 0, "signature": "aten::mul.Tensor(self float32[1,3], other float32[1,3]) -> float32[1,3]",
				"module": "model.2.cv1", "source": "yolo9/nn.py:12", "reference": digestOf(50), "native": digestOf(51), "bits": bits, "histogram": histogram,
				"operands": []map[string]any{{"argument": "self", "value": "float32[1,3]", "from": "operation 16, aten::silu", "reference": digestOf(52), "native": digestOf(52)},
					{"argument": "other", "value": "float32[1,3]", "from": "parameter " + hostile, "reference": digestOf(53)}}}}}
	r.Gates[gate.Native] = gate.Sum(map[string]gate.Finding{arm.NativeEager: failed, arm.NativeGraph: {Outcome: gate.Failed, Reason: gate.NativeDiffers, Detail: "the same"}})
	r.Digests.Outputs[arm.NativeEager]["noise"]["boxes"] = digestOf(99)
	r.Memory[arm.NativeGraph] = result.Memory{PeakBytes: 150 << 20, ArenaBytes: 100 << 20}
	r.Environment[hostile] = hostile
	r.Reproduce += " '" + hostile + "'"
	return r
}

// broken is a cell whose plugin crashed before anything was judged.
func broken() result.Result {
	r := exact("sam", "bf16")
	r.Task, r.Verdict, r.Reason, r.Summary = "segment", result.Broken, "PLUGIN_CRASHED", "predictor ended: signal 11"
	r.Problems = []result.Problem{{Reason: "PLUGIN_CRASHED", Summary: "predictor ended: signal 11", Detail: strings.Repeat("last line\n", 3) + hostile, Path: "arm"},
		{Reason: "SOMETHING_NEW", Summary: "nobody knows it"}}
	for id := range r.Gates {
		r.Gates[id] = gate.Skip(gate.NotReached, "the verification broke off")
	}
	r.Arms, r.Timings, r.Memory, r.Processes, r.Digests = []string{}, map[string]result.Timing{}, nil, nil, result.Digests{}
	r.Gates["LATER"] = gate.Finding{Outcome: gate.Passed, Figures: map[string]any{"nodes_by_kind": map[string]int{"kernel": 1900, "memset": 10}}}
	return r
}

// onHost is a consistent cell.
func onHost() result.Result {
	r := exact("resnet", "fp32")
	r.Task, r.Device, r.Verdict, r.Memory = "classify", "host", result.Consistent, nil
	rounding := gate.Finding{Outcome: gate.Rounding, Figures: gate.RoundingFigures{Probes: 3, Limit: 4, Outputs: []gate.OutputRounding{
		{Output: "logits", Reference: compare.Error{Max: 1e-6, Mean: 2e-7}, Native: compare.Error{Max: 1.5e-6, Mean: 3e-7}, Floor: 1e-8}}}}
	r.Gates[gate.Native] = gate.Sum(map[string]gate.Finding{arm.NativeEager: rounding, arm.NativeGraph: rounding})
	r.Gates[gate.Replay] = gate.Sum(map[string]gate.Finding{arm.ReferenceGraph: gate.Skip(gate.NoGPU, "PyTorch captures graphs on a GPU only"), arm.NativeGraph: {Outcome: gate.Passed}})
	return r
}

// trained is a training run with many tensors, one of which differs in one arm.
func trained() result.Result {
	r := exact("resnet", "bf16")
	r.Task, r.Mode, r.Batch = "classify", gate.Train, 16
	r.Training = &result.Training{Recipe: schedule.Recipe{Steps: 3, LR: 0.01, Momentum: 0.9, EMADecay: 0.9999, EMATau: 2000}, Classes: 1000}
	r.Verdict, r.Reason, r.Summary = result.Differs, gate.StateDiffers, "STATE: native-graph: step 2, param.fc.weight"
	r.Gates = map[gate.ID]gate.Finding{}
	for _, id := range gate.Order(gate.Train) {
		r.Gates[id] = finding()
	}
	r.Gates[gate.State] = gate.Sum(map[string]gate.Finding{arm.NativeGraph: {Outcome: gate.Failed, Reason: gate.StateDiffers, Detail: "step 2, param.fc.weight",
		Figures: gate.StateFigures{Steps: 3, Tensors: 200, Differences: []gate.StateDifference{{Episode: gate.Main, Step: 2, Tensor: "param.fc.weight", DType: "float32", Sizes: []int64{1000, 512},
			Want: digestOf(1), Got: digestOf(2)}}}}})
	r.Digests.Steps = map[string][]string{}
	for n, name := range r.Arms {
		tensors := map[string]string{}
		for i := range 200 {
			tensors[fmt.Sprintf("param.%03d", i)] = digestOf(100 + i)
		}
		if n == 3 {
			tensors["param.150"] = digestOf(9999)
		}
		r.Digests.Outputs[name] = map[string]map[string]string{"step 3": tensors}
		r.Digests.Steps[name] = []string{digestOf(1), digestOf(2 + n/3), digestOf(3 + n/3)}
	}
	return r
}

func sample() []result.Result {
	return []result.Result{trained(), exact("yolo9", "fp32"), differs(), exact("yolo9", "bf16"), broken(), onHost()}
}

// many are as many results as a whole run has.
func many() (all []result.Result) {
	for f := range 47 {
		for _, precision := range []string{"fp32", "bf16", "fp16"} {
			r := exact(fmt.Sprintf("family%02d", f), precision)
			switch {
			case f%9 == 4 && precision == "fp16":
				d := differs()
				r.Verdict, r.Reason, r.Summary, r.Gates = d.Verdict, d.Reason, d.Summary, d.Gates
			case f%11 == 7:
				r.Verdict, r.Reason, r.Summary = result.Refused, "CAPTURE_FAILED", "it reads the device"
			}
			r.Task = []string{"detect", "segment", "classify", "depth"}[f%4]
			all = append(all, r)
		}
	}
	return all
}
