package suite_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/host"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
	"samebits/parity/turns"
)

// verify verifies the fake family, its arms one after the other, and looks whether they give the same together.
func verify(t *testing.T, f suitetest.Faults, device string) (result.Result, *suitetest.Starter) {
	t.Helper()
	cell := suite.Cell{Family: "fake", Precision: "fp32", Profile: "exact-1", Device: device}
	start := &suitetest.Starter{Faults: f}
	s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), EngineBuild: "e0"}
	r := s.Verify(t.Context(), cell)
	if start.Alive != 0 {
		t.Errorf("%d processes were left behind", start.Alive)
	}
	if most := start.Most; most > 2 && r.Gates[gate.Native].Reason != gate.NativeDiffers { // a trace takes two more
		t.Errorf("%d processes at once", most)
	}
	together := &suitetest.Starter{Faults: f}
	s.Start, s.Together, s.Turns = together, true, turns.New(2, 1)
	same(t, r, s.Verify(t.Context(), cell))
	if together.Alive != 0 {
		t.Errorf("together: %d processes were left behind", together.Alive)
	}
	if together.Device.Disturbed != 0 {
		t.Errorf("%d calls used the device while an arm was measured", together.Device.Disturbed)
	}
	return r, start
}

// same looks whether two results say the same, figures apart.
func same(t *testing.T, want, got result.Result) {
	t.Helper()
	if got.Verdict != want.Verdict || got.Reason != want.Reason || !slices.Equal(got.Arms, want.Arms) {
		t.Errorf("together: %s %s of arms %v instead of %s %s of %v: %s", got.Verdict, got.Reason, got.Arms, want.Verdict, want.Reason, want.Arms, got.Summary)
	}
	for id, f := range want.Gates {
		g := got.Gates[id]
		if g.Outcome != f.Outcome || g.Reason != f.Reason || len(g.Arms) != len(f.Arms) {
			t.Errorf("together: gate %s: %s %s instead of %s %s", id, g.Outcome, g.Reason, f.Outcome, f.Reason)
		}
	}
	if want.Verdict != result.Broken && want.Verdict != result.Refused {
		a, b := slices.Sorted(maps.Keys(want.Timings)), slices.Sorted(maps.Keys(got.Timings))
		if !slices.Equal(a, b) {
			t.Errorf("together: times of %v instead of %v", b, a)
		}
	}
	for key, value := range want.Environment { // together, native may have said of its own what nobody came to ask
		if got.Environment[key] != value {
			t.Errorf("together: environment %s is %q instead of %q", key, got.Environment[key], value)
		}
	}
}

