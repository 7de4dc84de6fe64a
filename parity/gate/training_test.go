package gate

import (
	"slices"
	"strings"
	"testing"

	"samebits/bridge/tensor"
)

func byteSpecs(names ...string) []tensor.Spec {
	var specs []tensor.Spec
	for _, name := range names {
		specs = append(specs, tensor.Spec{Name: name, DType: tensor.Uint8, Sizes: []int64{1}})
	}
	return specs
}

// grown makes a history of one-byte tensors: a text a step, a byte a tensor.
func grown(arm string, first int, specs []tensor.Spec, bases []*History, steps ...string) *History {
	h := NewHistory(arm, Main, first, specs, bases...)
	for _, step := range steps {
		h.Stepped(split(step))
	}
	return h
}

func split(step string) [][]byte {
	var data [][]byte
	for i := range step {
		data = append(data, []byte{step[i]})
	}
	return data
}

var pair = byteSpecs("loss", "param.w")

func TestHistory(t *testing.T) {
	specs := byteSpecs("param.a", "grad.a", "grad.b", "loss", "buffer.n", "ema.a", "momentum.a")
	base := grown("eager", 1, specs, nil, "1234567", "1234567", "1234567")
	got := grown("graph", 1, specs, []*History{base}, "1234567", "abcdefg", "hijklmn")
	parting := got.Parting(base)
	if parting == nil || parting.Step != 2 {
		t.Fatalf("parting %+v", parting)
	}
	var order []string
	for _, kept := range parting.Tensors {
		order = append(order, kept.Name+"="+string(kept.Data))
	}
	if want := "buffer.n=e loss=d grad.b=c grad.a=b momentum.a=g param.a=a ema.a=f"; strings.Join(order, " ") != want {
		t.Errorf("kept %v instead of %s", order, want)
	}
	if got.Parting(grown("other", 1, specs, nil)) != nil {
		t.Error("a parting from a history that it was never held against")
	}
	shuffled := grown("native", 1, []tensor.Spec{specs[3], specs[0], specs[1], specs[2], specs[6], specs[5], specs[4]},
		[]*History{base}, "4123765", "4123765", "4123765")
	if shuffled.Parting(base) != nil || JudgeState(base, shuffled).Outcome != Passed {
		t.Error("another order of the same tensors is a difference")
	}
	if string(shuffled.List(2)) != string(base.List(2)) || string(got.List(2)) == string(base.List(2)) {
		t.Error("lists of digests do not tell what they should")
	}
	if base.Digest(4, "loss") != "" || base.Digest(0, "loss") != "" || base.Digest(1, "none") != "" {
		t.Error("a digest of what is not there")
	}
}

