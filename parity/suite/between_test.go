package suite_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
	"samebits/parity/turns"

	"google.golang.org/grpc/codes"
)

// Each gate of what happens between steps refuses its fault with its own reason, in the arm that has it, and no other gate does.
func TestFaultsBetweenSteps(t *testing.T) {
	refusal := &host.CallError{Plugin: "p", Call: "Situate", Code: codes.Internal, Problems: diag.Problems{{Reason: "CAPTURE_FAILED", Summary: "no"}}}
	for _, c := range []struct {
		name    string
		faults  suitetest.Between
		gate    gate.ID
		reason  gate.Reason
		verdict result.Verdict
	}{
		{"nothing in the graph", suitetest.Between{Kinds: map[string]int64{arm.SetNode: 3}}, gate.Nodes, gate.EmptyGraph, result.Refused},
		{"memory is taken in the graph", suitetest.Between{Kinds: map[string]int64{arm.KernelNode: 2, arm.AllocNode: 1}}, gate.Nodes, gate.AllocInRegion, result.Refused},
		{"a copy from the host", suitetest.Between{Kinds: map[string]int64{arm.KernelNode: 2, arm.UploadNode: 1}}, gate.Nodes, gate.UploadInRegion, result.Refused},
		{"a copy to the host", suitetest.Between{Kinds: map[string]int64{arm.KernelNode: 2, arm.FetchNode: 1}}, gate.Nodes, gate.FetchInRegion, result.Refused},
		{"a call of the host", suitetest.Between{Kinds: map[string]int64{arm.KernelNode: 2, arm.HostNode: 1}}, gate.Nodes, gate.HostInRegion, result.Refused},
		{"another stream is not waited for", suitetest.Between{StaleStream: true}, gate.OtherStream, gate.StaleStream, result.Differs},
		{"another stream is eager", suitetest.Between{LosesStream: true}, gate.OtherStream, gate.NotReplayed, result.Refused},
		{"a thread spoils the capture", suitetest.Between{SpoiledByThread: true}, gate.OtherThread, gate.ThreadUnsafeCapture, result.Differs},
		{"a thread that captures nothing", suitetest.Between{ThreadSkips: true}, gate.OtherThread, gate.NotCaptured, result.Refused},
		{"a capture in a thread is refused", suitetest.Between{Fails: map[string]error{arm.OtherThread: refusal}}, gate.OtherThread, "CAPTURE_FAILED", result.Refused},
		{"old addresses", suitetest.Between{KeepsPointers: true}, gate.Moved, gate.PointerMoved, result.Differs},
		{"old weights in the graph", suitetest.Between{KeepsWeights: true}, gate.Moved, gate.ModelMutated, result.Differs},
		{"weights that do not matter", suitetest.Between{IgnoresWeights: true}, gate.Moved, gate.UpdateNotSeen, result.Refused},
		{"the mode stays", suitetest.Between{StaysInMode: true}, gate.Modes, gate.ModeNotKeyed, result.Differs},
		{"every replay draws the same", suitetest.Between{Draws: true, SameDraws: true}, gate.SeedObeyed, gate.RNGNotReplayed, result.Differs},
		{"replays do not move the generator", suitetest.Between{KeepsGenerator: true}, gate.SeedObeyed, gate.RNGStreamDiffers, result.Differs},
		{"the capture that shall fail does not", suitetest.Between{SurvivesFailure: true}, gate.FailedCapture, gate.CaptureSurvived, result.Refused},
		{"wrong after a failed capture", suitetest.Between{Poisoned: true}, gate.FailedCapture, gate.ContextPoisoned, result.Differs},
		{"dead after a failed capture", suitetest.Between{Dies: true}, gate.FailedCapture, gate.ContextPoisoned, result.Differs},
		{"a capture is tried again at once", suitetest.Between{TriesAgain: true}, gate.FailedCapture, gate.NotLatched, result.Refused},
		{"replays take memory", suitetest.Between{LeaksReplays: true}, gate.MemoryKept, gate.MemoryGrowth, result.Refused},
		{"captures take memory", suitetest.Between{LeaksCaptures: true}, gate.MemoryKept, gate.MemoryGrowth, result.Refused},
		{"the device that is current", suitetest.Between{SecondDevice: true, OnFirstDevice: true}, gate.OtherDevice, gate.WrongDevice, result.Differs},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := verify(t, suitetest.Faults{Between: c.faults}, "cuda:0")
			f := r.Gates[c.gate].Arms[arm.ReferenceGraph]
			if f.Outcome != gate.Failed || f.Reason != c.reason || f.Detail == "" {
				t.Errorf("gate %s: %s %s %q", c.gate, f.Outcome, f.Reason, f.Detail)
			}
			if !strings.HasSuffix(f.Reproduce, " --device cuda:0 --gate "+string(c.gate)) {
				t.Errorf("reproduce %q", f.Reproduce)
			}
			if r.Verdict != c.verdict || r.Reason != c.reason || r.Verdict.Exit() == 0 {
				t.Errorf("verdict %s %s: %s", r.Verdict, r.Reason, r.Summary)
			}
			for id, f := range r.Gates {
				if id != c.gate && f.Outcome == gate.Failed {
					t.Errorf("%s fails, too: %s %s", id, f.Reason, f.Detail)
				}
			}
			obeysSchema(t, r)
			t.Log(f.Detail)
		})
	}
}