// Every gate must refuse its fault with its own reason, and the healthy twin must pass.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  suitetest.Faults
		gate    gate.ID
		reason  gate.Reason
		verdict result.Verdict
		arm     string // whose finding it is, of a gate that is judged for each
	}{
		{"eager differs from process to process", suitetest.Faults{Noise: true}, gate.Reproduces, gate.EagerNoise, result.EagerNoise, ""},
		{"eager differs from step to step", suitetest.Faults{StateMoves: true}, gate.Reproduces, gate.StateMoved, result.EagerNoise, ""},
		{"the process of the graph differs", suitetest.Faults{GraphsProcess: true}, gate.Replay, gate.ProcessDiffers, result.EagerNoise, arm.ReferenceGraph},
		{"the input is ignored", suitetest.Faults{InputIgnored: true}, gate.InputSeen, gate.InputNotSeen, result.Refused, ""},
		{"a branch on the input", suitetest.Faults{BranchOnInput: true}, gate.SameRecording, gate.RecordingChangesWithInput, result.Refused, ""},
		{"a scalar of the step", suitetest.Faults{ScalarFromStep: true}, gate.SameRecording, gate.RecordingChangesWithStep, result.Refused, ""},
		{"a stale graph", suitetest.Faults{Stale: true}, gate.NotStale, gate.StaleOutput, result.Differs, arm.ReferenceGraph},
		{"a stale graph differs, too", suitetest.Faults{Stale: true}, gate.Replay, gate.OutputDiffers, result.Differs, arm.NativeGraph},
		{"outputs are not written", suitetest.Faults{NotWritten: true}, gate.Replay, gate.OutputNotWritten, result.Differs, arm.ReferenceGraph},
		{"an older result is overwritten", suitetest.Faults{LeavesBankBehind: true}, gate.Replay, gate.OutputOverwritten, result.Differs, arm.NativeGraph},
		{"poison is read", suitetest.Faults{ReadsPoison: true}, gate.Replay, gate.OutputDiffers, result.Differs, arm.NativeGraph},
		{"freed memory is read", suitetest.Faults{ReadsChurn: true}, gate.Replay, gate.OutputDiffers, result.Differs, arm.ReferenceGraph},
		{"nothing is captured", suitetest.Faults{NotCaptured: true}, gate.Engaged, gate.NotCaptured, result.Refused, arm.ReferenceGraph},
		{"steps fall back", suitetest.Faults{FallsBack: true}, gate.Engaged, gate.FellBack, result.Refused, arm.NativeGraph},
		{"steps run eagerly", suitetest.Faults{RunsEagerly: true}, gate.Engaged, gate.NotReplayed, result.Refused, arm.NativeGraph},
		{"graphs are captured again", suitetest.Faults{CapturesAgain: true}, gate.Engaged, gate.CapturedAgain, result.Refused, arm.NativeGraph},
		{"replays launch nothing", suitetest.Faults{LaunchesNothing: true}, gate.Engaged, gate.NotLaunched, result.Refused, arm.NativeGraph},
		{"a step waits", suitetest.Faults{Waits: true}, gate.Engaged, gate.Synchronised, result.Refused, arm.NativeGraph},
		{"native is off by an ULP", suitetest.Faults{Native: suitetest.ULPs(1), NativeTrace: true}, gate.Native, gate.NativeDiffers, result.Differs, arm.NativeEager},
		{"native gives another shape", suitetest.Faults{OtherShape: true}, gate.Native, gate.OutputsOfOtherShape, result.Differs, arm.NativeEager},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := verify(t, c.faults, "cuda:0")
			f := r.Gates[c.gate]
			if c.arm != "" {
				f = f.Arms[c.arm]
			}
			if f.Outcome != gate.Failed || f.Reason != c.reason {
				t.Errorf("gate %s: %s %s %s", c.gate, f.Outcome, f.Reason, f.Detail)
			}
			if f.Detail == "" || !strings.HasPrefix(f.Reproduce, "parity ") {
				t.Errorf("detail %q, reproduce %q", f.Detail, f.Reproduce)
			}
			if r.Verdict != c.verdict || r.Verdict.Exit() == 0 {
				t.Errorf("verdict %s: %s", r.Verdict, r.Summary)
			}
			if len(r.Gates) != len(gate.Order(gate.Predict)) {
				t.Errorf("%d gates", len(r.Gates))
			}
		})
	}
}

