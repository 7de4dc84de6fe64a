package gate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

func scalars(values ...float32) Outputs {
	spec := tensor.Spec{Name: "y", DType: tensor.Float32, Sizes: []int64{int64(len(values))}}
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = append(data, byte(v), 0, 0, 64)
	}
	return Outputs{NewOutput(spec, data)}
}

func taken(want, got Outputs, replayed bool) Taken {
	return Taken{Probe: "noise", Want: want, Got: got, Replayed: replayed}
}

// Bits come before counters, a failure before what is not known, and the first before the next.
func TestSituations(t *testing.T) {
	right, wrong := scalars(1, 2), scalars(1, 3)
	good := taken(right, right, true)
	counts := func(captures, fallbacks int64) arm.Stats { return arm.Stats{Captures: captures, Fallbacks: fallbacks} }
	for _, c := range []struct {
		name     string
		passages []Passage
		outcome  Outcome
		reason   Reason
	}{
		{"healthy", []Passage{{Situation: arm.OtherStream, Steps: []Taken{good, good}}}, Passed, ""},
		{"eager on the way", []Passage{{Situation: arm.Moved, Steps: []Taken{taken(right, right, false), good}}}, Passed, ""},
		{"eager on another stream", []Passage{{Situation: arm.OtherStream, Steps: []Taken{taken(right, right, false), good}}}, Failed, NotReplayed},
		{"captured on another stream", []Passage{{Situation: arm.OtherStream, After: counts(1, 0), Steps: []Taken{good}}}, Failed, NotReplayed},
		{"no graph again", []Passage{{Situation: arm.OtherMode, Steps: []Taken{good, taken(right, right, false)}}}, Failed, NotReplayed},
		{"fell back", []Passage{{Situation: arm.Moved, After: counts(0, 1), Steps: []Taken{good}}}, Failed, FellBack},
		{"wrong and fell back", []Passage{{Situation: arm.Moved, After: counts(0, 1), Steps: []Taken{taken(right, wrong, false), good}}}, Failed, PointerMoved},
		{"nothing captured", []Passage{{Situation: arm.OtherThread, Steps: []Taken{good}}}, Failed, NotCaptured},
		{"captured in the thread", []Passage{{Situation: arm.OtherThread, Entered: counts(1, 0), After: counts(1, 0), Steps: []Taken{good}}}, Passed, ""},
		{"unknown", []Passage{{Situation: arm.OtherStream, Unknown: true}}, Skipped, NotApplicable},
		{"unknown before a failure", []Passage{{Situation: arm.Moved, Unknown: true}, {Situation: arm.Updated, Steps: []Taken{taken(right, wrong, true)}}}, Failed, ModelMutated},
		{"one device", []Passage{{Situation: arm.OtherDevice, Refused: diag.New("NO_SECOND_DEVICE", "", "one")}}, Skipped, NoSecondDevice},
		{"its own reason", []Passage{{Situation: arm.Moved, Refused: diag.New("MODEL_MUTATED", "", "a head was replaced")}}, Failed, ModelMutated},
		{"no reason", []Passage{{Situation: arm.Moved, Refused: errors.New("oops")}}, Failed, SituationFailed},
		{"another shape", []Passage{{Situation: arm.OtherMode, Steps: []Taken{taken(right, scalars(1), true)}}}, Failed, OutputsOfOtherShape},
	} {
		f, err := JudgeSituation(c.passages...)
		if err != nil || f.Outcome != c.outcome || f.Reason != c.reason || (f.Detail == "") != (c.outcome == Passed) {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
	old := Run{"noise": wrong}
	f, err := JudgeSituation(Passage{Situation: arm.Updated, Old: old, Steps: []Taken{taken(right, wrong, true)}})
	if want := "step 1 after update, probe noise: it gives what was right before the weights changed"; err != nil || f.Detail != want {
		t.Errorf("%+v, %v", f, err)
	}
	f, err = JudgeSituation(Passage{Situation: arm.Moved, Steps: []Taken{good, taken(right, wrong, true)}, Facts: []recording.Setting{{Key: "moved", Value: "3"}, {Key: "bytes", Value: "9"}}})
	if err != nil || !strings.HasPrefix(f.Detail, "step 2 after move, probe noise, output y: 1 of 2 elements differ") {
		t.Errorf("%+v, %v", f, err)
	}
	if facts := f.Figures.(SituationFigures).Passages[0].Facts; len(facts) != 2 || facts["moved"] != "3" {
		t.Errorf("facts %v", facts)
	}
	f, err = JudgeSituation(Passage{Situation: arm.Moved, Steps: []Taken{good}, Refused: errors.New("oops"), InStep: true})
	if want := "step 2 after move: oops"; err != nil || f.Detail != want {
		t.Errorf("%+v, %v", f, err)
	}
	order := []string{"noise"}
	if f, err := JudgeMoved(Run{"noise": right}, Run{"noise": right}, order); err != nil || f.Reason != UpdateNotSeen || f.Outcome != Failed {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := JudgeMoved(Run{"noise": right}, nil, order); err != nil || f.Outcome != Passed {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestFailures(t *testing.T) {
	right, wrong := scalars(1, 2), scalars(1, 3)
	eager, replay := taken(right, right, false), taken(right, right, true)
	failed := func(change func(*Passage)) Passage {
		p := Passage{Situation: arm.FailsCapture, After: arm.Stats{Fallbacks: 1, EagerSteps: 2, Latched: true}, Steps: []Taken{eager, eager}}
		change(&p)
		return p
	}
	back := func(change func(*Passage)) Passage {
		p := Passage{Situation: arm.Released, After: arm.Stats{Captures: 1}, Steps: []Taken{eager, replay}}
		change(&p)
		return p
	}
	same := func(*Passage) {}
	for _, c := range []struct {
		name         string
		failed, back func(*Passage)
		reason       Reason
	}{
		{"healthy", same, same, ""},
		{"no failure", func(p *Passage) { p.After = arm.Stats{Captures: 1} }, same, CaptureSurvived},
		{"wrong", func(p *Passage) { p.Steps = []Taken{eager, taken(right, wrong, false)} }, same, ContextPoisoned},
		{"refused", func(p *Passage) { p.Refused, p.InStep = errors.New("lost"), true }, same, ContextPoisoned},
		{"not latched", func(p *Passage) { p.After.Latched = false }, same, NotLatched},
		{"captured again", func(p *Passage) { p.After.Captures = 1 }, same, NotLatched},
		{"no way back", same, func(p *Passage) { p.After.Captures = 0 }, RecaptureFailed},
		{"still latched", same, func(p *Passage) { p.After.Latched = true }, RecaptureFailed},
		{"eager for ever", same, func(p *Passage) { p.Steps = []Taken{eager} }, RecaptureFailed},
		{"wrong again", same, func(p *Passage) { p.Steps = []Taken{taken(right, wrong, true)} }, RecaptureFailed},
		{"refused again", same, func(p *Passage) { p.Refused = errors.New("lost") }, RecaptureFailed},
	} {
		f, err := JudgeFailure(failed(c.failed), back(c.back))
		if err != nil || f.Reason != c.reason || (f.Outcome == Passed) != (c.reason == "") {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
}

func TestSeeds(t *testing.T) {
	a, b := scalars(1), scalars(2)
	draw := func(generator string, all ...Outputs) []Drawing {
		var ds []Drawing
		for i, o := range all {
			ds = append(ds, Drawing{Seed: 1, Number: i + 1, Probe: "noise", Outputs: o, Generator: generator})
		}
		return ds
	}
	for _, c := range []struct {
		name       string
		eager, got []Drawing
		reason     Reason
		random     bool
	}{
		{"nothing is drawn", draw("", a, a), draw("", a, a), "", false},
		{"drawn as eager", draw("g", a, b), draw("g", a, b), "", true},
		{"only one has a generator", draw("g", a, b), draw("", a, b), "", true},
		{"the same again", draw("g", a, b), draw("g", a, a), RNGNotReplayed, true},
		{"another", draw("g", a, b), draw("g", b, a), RNGStreamDiffers, true},
		{"another state", draw("g", a, a), draw("h", a, a), RNGStreamDiffers, false},
		{"another shape", draw("g", a, b), draw("g", a, scalars(2, 2)), OutputsOfOtherShape, true},
	} {
		f, err := JudgeSeed(c.eager, c.got)
		if err != nil || f.Reason != c.reason || (f.Outcome == Passed) != (c.reason == "") || f.Figures.(SeedFigures).Random != c.random {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
	if _, err := JudgeSeed(draw("", a), nil); err == nil {
		t.Error("steps that are missing are no error")
	}
}

// fed is a recording of a convolution and a product that are needed, of a product of weights alone, and of one that nobody reads.
func fed() *recording.Recording {
	value := func(storage int) recording.Value {
		return recording.Value{Storage: storage, DType: tensor.Float32, Sizes: []int64{2}, Strides: []int64{1}}
	}
	of := func(i int) recording.Argument { return recording.Argument{Kind: recording.ValueOf, Value: i} }
	return &recording.Recording{Storages: make([]recording.Storage, 6), Inputs: []recording.Named{{Name: "images", Value: 0}},
		Outputs: []recording.Named{{Name: "y", Value: 4}},
		Values:  []recording.Value{value(0), value(1), value(2), value(3), value(4), value(5)},
		Operations: []recording.Operation{
			{Name: "aten::convolution", Arguments: []recording.Argument{of(0), of(1)}, Results: []recording.Argument{of(2)}},
			{Name: "aten::mm", Arguments: []recording.Argument{of(1), of(1)}, Results: []recording.Argument{of(3)}},
			{Name: "aten::mm", Arguments: []recording.Argument{{Kind: recording.List, Items: []recording.Argument{of(2), of(3)}}}, Results: []recording.Argument{of(4)}},
			{Name: "aten::mm", Arguments: []recording.Argument{of(2), of(1)}, Results: []recording.Argument{of(5)}},
		}}
}

func TestNodes(t *testing.T) {
	prepared := arm.PrepareReply{Captured: true, Nodes: 9}
	for _, c := range []struct {
		name   string
		kinds  map[string]int64
		gpu    bool
		reason Reason
		want   Outcome
	}{
		{"enough", map[string]int64{arm.KernelNode: 2, arm.CopyNode: 1, arm.SetNode: 3, arm.EventNode: 1}, true, "", Passed},
		{"too few", map[string]int64{arm.KernelNode: 1, arm.CopyNode: 8}, true, OffStreamWork, Failed},
		{"graphs in the graph", map[string]int64{arm.GraphNode: 1}, true, "", Passed},
		{"none", map[string]int64{arm.CopyNode: 9}, true, EmptyGraph, Failed},
		{"an empty graph", map[string]int64{}, true, EmptyGraph, Failed},
		{"frees", map[string]int64{arm.KernelNode: 9, arm.FreeNode: 1}, true, AllocInRegion, Failed},
		{"allocates", map[string]int64{arm.KernelNode: 9, arm.AllocNode: 1}, true, AllocInRegion, Failed},
		{"uploads", map[string]int64{arm.KernelNode: 9, arm.UploadNode: 1}, true, UploadInRegion, Failed},
		{"fetches", map[string]int64{arm.KernelNode: 9, arm.FetchNode: 1}, true, FetchInRegion, Failed},
		{"calls the host", map[string]int64{arm.KernelNode: 9, arm.HostNode: 1}, true, HostInRegion, Failed},
		{"nobody can look", nil, true, NotApplicable, Skipped},
		{"commands are counted", nil, false, "", Passed},
	} {
		f := JudgeNodes(prepared, arm.Stats{NodesByKind: c.kinds}, fed(), c.gpu)
		if f.Outcome != c.want || f.Reason != c.reason || f.Figures.(NodesFigures).Work != 2 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// What nobody needs is no work, nor is what has no elements; the last operation is looked at like any other.
func TestWork(t *testing.T) {
	last := fed()
	last.Outputs = append(last.Outputs, recording.Named{Name: "z", Value: 5})
	if n := work(last); n != 3 {
		t.Errorf("%d operations are work where the last one is needed, too", n)
	}
	single := fed()
	single.Values[2].Sizes = []int64{1}
	if n := work(single); n != 2 {
		t.Errorf("%d operations are work where one gives a single element", n)
	}
	empty := fed()
	empty.Values[2].Sizes = []int64{0}
	if n := work(empty); n != 1 {
		t.Errorf("%d operations are work where one gives no elements", n)
	}
}

func TestMemory(t *testing.T) {
	at := func(allocated, reserved int64) arm.Stats {
		return arm.Stats{AllocatedBytes: allocated, ReservedBytes: reserved}
	}
	for _, c := range []struct {
		name                   string
		fresh, replayed, again arm.Stats
		reason                 Reason
	}{
		{"level", at(5, 9), at(5, 9), at(5, 9), ""},
		{"less", at(5, 9), at(4, 9), at(3, 9), ""},
		{"more by replays", at(5, 9), at(6, 9), at(6, 9), MemoryGrowth},
		{"more by replays, for a while", at(5, 9), at(6, 9), at(5, 9), MemoryGrowth},
		{"more by a capture, beside less", at(5, 9), at(3, 9), at(4, 9), MemoryGrowth},
		{"more by a capture", at(5, 9), at(5, 9), at(6, 9), MemoryGrowth},
		{"reserved", at(5, 9), at(5, 9), at(5, 10), MemoryGrowth},
		{"only reserved is counted", at(0, 9), at(0, 9), at(0, 9), ""},
		{"nobody counts", at(0, 0), at(0, 0), at(0, 0), NotApplicable},
	} {
		want := map[Reason]Outcome{"": Passed, MemoryGrowth: Failed, NotApplicable: Skipped}[c.reason]
		if f := JudgeMemory(Holding{Fresh: c.fresh, Replayed: c.replayed, Again: c.again, Replays: 20}); f.Reason != c.reason || f.Outcome != want {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	if f := JudgeMemory(Holding{Unknown: true}); f.Reason != NotApplicable || f.Outcome != Skipped {
		t.Errorf("%+v", f)
	}
	if f := JudgeMemory(Holding{Refused: diag.New("RECAPTURE_FAILED", "", "no")}); f.Reason != RecaptureFailed || f.Outcome != Failed {
		t.Errorf("%+v", f)
	}
}

func TestProcesses(t *testing.T) {
	run := func(v float32) Run { return Run{"noise": scalars(v)} }
	all := []Process{{Arm: arm.ReferenceEager, Side: "reference", Run: run(1)}, {Arm: arm.ReferenceEager, Side: "reference", Run: run(1)},
		{Arm: arm.NativeEager, Side: "native", Run: run(2)}, {Arm: arm.NativeGraph, Side: "native", Run: run(2)},
		{Arm: arm.NativeGraph, Side: "native", Cold: true, Run: run(2)}}
	for _, c := range []struct {
		name   string
		change func(all []Process) []Process
		reason Reason
	}{
		{"agree", func(a []Process) []Process { return a }, ""},
		{"one differs", func(a []Process) []Process { a[1].Run = run(3); return a }, ProcessDiffers},
		{"the cold one differs", func(a []Process) []Process { a[4].Run = run(3); return a }, ColdDiffers},
		{"another shape", func(a []Process) []Process { a[3].Run = Run{"noise": scalars(2, 2)}; return a }, OutputsOfOtherShape},
		{"four", func(a []Process) []Process { return a[1:] }, TooFewProcesses},
		{"none is cold", func(a []Process) []Process { a[4].Cold = false; return a }, TooFewProcesses},
	} {
		f, err := JudgeProcesses(c.change(slices.Clone(all)), 1, []string{"noise"})
		if err != nil || f.Reason != c.reason || (f.Outcome == Passed) != (c.reason == "") {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
}

// Results from before a gate was there have no line for it.
func TestOlderResults(t *testing.T) {
	old := map[ID]Finding{SameRecording: {}, Native: {}}
	if all := Of(Predict, old); slices.Contains(all, OtherStream) || !slices.Contains(all, Reproduces) {
		t.Errorf("%v", all)
	}
	if all := Of(Predict, nil); !slices.Contains(all, OtherStream) {
		t.Errorf("%v", all)
	}
	old[Shape] = Finding{}
	if all := Of(Predict, old); !slices.Contains(all, Shape) || slices.Contains(all, Seam) {
		t.Errorf("%v", all)
	}
	if all := Order(Predict); len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) || slices.Contains(Order(Train), OtherStream) {
		t.Errorf("%v", all)
	}
}