func obeysSchema(t *testing.T, r result.Result) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(schema(), data); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}

// Of native's own faults the other arms know nothing.
func TestNativeKeepsOldWeights(t *testing.T) {
	r, _ := verify(t, suitetest.Faults{Between: suitetest.Between{NativeKeeps: true}}, "cuda:0")
	f := r.Gates[gate.Moved]
	if f.Arms[arm.ReferenceGraph].Outcome != gate.Passed || f.Arms[arm.NativeGraph].Reason != gate.ModelMutated || !strings.Contains(f.Detail, "before the weights changed") {
		t.Errorf("%+v", f)
	}
}

// A graph that cannot be had again ends the situations, and nobody measures the arm.
func TestLostArm(t *testing.T) {
	r, start := verify(t, suitetest.Faults{Between: suitetest.Between{NeverAgain: true}}, "cuda:0")
	for _, name := range []string{arm.ReferenceGraph, arm.NativeGraph} {
		if f := r.Gates[gate.FailedCapture].Arms[name]; f.Reason != gate.RecaptureFailed {
			t.Errorf("%s: %s %s", name, f.Reason, f.Detail)
		}
		if f := r.Gates[gate.MemoryKept].Arms[name]; f.Reason != gate.NotReached || !strings.Contains(f.Detail, "FAIL failed") {
			t.Errorf("%s: %s %s", name, f.Reason, f.Detail)
		}
		if _, measured := r.Timings[name]; measured {
			t.Errorf("%s was measured", name)
		}
	}
	if start.Alive != 0 || r.Verdict != result.Refused {
		t.Errorf("%d alive, %s", start.Alive, r.Verdict)
	}
}