func TestExact(t *testing.T) {
	r, start := verify(t, suitetest.Faults{}, "cuda:0")
	if r.Verdict != result.Exact || r.Reason != "" {
		t.Fatalf("verdict %s: %s %s", r.Verdict, r.Reason, r.Summary)
	}
	arms := []string{arm.ReferenceEager, arm.ReferenceGraph, arm.NativeEager, arm.NativeGraph}
	if !slices.Equal(r.Arms, arms) {
		t.Errorf("arms %v", r.Arms)
	}
	if start.Processes != 7 {
		t.Errorf("%d processes instead of 7 fresh ones", start.Processes)
	}
	for _, id := range gate.Order(gate.Predict) {
		if f := r.Gates[id]; f.Outcome != gate.Passed && f.Reason != gate.NoSecondDevice {
			t.Errorf("gate %s: %s %s", id, f.Outcome, f.Detail)
		}
	}
	for _, name := range arms {
		if r.Timings[name].MedianMS != 1.5 || r.Timings[name].Iterations < 5 {
			t.Errorf("%s took %+v", name, r.Timings[name])
		}
		if len(r.Digests.Outputs[name]) != 3 || len(r.Digests.Outputs[name]["photo"]) != 2 {
			t.Errorf("%s has digests %v", name, r.Digests.Outputs[name])
		}
	}
	if r.Size != "s" || r.Task != "classify" || r.ImgSize != 8 || r.Batch != 1 {
		t.Errorf("the family's own size, task and image size are missing: %+v", r)
	}
	for key, want := range map[string]string{"cudnn": "9.19", "side": "reference", "native.side": "native",
		"native_only": "yes", "engine_build": "e0", "cuda.path": "libcuda.so.1", "cudnn.path": "nvidia/cudnn/lib/libcudnn.so.9"} {
		if got := r.Environment[key]; got != want {
			t.Errorf("environment %s: %q instead of %q", key, got, want)
		}
	}
	replays := r.Gates[gate.Replay].Arms[arm.NativeGraph].Figures.(gate.ReplayFigures)
	for _, probe := range []string{"noise", "twin", "photo"} {
		if replays.Replays[probe] < 5 {
			t.Errorf("%d replays of probe %s", replays.Replays[probe], probe)
		}
	}
}

// All processes of a cell run at once, and none disturbs another's times.
func TestTogether(t *testing.T) {
	start := &suitetest.Starter{}
	s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), Together: true, Turns: turns.New(8, 1)}
	r := s.Verify(t.Context(), fakeCell("cuda:0"))
	if r.Verdict != result.Exact || start.Processes != 7 || start.Alive != 0 {
		t.Fatalf("%s, %d processes, %d alive: %s", r.Verdict, start.Processes, start.Alive, r.Summary)
	}
	d := &start.Device
	if start.Most < 3 || d.Constructed != 4 { // three are held until they are measured
		t.Errorf("%d processes at once, %d models were made beforehand", start.Most, d.Constructed)
	}
	if d.Measured != 8 || d.Disturbed != 0 {
		t.Errorf("%d measurements, %d disturbed", d.Measured, d.Disturbed)
	}
}

// Cells at the same time use the device together, but for measurements.
func TestCellsAtTheSameTime(t *testing.T) {
	for _, device := range []string{"cuda:0", suite.HostDevice} {
		for _, mode := range []string{gate.Predict, gate.Train} {
			t.Run(device+" "+mode, func(t *testing.T) {
				start := &suitetest.Starter{}
				s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), Together: true, Turns: turns.New(4, 1)}
				cell := fakeCell(device)
				if mode == gate.Train {
					cell = trainCell(device)
				}
				var working sync.WaitGroup
				for range 6 {
					working.Go(func() {
						if r := s.Verify(t.Context(), cell); r.Verdict.Exit() != 0 {
							t.Errorf("%s: %s", r.Verdict, r.Summary)
						}
					})
				}
				working.Wait()
				if start.Alive != 0 || start.Device.Disturbed != 0 {
					t.Errorf("%d processes alive, %d measurements disturbed", start.Alive, start.Device.Disturbed)
				}
			})
		}
	}
}

