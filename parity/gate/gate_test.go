package gate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/compare"
)

// Every gate has a section in docs/gates.md. That every reason has its place there internal/lint checks.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Concat(Order(Train), Order(Predict), []ID{Seam, Shape}) {
		if !strings.Contains(string(page), "\n## "+string(id)+"\n") {
			t.Errorf("docs/gates.md lacks the gate %s", id)
		}
	}
}

func TestSum(t *testing.T) {
	passed, failed := Finding{Outcome: Passed}, Finding{Outcome: Failed, Reason: StaleOutput, Detail: "old", Reproduce: "again"}
	for _, c := range []struct {
		name string
		arms map[string]Finding
		want Finding
	}{
		{"nothing", nil, Finding{Outcome: Skipped, Reason: NotReached}},
		{"all passed", map[string]Finding{"a": passed, "b": passed}, passed},
		{"one failed", map[string]Finding{"a": passed, "b": failed, "c": Skip(NoGPU, "")},
			Finding{Outcome: Failed, Reason: StaleOutput, Detail: "b: old", Reproduce: "again"}},
		{"one skipped", map[string]Finding{"a": Skip(NoGPU, "no"), "b": passed}, passed},
		{"all skipped", map[string]Finding{"a": Skip(NoGPU, "no"), "b": Skip(NotReached, "")}, Finding{Outcome: Skipped, Reason: NoGPU, Detail: "a: no"}},
		{"rounding", map[string]Finding{"a": passed, "b": {Outcome: Rounding}}, Finding{Outcome: Rounding}},
	} {
		got := Sum(c.arms)
		if got.Outcome != c.want.Outcome || got.Reason != c.want.Reason || got.Detail != c.want.Detail || got.Reproduce != c.want.Reproduce {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func outputs(values ...byte) Outputs {
	var all Outputs
	for i, v := range values {
		all = append(all, NewOutput(tensor.Spec{Name: string(rune('a' + i)), DType: tensor.Uint8, Sizes: []int64{1}}, []byte{v}))
	}
	return all
}

func TestSameRecording(t *testing.T) {
	change := []recording.Difference{{Path: "operations[1]", A: "1", B: "2"}}
	for _, c := range []struct {
		name   string
		others []Recorded
		want   Reason
	}{
		{"all the same", []Recorded{{}, {ByInput: true}, {}}, ""},
		{"by input", []Recorded{{}, {Changes: change, ByInput: true}, {Changes: change}}, RecordingChangesWithInput},
		{"by step", []Recorded{{Changes: change}, {Changes: change, ByInput: true}}, RecordingChangesWithStep},
		{"by a later step", []Recorded{{}, {ByInput: true}, {Changes: change}}, RecordingChangesWithStep},
	} {
		if f := JudgeSameRecording(2, c.others); f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	f := JudgeSameRecording(2, []Recorded{{What: "probe noise, step 2", Changes: change}})
	if figures := f.Figures.(RecordingFigures); figures.Recordings != 2 || figures.Operations != 2 || len(figures.Changes) != 1 {
		t.Errorf("%+v", figures)
	}
	if want := "the first recording and that of probe noise, step 2: operations[1]: 1 and 2"; f.Detail != want {
		t.Errorf("%q instead of %q", f.Detail, want)
	}
}

func TestEngaged(t *testing.T) {
	good := Engagement{arm.PrepareReply{Captured: true, Nodes: 3}, arm.Stats{Captures: 1, EagerSteps: 3, Replays: 2, Launches: 9, Synchronisations: 1},
		arm.Stats{Captures: 1, EagerSteps: 3, Replays: 17, Launches: 54, Synchronisations: 1}, 15}
	for _, c := range []struct {
		name  string
		spoil func(*Engagement)
		want  Reason
	}{
		{"engaged; eager steps of the warm-up are forgiven", func(*Engagement) {}, ""},
		{"no graph", func(e *Engagement) { e.Prepared.Captured = false }, NotCaptured},
		{"no capture counted", func(e *Engagement) { e.Before.Captures, e.After.Captures = 0, 0 }, NotCaptured},
		{"a fallback", func(e *Engagement) { e.After.Fallbacks = 1 }, FellBack},
		{"one replay less", func(e *Engagement) { e.After.Replays-- }, NotReplayed},
		{"an eager step", func(e *Engagement) { e.After.EagerSteps++ }, NotReplayed},
		{"captured again", func(e *Engagement) { e.After.Captures++ }, CapturedAgain},
		{"a wait inside a step", func(e *Engagement) { e.After.Synchronisations++ }, Synchronised},
		{"nothing launched", func(e *Engagement) { e.After.Launches = e.Before.Launches }, NotLaunched},
	} {
		e := good
		c.spoil(&e)
		if f := JudgeEngaged(e); f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestWatch(t *testing.T) {
	eager := Run{"A": outputs(1, 7), "B": outputs(2, 7)}
	replay := func(t *testing.T, times int, a, b Outputs) *Watch {
		w := NewWatch(eager)
		for range times {
			for probe, got := range map[string]Outputs{"A": a, "B": b} {
				if err := w.Replayed(probe, got); err != nil {
					t.Fatal(err)
				}
			}
		}
		return w
	}
	for _, c := range []struct {
		name          string
		times         int
		a, b          Outputs
		replay, stale Reason
	}{
		{"right", 5, eager["A"], eager["B"], "", ""},
		{"too few", 4, eager["A"], eager["B"], TooFewReplays, ""},
		{"an output that both probes share is not stale", 5, outputs(9, 7), eager["B"], OutputDiffers, ""},
		{"stale", 5, eager["A"], eager["A"], OutputDiffers, StaleOutput},
		{"poison", 5, outputs(Poison, 7), eager["B"], OutputNotWritten, ""},
		{"an output less", 5, outputs(1), eager["B"], OutputsOfOtherShape, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := replay(t, c.times, c.a, c.b)
			if f := w.Replay(); f.Reason != c.replay || (c.replay == "") != (f.Outcome == Passed) {
				t.Errorf("REPLAY: %+v", f)
			}
			if figures := w.NotStale().Figures.(map[string]int); figures["replays"] != 2*c.times || figures["other_probes"] != 1 {
				t.Errorf("NOT-STALE: %+v", figures)
			}
			if f := w.NotStale(); f.Reason != c.stale || (c.stale == "") != (f.Outcome == Passed) {
				t.Errorf("NOT-STALE: %+v", f)
			}
			if n := len(w.Replay().Figures.(ReplayFigures).Differences); n > maxDifferences {
				t.Errorf("%d differences are listed", n)
			}
		})
	}
	w := replay(t, 5, eager["A"], eager["B"])
	w.Held("A", eager["A"], eager["A"])
	if w.Replay().Outcome != Passed {
		t.Error("a result that stayed as it was fails")
	}
	w.Held("A", eager["A"], eager["B"])
	if f := w.Replay(); f.Reason != OutputOverwritten {
		t.Errorf("a result that changed: %+v", f)
	}
}

func TestRounding(t *testing.T) {
	tensorOf := func(d tensor.DType, bits ...byte) Run {
		return Run{"A": {NewOutput(tensor.Spec{Name: "y", DType: d, Sizes: []int64{int64(len(bits)) / d.Size()}}, bits)}}
	}
	// 1.0 and neighbours as bfloat16: 3f80, 3f81 (+2^-7), ...
	exact := Run{"A": {NewOutput(tensor.Spec{Name: "y", DType: tensor.Float64, Sizes: []int64{1}}, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f})}}
	for _, c := range []struct {
		name              string
		reference, native byte
		want              Reason
		ratio             float64
	}{
		{"both exact", 0x80, 0x80, "", 0},
		{"native off by one where PyTorch is exact", 0x80, 0x81, "", 2},
		{"native off by three where PyTorch is exact", 0x80, 0x83, RoundingWorse, 6},
		{"native four times as far", 0x81, 0x84, "", 4},
		{"native five times as far", 0x81, 0x85, RoundingWorse, 5},
	} {
		f, err := JudgeRounding(exact, tensorOf(tensor.BFloat16, c.reference, 0x3f), tensorOf(tensor.BFloat16, c.native, 0x3f), []string{"A"})
		if err != nil {
			t.Fatal(err)
		}
		o := f.Figures.(RoundingFigures).Outputs[0]
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Rounding) || o.Native.Max/max(o.Reference.Max, o.Floor) != c.ratio {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	// Where the reference itself is as far off on inputs next to these, native may be.
	bf := func(low byte) Run { return tensorOf(tensor.BFloat16, low, 0x3f) }
	for _, c := range []struct {
		nearby []Run
		want   Reason
	}{{[]Run{bf(0x80)}, RoundingWorse}, {[]Run{bf(0x80), bf(0x90)}, ""}, {[]Run{bf(0x90)}, ""}, {[]Run{bf(0x83)}, RoundingWorse}} {
		f, err := JudgeRounding(exact, bf(0x80), bf(0x90), []string{"A"}, c.nearby...)
		if err != nil {
			t.Fatal(err)
		}
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Rounding && f.Detail != "") || f.Figures.(RoundingFigures).Nearby != len(c.nearby) {
			t.Errorf("beside %d runs: %+v", len(c.nearby), f)
		}
	}
	f, err := JudgeRounding(exact, bf(0x80), Run{"A": outputs(1)}, []string{"A"})
	if err != nil || f.Outcome != Failed || f.Reason != OutputsOfOtherShape {
		t.Errorf("an output of another name: %+v, %v", f, err)
	}
	named := func(name string, run Run) Run {
		o := run["A"][0]
		o.Name = name
		return Run{"A": {o}}
	}
	if _, err := JudgeRounding(named("z", exact), bf(0x80), bf(0x80), []string{"A"}); err == nil {
		t.Error("no error where the double-precision arm gives another output")
	}
	two := func(run Run) Run { return Run{"A": {run["A"][0], named("z", run)["A"][0]}} }
	if f, err := JudgeRounding(two(exact), two(bf(0x80)), two(bf(0x90)), []string{"A"}); err != nil || !strings.HasPrefix(f.Detail, "output y is off") {
		t.Errorf("two outputs that are worse: %+v, %v", f, err)
	}
	// The bits are the same if they are in every probe.
	both := func(a, b Run) Run { return Run{"A": a["A"], "B": b["A"]} }
	for same, native := range map[bool]Run{true: both(bf(0x80), bf(0x80)), false: both(bf(0x81), bf(0x80))} {
		f, err := JudgeRounding(both(exact, exact), both(bf(0x80), bf(0x80)), native, []string{"A", "B"})
		if err != nil || f.Outcome != Rounding || f.Figures.(RoundingFigures).Same != same {
			t.Errorf("same bits %t: %+v, %v", same, f, err)
		}
	}
	if _, err := JudgeRounding(exact, bf(0x80), bf(0x90), []string{"A"}, Run{}); err == nil {
		t.Error("no error where a run nearby lacks an output")
	}
	if o := compare.Roundoff(tensor.BFloat16); o != 1.0/256 {
		t.Errorf("half a ULP of bfloat16 is %v", o)
	}
	if _, err := JudgeRounding(Run{"A": nil}, tensorOf(tensor.Uint8, 1), tensorOf(tensor.Uint8, 1), []string{"A"}); err == nil {
		t.Error("no error where the double-precision arm lacks an output")
	}
}

func TestShapesNameTheOutputs(t *testing.T) {
	named := func(names ...string) (all Outputs) {
		for _, name := range names {
			all = append(all, Output{Spec: tensor.Spec{Name: name}})
		}
		return all
	}
	for _, c := range []struct {
		got  Outputs
		want string
	}{
		{named("a", "b", "c"), "<nil>"},
		{named("b"), "1 outputs instead of 3; missing: a, c"},
		{named("a", "b", "c", "d"), "4 outputs instead of 3; not wanted: d"},
		{named("a", "x"), "2 outputs instead of 3; missing: b, c; not wanted: x"},
	} {
		if err := shapes(named("a", "b", "c"), c.got); fmt.Sprint(err) != c.want {
			t.Errorf("%v instead of %s", err, c.want)
		}
	}
}