// What an arm does not know makes no cell fail, and the result says so.
func TestUnknownSituations(t *testing.T) {
	all := []string{arm.OtherStream, arm.OtherThread, arm.Moved, arm.Updated, arm.Restored, arm.OtherMode, arm.Released, arm.FailsCapture, arm.Seeded, arm.OtherDevice}
	gates := map[string]gate.ID{arm.OtherStream: gate.OtherStream, arm.OtherThread: gate.OtherThread, arm.Moved: gate.Moved, arm.Updated: gate.Moved,
		arm.Restored: gate.Moved, arm.OtherMode: gate.Modes, arm.FailsCapture: gate.FailedCapture, arm.Seeded: gate.SeedObeyed, arm.OtherDevice: gate.OtherDevice,
		arm.Released: gate.MemoryKept}
	one := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == arm.Restored })
	for _, situation := range append(one, "") {
		knowsNot := []string{situation}
		if situation == "" {
			knowsNot = all
		}
		r, _ := verify(t, suitetest.Faults{Between: suitetest.Between{KnowsNot: knowsNot}}, "cuda:0")
		if r.Verdict != result.Exact {
			t.Errorf("without %v: %s %s", knowsNot, r.Verdict, r.Summary)
		}
		obeysSchema(t, r)
		for _, name := range knowsNot {
			f := r.Gates[gates[name]].Arms[arm.NativeGraph]
			if f.Outcome != gate.Skipped || f.Reason != gate.NotApplicable || !strings.Contains(f.Detail, name) && situation != "" {
				t.Errorf("without %v: %s: %s %s %s", knowsNot, gates[name], f.Outcome, f.Reason, f.Detail)
			}
			if !strings.Contains(r.Summary, string(gates[name])+" of native-graph") {
				t.Errorf("summary: %s", r.Summary)
			}
		}
	}
}

// There must be a way back from an update.
func TestUpdateWithoutRestore(t *testing.T) {
	r, _ := verify(t, suitetest.Faults{Between: suitetest.Between{KnowsNot: []string{arm.Restored}}}, "cuda:0")
	if f := r.Gates[gate.Moved].Arms[arm.ReferenceGraph]; f.Outcome == gate.Passed {
		t.Errorf("%+v", f)
	}
}

// A release may be followed by an eager step, as long as there is a graph again.
func TestCapturesLate(t *testing.T) {
	r, _ := verify(t, suitetest.Faults{Between: suitetest.Between{CapturesLate: true, SecondDevice: true}}, "cuda:0")
	for _, id := range gate.Situations {
		if f := r.Gates[id]; f.Outcome != gate.Passed {
			t.Errorf("%s: %s %s", id, f.Reason, f.Detail)
		}
	}
	figures := r.Gates[gate.FailedCapture].Arms[arm.NativeGraph].Figures.(gate.SituationFigures)
	if back := figures.Passages[1]; back.Captures != 1 || back.EagerSteps != 1 || back.Replays != 1 || back.Facts["situation"] != arm.Released {
		t.Errorf("%+v", back)
	}
	if figures := r.Gates[gate.MemoryKept].Arms[arm.ReferenceGraph].Figures.(gate.MemoryFigures); figures.Replays != 20 || figures.Allocated[2] == 0 {
		t.Errorf("%+v", figures)
	}
}

func TestProcessesMustAgree(t *testing.T) {
	for _, device := range []string{"cuda:0", suite.HostDevice} {
		r, _ := verify(t, suitetest.Faults{}, device)
		figures := r.Gates[gate.Processes].Figures.(gate.ProcessFigures)
		cold := 0
		want := map[string]int{arm.ReferenceEager: 2, arm.NativeEager: 1, arm.NativeGraph: 2}
		if device != suite.HostDevice {
			cold, want[arm.ReferenceGraph] = 1, 1
		}
		if figures.Processes < gate.MinProcesses || figures.Cold != cold || !maps.Equal(figures.Arms, want) {
			t.Errorf("%+v", figures)
		}
		if cold == 0 {
			continue
		}
		r, _ = verify(t, suitetest.Faults{Between: suitetest.Between{ColdDiffers: true}}, device)
		if f := r.Gates[gate.Processes]; f.Reason != gate.ColdDiffers || r.Verdict != result.Differs || !strings.Contains(f.Detail, "cold cache") {
			t.Errorf("%s: %+v", r.Verdict, f)
		}
		obeysSchema(t, r)
	}
}