func TestCulprit(t *testing.T) {
	r, start := verify(t, suitetest.Faults{Native: suitetest.ULPs(3), NativeTrace: true}, "cuda:0")
	f := r.Gates[gate.Native].Arms[arm.NativeEager]
	c, ok := f.Figures.(gate.NativeFigures).First.(*suite.Culprit)
	if !ok {
		t.Fatalf("no culprit: %s", f.Detail)
	}
	if c.Operation != 1 || c.Module != "head" || c.Source != "fake.py:7" || c.Probe != "noise" || c.Reference == c.Native {
		t.Errorf("culprit %+v", c)
	}
	if c.Bits.MaxULP != 3 || c.Bits.Different != 1 || c.Bits.FirstIndex != 7 {
		t.Errorf("bits %+v", c.Bits)
	}
	if len(c.Operands) != 2 || c.Operands[0].From != "operation 0, aten::relu" || c.Operands[0].Reference == "" ||
		c.Operands[0].Reference != c.Operands[0].Native || c.Operands[1].From != "parameter weight" ||
		len(c.Operands[1].Reference) != 64 {
		t.Errorf("operands %+v", c.Operands)
	}
	want := "parity trace fake --size s --task classify --imgsz 8 --batch 1 --precision fp32 --profile exact-1 --seed 0 --device cuda:0 --probe noise"
	if f.Reproduce != want {
		t.Errorf("reproduce: %s", f.Reproduce)
	}
	if start.Processes != 8 { // none of which is cold: bits differ anyway
		t.Errorf("%d processes: a trace takes two more", start.Processes)
	}
	if !strings.Contains(r.Summary, "aten::mul.Tensor") {
		t.Errorf("summary: %s", r.Summary)
	}
	found, err := (&suite.Suite{Start: &suitetest.Starter{Faults: suitetest.Faults{Native: suitetest.ULPs(3), NativeTrace: true}}}).Trace(t.Context(), fakeCell("cuda:0"), "photo")
	if err != nil || found == nil || found.Probe != "photo" || found.Operation != 1 {
		t.Errorf("trace: %+v, %v", found, err)
	}
}

// A fault of a fusion is not there when operations are run one by one.
func TestCulpritOfFusion(t *testing.T) {
	r, _ := verify(t, suitetest.Faults{Native: suitetest.ULPs(1)}, "cuda:0")
	f := r.Gates[gate.Native].Arms[arm.NativeEager]
	if f.Figures.(gate.NativeFigures).First != nil || !strings.Contains(f.Detail, "fusions") {
		t.Errorf("detail: %s", f.Detail)
	}
}

func fakeCell(device string) suite.Cell {
	return suite.Cell{Family: "fake", Precision: "fp32", Profile: "exact-1", Device: device}
}

func TestHost(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  suitetest.Faults
		verdict result.Verdict
		reason  gate.Reason
	}{
		{"the same bits", suitetest.Faults{}, result.Consistent, ""},
		{"another rounding", suitetest.Faults{Native: suitetest.ULPs(1)}, result.Consistent, ""},
		{"far off", suitetest.Faults{Native: suitetest.ULPs(1 << 12)}, result.Differs, gate.RoundingWorse},
		{"far off, where outputs jump", suitetest.Faults{Native: suitetest.ULPs(1 << 12), Jumps: true}, result.Consistent, ""},
		{"further off than outputs jump", suitetest.Faults{Native: suitetest.ULPs(1 << 16), Jumps: true}, result.Differs, gate.RoundingWorse},
		{"graph differs from eager", suitetest.Faults{ReadsChurn: true}, result.Differs, gate.OutputDiffers},
		{"a number is lost", suitetest.Faults{Native: suitetest.ULPs(0x7fc00000)}, result.Differs, gate.RoundingWorse},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, start := verify(t, c.faults, suite.HostDevice)
			if r.Verdict != c.verdict || r.Reason != c.reason {
				t.Fatalf("%s %s: %s", r.Verdict, r.Reason, r.Summary)
			}
			if !slices.Equal(r.Arms, []string{arm.ReferenceEager, arm.NativeEager, arm.NativeGraph}) || start.Processes != 6+passedOn(r)+nearbyOn(r) {
				t.Errorf("arms %v, %d processes", r.Arms, start.Processes)
			}
			if f := r.Gates[gate.Engaged].Arms[arm.ReferenceGraph]; f.Outcome != gate.Skipped || f.Reason != gate.NoGPU {
				t.Errorf("reference-graph: %+v", f)
			}
			if far := c.faults.Jumps || c.reason != ""; far != (nearbyOn(r) == 1) {
				t.Error("the reference runs on nearby inputs where native seems worse, and only there")
			}
			if r.Verdict == result.Consistent {
				if f := r.Gates[gate.Native]; f.Outcome != gate.Rounding {
					t.Errorf("NATIVE: %s", f.Outcome)
				}
				if !strings.Contains(r.Summary, "only a GPU can prove it exact") {
					t.Errorf("summary: %s", r.Summary)
				}
			}
		})
	}
}

