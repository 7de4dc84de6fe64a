package suite_test

import (
	"encoding/json"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
	"samebits/parity/turns"
)

func verifyFamily(t *testing.T, family string, f suitetest.Further, device string) result.Result {
	t.Helper()
	cell := suite.Cell{Family: family, Precision: "fp32", Profile: "exact-1", Device: device}
	start := &suitetest.Starter{Faults: suitetest.Faults{Further: f}}
	var last suite.Event
	s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), EngineBuild: "e0", Progress: func(e suite.Event) { last = e }}
	r := s.Verify(t.Context(), cell)
	if start.Alive != 0 {
		t.Errorf("%d processes were left behind", start.Alive)
	}
	if last.Step > last.Steps {
		t.Errorf("step %d of %d", last.Step, last.Steps)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(schema(), data); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
	memory := turns.NewMemory(gpu, 4)
	together := &suite.Suite{Start: &suitetest.Starter{Faults: suitetest.Faults{Further: f}}, Timing: suite.DefaultTiming(), EngineBuild: "e0",
		Together: true, Turns: turns.New(2, 1), Memory: memory}
	same(t, r, together.Verify(t.Context(), cell))
	allFree(t, memory)
	return r
}

func TestSeamAndKeysThatHold(t *testing.T) {
	for _, device := range []string{"cuda:0", suite.HostDevice} {
		for family, id := range map[string]gate.ID{suitetest.Seamed: gate.Seam, suitetest.Keyed: gate.Shape, suitetest.KeyedToo: gate.Shape} {
			r := verifyFamily(t, family, suitetest.Further{}, device)
			want := map[bool]result.Verdict{true: result.Exact, false: result.Consistent}[device == "cuda:0"]
			f := r.Gates[id]
			if r.Verdict != want || f.Outcome != gate.Passed {
				t.Errorf("%s on %s: %s %s %s, gate %s %s %s", family, device, r.Verdict, r.Reason, r.Summary, id, f.Outcome, f.Detail)
			}
			if family == suitetest.Seamed && (r.Seam == nil || r.Seam.Segment != "half" || len(f.Arms) != len(r.Arms)) {
				t.Errorf("on %s: seam %+v, arms %v", device, r.Seam, f.Arms)
			}
			if id == gate.Shape {
				figures := f.Arms[arm.NativeGraph].Figures.(gate.ShapeFigures)
				if figures.Captures != 2 || figures.Replays != 8 || figures.Became != gate.WasRefused {
					t.Errorf("%s on %s: %+v", family, device, figures)
				}
			}
		}
	}
	r := verifyFamily(t, suitetest.Keyed, suitetest.Further{}, "cuda:0")
	if figures := r.Gates[gate.Shape].Arms[arm.ReferenceGraph].Figures.(gate.ShapeFigures); figures.Became != gate.RanEagerly {
		t.Errorf("%+v", figures)
	}
}

func TestFaultsOfSeamsAndKeys(t *testing.T) {
	for _, c := range []struct {
		name, family string
		faults       suitetest.Further
		gate         gate.ID
		reason       gate.Reason
		verdict      result.Verdict
		arm          string
	}{
		{"the rest is another", suitetest.Seamed, suitetest.Further{RestDiffers: true}, gate.Seam, gate.SeamDiffers, result.Differs, arm.NativeGraph},
		{"the whole is noisy", suitetest.Seamed, suitetest.Further{WholeNoise: true}, gate.Seam, gate.EagerNoise, result.EagerNoise, ""},
		{"a graph keeps its first key", suitetest.Keyed, suitetest.Further{KeyOfFirst: true}, gate.Shape, gate.StaleOutput, result.Differs, arm.NativeGraph},
		{"a second graph is spoiled", suitetest.Keyed, suitetest.Further{SecondSpoiled: true}, gate.Shape, gate.ShapeDiffers, result.Differs, arm.ReferenceGraph},
		{"one graph for all keys", suitetest.Keyed, suitetest.Further{OneGraph: true}, gate.Shape, gate.NotCaptured, result.Differs, arm.ReferenceGraph},
		{"an unknown key gets the first answer", suitetest.Keyed, suitetest.Further{StrangerReplays: true}, gate.Shape, gate.StaleOutput, result.Differs, arm.NativeGraph},
		{"an unknown key counts as a replay", suitetest.Keyed, suitetest.Further{StrangerCounts: true}, gate.Shape, gate.KeyIgnored, result.Differs, arm.ReferenceGraph},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := verifyFamily(t, c.family, c.faults, "cuda:0")
			f := r.Gates[c.gate]
			if c.arm != "" {
				f = f.Arms[c.arm]
			}
			if f.Outcome != gate.Failed || f.Reason != c.reason || f.Detail == "" || !strings.HasPrefix(f.Reproduce, "parity verify") {
				t.Errorf("%s %s %q %q", f.Outcome, f.Reason, f.Detail, f.Reproduce)
			}
			if r.Verdict != c.verdict || r.Verdict.Exit() == 0 {
				t.Errorf("verdict %s: %s", r.Verdict, r.Summary)
			}
		})
	}
}

func TestKeysOfOtherWeightsAreRefused(t *testing.T) {
	r := verifyFamily(t, suitetest.Keyed, suitetest.Further{OtherWeights: true}, "cuda:0")
	if r.Verdict != result.Refused || r.Reason != "OTHER_WEIGHTS" || r.Gates[gate.Shape].Outcome != gate.Skipped {
		t.Errorf("%s %s: %s", r.Verdict, r.Reason, r.Summary)
	}
}