func TestJudgeState(t *testing.T) {
	base := grown("eager", 1, pair, nil, "ab", "cd", "ef")
	for _, c := range []struct {
		name string
		got  *History
		want Reason
		says string
	}{
		{"the same", grown("graph", 1, pair, nil, "ab", "cd", "ef"), "", ""},
		{"later steps alone", grown("graph", 2, pair, nil, "cd", "ef"), "", ""},
		{"a parameter", grown("graph", 1, pair, nil, "ab", "cx", "yz"), StateDiffers, "step 2, param.w"},
		{"a step less", grown("graph", 1, pair, nil, "ab", "cd"), TooFewReplays, "steps 1 to 2"},
		{"one tensor more", grown("graph", 1, byteSpecs("loss", "param.w", "grad.w"), nil, "ab0", "cd0", "ef0"), OtherTensors, "graph has grad.w"},
		{"one tensor less", grown("graph", 1, pair[:1], nil, "a", "c", "e"), OtherTensors, "eager has param.w"},
	} {
		f := JudgeState(base, c.got)
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	wide := []tensor.Spec{pair[0], {Name: "param.w", DType: tensor.Uint8, Sizes: []int64{1, 1}}}
	if f := JudgeState(base, grown("graph", 1, wide, nil, "ab", "cd", "ef")); f.Reason != OtherTensors {
		t.Errorf("another shape: %+v", f)
	}
}

func TestJudgeReplayedSteps(t *testing.T) {
	steps := []string{"ab", "cd", "ef", "gh", "ij"}
	base := grown("eager", 1, pair, nil, steps...)
	follow := func(steps ...string) *History { return grown("graph", 1, pair, []*History{base}, steps...) }
	held := follow(steps[:2]...)
	held.Held(split("ax"))
	for _, step := range steps[2:] {
		held.Stepped(split(step))
	}
	if f := JudgeReplayedSteps(base, held); f.Reason != OutputOverwritten || !strings.Contains(f.Detail, "param.w of step 1") {
		t.Errorf("overwritten: %+v", f)
	}
	for _, c := range []struct {
		name  string
		got   *History
		want  Reason
		stale Reason
	}{
		{"the same", follow(steps...), "", ""},
		{"another parameter is no matter of outputs", follow("ab", "cx", "ef", "gh", "ij"), "", ""},
		{"another loss", follow("ab", "xd", "ef", "gh", "ij"), OutputDiffers, ""},
		{"the loss of an earlier step", follow("ab", "ad", "ef", "gh", "ij"), OutputDiffers, StaleOutput},
		{"the loss of a later step", follow("ab", "gd", "ef", "gh", "ij"), OutputDiffers, StaleOutput},
		{"poison", follow("ab", string([]byte{Poison, 'd'}), "ef", "gh", "ij"), OutputNotWritten, ""},
	} {
		if f := JudgeReplayedSteps(base, c.got); f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) {
			t.Errorf("%s: REPLAY %+v", c.name, f)
		}
		if f := JudgeStaleSteps(base, c.got); f.Reason != c.stale || (c.stale == "") != (f.Outcome == Passed) {
			t.Errorf("%s: NOT-STALE %+v", c.name, f)
		}
	}
	more := grown("graph", 1, byteSpecs("loss", "param.w", "grad.w"), []*History{base}, string([]byte{Poison, 'b', 'x'}))
	if f := JudgeReplayedSteps(base, more); f.Reason != OtherTensors {
		t.Errorf("another tensor, and poison in a loss: %+v", f)
	}
	few := grown("eager", 1, pair, nil, steps[:3]...)
	if f := JudgeReplayedSteps(few, grown("graph", 1, pair, nil, steps[:3]...)); f.Reason != TooFewReplays || f.Outcome != Failed {
		t.Errorf("three steps: %+v", f)
	}
	constant := grown("eager", 1, pair, nil, "ab", "ab", "ab", "ab", "ab")
	if f := JudgeStaleSteps(constant, grown("graph", 1, pair, nil, "ab", "ab", "ab", "ab", "ab")); f.Outcome != Passed {
		t.Errorf("a loss that never changes is taken for stale: %+v", f)
	}
}