// nearbyOn is 1 if a process of the reference was started for nearby inputs.
func nearbyOn(r result.Result) int {
	for _, f := range r.Gates[gate.Native].Arms {
		if figures, _ := f.Figures.(gate.RoundingFigures); figures.Nearby > 0 {
			return 1
		}
	}
	return 0
}

// passedOn is 1 if a process with a cold cache was started.
func passedOn(r result.Result) int {
	if r.Gates[gate.Processes].Outcome == gate.Passed {
		return 1
	}
	return 0
}

func TestErrors(t *testing.T) {
	unknown := diag.Problems{{Reason: "UNKNOWN_OPERATION", Summary: "no aten::foo", Path: "operations[1]"},
		{Reason: "UNKNOWN_OPERATION", Summary: "no aten::bar", Path: "operations[2]"}}
	refusal := func(code codes.Code, ps diag.Problems) error {
		return &host.CallError{Plugin: "predictor", Call: "Load", Code: code, Problems: ps}
	}
	for _, c := range []struct {
		name    string
		faults  suitetest.Faults
		verdict result.Verdict
		reason  gate.Reason
	}{
		{"unknown operations", suitetest.Faults{Refuses: refusal(codes.InvalidArgument, unknown)}, result.Refused, "UNKNOWN_OPERATION"},
		{"not implemented", suitetest.Faults{Refuses: refusal(codes.Unimplemented, unknown)}, result.Refused, "UNKNOWN_OPERATION"},
		{"broken inside", suitetest.Faults{Refuses: refusal(codes.Internal, diag.Problems{{Reason: "INTERNAL", Summary: "oops"}})}, result.Broken, "INTERNAL"},
		{"out of memory", suitetest.Faults{Refuses: refusal(codes.ResourceExhausted, diag.Problems{{Reason: "OUT_OF_MEMORY"}})}, result.Broken, "OUT_OF_MEMORY"},
		{"crash", suitetest.Faults{Crash: &host.Error{Reason: host.ReasonCrashed, Plugin: "predictor", Summary: "ended"}}, result.Broken, host.ReasonCrashed},
		{"native loads another recording", suitetest.Faults{OtherRecording: true}, result.Broken, "BROKEN"},
		{"no words", suitetest.Faults{Crash: errors.New("the disk is full")}, result.Broken, "BROKEN"},
		{"another recording", suitetest.Faults{OtherPrecision: true}, result.Refused, "WRONG_RECORDING"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := verify(t, c.faults, "cuda:0")
			if r.Verdict != c.verdict || r.Reason != c.reason || len(r.Problems) == 0 {
				t.Errorf("%s %s: %s, %v", r.Verdict, r.Reason, r.Summary, r.Problems)
			}
			if f := r.Gates[gate.Native]; f.Outcome != gate.Skipped || f.Reason != gate.NotReached {
				t.Errorf("NATIVE: %+v", f)
			}
		})
	}
}