// Gates that are asked for alone are judged with no more processes than they need, and their verdict is none of the whole cell.
func TestGatesAlone(t *testing.T) {
	for _, c := range []struct {
		gates     []gate.ID
		device    string
		processes int
		verdict   result.Verdict
		summary   string
	}{
		{[]gate.ID{gate.SameRecording}, "cuda:0", 1, result.Passed, "SAME-RECORDING passed, of the gates alone that were asked for"},
		{[]gate.ID{gate.InputSeen}, "cuda:0", 2, result.Passed, ""},
		{[]gate.ID{gate.Reproduces}, suite.HostDevice, 3, result.Passed, ""},
		{[]gate.ID{gate.OtherStream}, "cuda:0", 5, result.Passed, ""},
		{[]gate.ID{gate.OtherStream, gate.Moved}, suite.HostDevice, 3, result.Passed, "STREAM, MOVE passed, of the gates alone that were asked for"},
		{[]gate.ID{gate.Replay}, "cuda:0", 5, result.Passed, ""},
		{[]gate.ID{gate.Native}, "cuda:0", 4, result.Passed, ""},
		{[]gate.ID{gate.Native}, suite.HostDevice, 5, result.Passed, ""},
		{[]gate.ID{gate.Processes}, "cuda:0", 7, result.Passed, ""},
		{[]gate.ID{gate.Processes}, suite.HostDevice, 6, result.Passed, ""},
		{[]gate.ID{gate.OtherDevice}, "cuda:0", 5, result.Refused, "nothing was judged; not judged: DEV (NO_SECOND_DEVICE)"},
		{[]gate.ID{gate.Seam}, "cuda:0", 5, result.Refused, "nothing was judged; not judged: SEAM (not of this cell)"},
		{[]gate.ID{gate.Modes, gate.OtherDevice}, "cuda:0", 5, result.Passed, "MODE passed, of the gates alone that were asked for; not judged: DEV (NO_SECOND_DEVICE)"},
	} {
		for _, together := range []bool{false, true} {
			start := &suitetest.Starter{}
			var last suite.Event
			s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), Gates: c.gates, Together: together, Turns: turns.New(2, 1),
				Progress: func(e suite.Event) { last = e }}
			r := s.Verify(t.Context(), fakeCell(c.device))
			if r.Verdict != c.verdict || c.summary != "" && r.Summary != c.summary {
				t.Errorf("%v on %s: %s %s", c.gates, c.device, r.Verdict, r.Summary)
			}
			if start.Processes != c.processes || start.Alive != 0 || last.Step != last.Steps || last.Step != c.processes {
				t.Errorf("%v on %s: %d processes, %d alive, step %d of %d", c.gates, c.device, start.Processes, start.Alive, last.Step, last.Steps)
			}
			if len(r.Timings) != 0 || !slices.Equal(r.Asked, c.gates) || !strings.Contains(r.Reproduce, " --gate "+string(c.gates[0])) {
				t.Errorf("%v on %s: %v, %v, %s", c.gates, c.device, r.Timings, r.Asked, r.Reproduce)
			}
			for id, f := range r.Gates {
				if asked := slices.Contains(c.gates, id); asked == (f.Reason == gate.NotAsked) {
					t.Errorf("%v: gate %s: %s %s", c.gates, id, f.Outcome, f.Reason)
				}
			}
			obeysSchema(t, r)
		}
	}
}

func TestGatesAloneThatFail(t *testing.T) {
	s := &suite.Suite{Start: &suitetest.Starter{Faults: suitetest.Faults{Between: suitetest.Between{KeepsPointers: true}}}, Gates: []gate.ID{gate.Moved}}
	r := s.Verify(t.Context(), fakeCell("cuda:0"))
	if r.Verdict != result.Differs || r.Reason != gate.PointerMoved || r.Gates[gate.Replay].Reason != gate.NotAsked {
		t.Errorf("%s %s: %s", r.Verdict, r.Reason, r.Summary)
	}
	obeysSchema(t, r)
}