func TestJudgeHyper(t *testing.T) {
	base := grown("eager", 1, pair, nil, "ab", "cd")
	frozen := Frozen{"lr": grown("eager", 1, pair, nil, "ab", "xy"), "momentum": grown("eager", 1, pair, nil, "ab", "cz")}
	engaged := Finding{Outcome: Passed}
	for _, c := range []struct {
		name    string
		got     *History
		engaged Finding
		want    Reason
		says    string
	}{
		{"obeys", grown("graph", 1, pair, nil, "ab", "cd"), engaged, "", ""},
		{"another value", grown("graph", 1, pair, nil, "ab", "12"), engaged, HyperDiffers, "step 2, loss"},
		{"frozen", grown("graph", 1, pair, nil, "ab", "cz"), engaged, HyperStale, "momentum keeps"},
		{"captured anew", grown("graph", 1, pair, nil, "ab", "cd"), Finding{Outcome: Failed, Reason: CapturedAgain}, CapturedAgain, "while"},
	} {
		f := JudgeHyper(base, c.got, frozen, c.engaged)
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	f := JudgeHyperSeen(base, frozen)
	if f.Outcome != Passed || f.Figures.(StateFigures).Frozen["lr"] != 2 || f.Figures.(StateFigures).Frozen["momentum"] != 1 {
		t.Errorf("%+v", f)
	}
	frozen["ema_decay"] = base
	if f := JudgeHyperSeen(base, frozen); f.Reason != HyperNotSeen || !strings.Contains(f.Detail, "ema_decay") {
		t.Errorf("no difference: %+v", f)
	}
}

func TestJudgePartial(t *testing.T) {
	base := grown("eager", 1, pair, nil, "ab", "cd", "ef")
	for _, c := range []struct {
		name string
		got  *History
		want Reason
	}{
		{"the same", grown("graph", 1, pair, nil, "ab", "cd", "ef"), ""},
		{"before", grown("graph", 1, pair, nil, "xb", "cd", "ef"), StateDiffers},
		{"the short one", grown("graph", 1, pair, nil, "ab", "xd", "ef"), ShortBatchDiffers},
		{"after it", grown("graph", 1, pair, nil, "ab", "cd", "ex"), AfterShortBatch},
	} {
		f := JudgePartial(base, c.got, 2, 5)
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || f.Figures.(StateFigures).ShortBatch != 5 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestJudgeResume(t *testing.T) {
	base := grown("eager", 1, pair, nil, "ab", "cd", "ef")
	good, bad := grown("eager", 3, pair, nil, "ef"), grown("eager", 3, pair, nil, "ex")
	for _, c := range []struct {
		name    string
		resumed []Resumed
		want    Reason
	}{
		{"both", []Resumed{{From: "eager", History: good}, {From: "native", History: good}}, ""},
		{"a round trip", []Resumed{{From: "eager", History: good}, {From: "native"}}, ""},
		{"own", []Resumed{{From: "eager", History: bad}, {From: "native", History: bad}}, ResumeDiffers},
		{"the other's", []Resumed{{From: "eager", History: good}, {From: "native", History: bad}}, CheckpointNotExchanged},
		{"the other's comes back otherwise", []Resumed{{From: "eager", History: good}, {From: "native", Changed: []string{"ema.w"}}}, CheckpointNotExchanged},
		{"own is not the state", []Resumed{{From: "eager", History: good, Changed: []string{"ema.w"}}}, ResumeDiffers},
	} {
		f := JudgeResume(base, 2, c.resumed)
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || len(f.Figures.(StateFigures).Checkpoints) != len(c.resumed) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestJudgeReproducedSteps(t *testing.T) {
	of := func(steps ...string) []*History { return []*History{grown("eager", 1, pair, nil, steps...)} }
	for _, c := range []struct {
		name          string
		first, second []*History
		again         string
		want          Reason
	}{
		{"the same", of("ab", "cd"), of("ab", "cd"), "ab", ""},
		{"another process", of("ab", "cd"), of("ab", "cx"), "ab", EagerNoise},
		{"another start", of("ab", "cd"), of("ab", "cd"), "ax", StateMoved},
	} {
		f := JudgeReproducedSteps(c.first, c.second, of(c.again)[0])
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || f.Figures.(StateFigures).Steps != 3 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestJudgeNativeSteps(t *testing.T) {
	base := []*History{grown("eager", 1, pair, nil, "ab", "cd"), grown("eager", 1, pair, nil, "ef")}
	if f := JudgeNativeSteps(base, base); f.Outcome != Passed || f.Figures.(StateFigures).Steps != 3 {
		t.Errorf("%+v", f)
	}
	other := []*History{base[0], grown("native", 1, pair, nil, "xf")}
	if f := JudgeNativeSteps(base, other); f.Reason != NativeDiffers || len(f.Figures.(StateFigures).Differences) != 1 {
		t.Errorf("%+v", f)
	}
}

func TestJudgeBatchSeen(t *testing.T) {
	base := grown("eager", 1, pair, nil, "ab")
	changed := map[string]*History{"images": grown("eager", 1, pair, nil, "xb"), "targets": grown("eager", 1, pair, nil, "ax")}
	f := JudgeBatchSeen(base, changed)
	if f.Reason != InputNotSeen || !strings.Contains(f.Detail, "other targets") { // only the parameter changed
		t.Errorf("%+v", f)
	}
	delete(changed, "targets")
	if f := JudgeBatchSeen(base, changed); f.Outcome != Passed || f.Figures.(SeenFigures).Different["images"] != 1 || f.Figures.(SeenFigures).Outputs != 1 {
		t.Errorf("%+v", f)
	}
}

func TestSorted(t *testing.T) {
	o := outputs(1, 2, 3)
	back := slices.Clone(o)
	slices.Reverse(back)
	if got := back.Sorted(o); !got.Same(o) {
		t.Errorf("%v", got)
	}
	if got := back.Sorted(o[:1]); got[0].Name != "a" || got[1].Name != "c" {
		t.Errorf("%v", got)
	}
}