// That an operation cannot be named is no reason not to say that bits differ.
func TestNativeWithoutTrace(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails func() error
		has   string
	}{
		{"there is none", func() error { return arm.ErrUnimplemented }, "eager: trace: " + arm.ErrUnimplemented.Error()},
		{"it panics", func() error { panic("no such bank") }, "panic: no such bank"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := verify(t, suitetest.Faults{Native: suitetest.ULPs(1), TraceFails: c.fails}, "cuda:0")
			f := r.Gates[gate.Native].Arms[arm.NativeEager]
			if r.Verdict != result.Differs || f.Reason != gate.NativeDiffers || !strings.Contains(f.Detail, "; the trace failed: ") ||
				!strings.HasSuffix(f.Detail, c.has) || !strings.HasPrefix(f.Reproduce, "parity verify") {
				t.Errorf("%s: %s %q, %q", r.Verdict, f.Reason, f.Detail, f.Reproduce)
			}
		})
	}
}

// A plugin's times are held to be numbers: a result with another could not be written.
func TestTimesThatAreNone(t *testing.T) {
	for _, ms := range []float64{math.NaN(), math.Inf(1), -1} {
		start := &suitetest.Starter{Faults: suitetest.Faults{Bench: suitetest.Bench{Milliseconds: map[string]float64{arm.NativeEager: ms}}}}
		r := (&suite.Suite{Start: start, Timing: suite.DefaultTiming()}).Verify(t.Context(), fakeCell("cuda:0"))
		if r.Verdict != result.Broken || !strings.HasPrefix(r.Summary, "native-eager: measured a step of ") {
			t.Errorf("%v ms: %s: %s", ms, r.Verdict, r.Summary)
		}
	}
}

// Where a native arm broke on the host, its gates say so, and not only that PyTorch has no GPU.
func TestBrokenOnHost(t *testing.T) {
	r, _ := verify(t, suitetest.Faults{Crash: &host.Error{Reason: host.ReasonCrashed, Plugin: "predictor", Summary: "ended"}}, "host")
	for _, id := range []gate.ID{gate.Engaged, gate.Replay, gate.Moved} {
		f := r.Gates[id]
		if f.Outcome != gate.Skipped || f.Reason != gate.NotReached || f.Arms[arm.ReferenceGraph].Reason != gate.NoGPU {
			t.Errorf("%s: %+v", id, f)
		}
	}
}

func TestInterrupted(t *testing.T) {
	for _, together := range []bool{false, true} {
		start := &suitetest.Starter{}
		ctx, cancel := context.WithCancel(t.Context())
		s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), Together: together, Turns: turns.New(1, 1)}
		s.Progress = func(e suite.Event) {
			if e.Step == 3 {
				cancel()
			}
		}
		r := s.Verify(ctx, fakeCell("cuda:0"))
		if r.Verdict != result.Broken || r.Reason != "INTERRUPTED" || start.Alive != 0 {
			t.Errorf("%s %s, %d processes alive", r.Verdict, r.Reason, start.Alive)
		}
	}
}

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	s := &suite.Suite{Start: &suitetest.Starter{}, Timing: suite.DefaultTiming(), Keep: dir}
	r := s.Verify(t.Context(), fakeCell("cuda:0"))
	if r.Verdict != result.Exact {
		t.Fatal(r.Summary)
	}
	cell := filepath.Join(dir, "classify-fake-s-8-b1-predict-fp32-cuda")
	for path, want := range map[string]string{
		"recording.pb":                     r.Digests.Recording,
		"weights.safetensors":              r.Digests.Weights,
		"inputs/twin/images.tensor":        r.Digests.Inputs["twin"]["images"],
		"native-graph/photo/logits.tensor": r.Digests.Outputs[arm.NativeGraph]["photo"]["logits"],
	} {
		data, err := os.ReadFile(filepath.Join(cell, path))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := digest.Bytes(data); got != want { // what b3sum prints
			t.Errorf("%s: %s instead of %s", path, got, want)
		}
	}
	list, err := os.ReadFile(filepath.Join(cell, "recording.txt"))
	if err != nil || !strings.Contains(string(list), "    1  aten::mul.Tensor(self float32[1,3,8,8]") || !strings.Contains(string(list), "# head fake.py:7") {
		t.Errorf("%v\n%s", err, list)
	}
}
