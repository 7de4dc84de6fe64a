package suite_test

import (
	"errors"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

// Where the eager reference's two processes differ, those two are traced, not others.
func TestNoise(t *testing.T) {
	refused := errors.New("the device is lost")
	for _, c := range []struct {
		name   string
		faults suitetest.Faults
		found  bool   // the operation
		has    string // the detail
	}{
		{"an operation", suitetest.Faults{Noise: true, NoiseTrace: true}, true, "; all its operands have the same bits in both"},
		{"a weight", suitetest.Faults{OwnWeights: true}, true, "; its operand other (weight) has other bits in the two processes already"},
		{"another time yet other bits", suitetest.Faults{Noise: true, NoiseEachTime: true}, true,
			"; run once more, it gives yet other bits in reference-eager and reference-eager again; all its operands have the same bits in both"},
		{"a number of the step", suitetest.Faults{Noise: true, NoiseTrace: true, OwnScalar: true}, true,
			"; reference-eager has another step than the recorder: operations[1].arguments[2]: "},
		{"no operation", suitetest.Faults{Noise: true}, false, "; traced one by one, all operations agree"},
		{"a trace that fails", suitetest.Faults{Noise: true, TraceFails: func() error { return refused }}, false,
			"; the trace failed: reference-eager: trace: the device is lost"},
		{"a trace that panics", suitetest.Faults{Noise: true, TraceFails: func() error { panic("no such bank") }}, false,
			"; the trace failed: panic: no such bank"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, start := verify(t, c.faults, "cuda:0")
			f := r.Gates[gate.Reproduces]
			if r.Verdict != result.EagerNoise || f.Reason != gate.EagerNoise {
				t.Fatalf("%s %s: %s", r.Verdict, f.Reason, f.Detail)
			}
			if !strings.HasPrefix(f.Detail, "two fresh processes: probe noise, output logits: ") || !strings.Contains(f.Detail, c.has) {
				t.Errorf("detail: %s", f.Detail)
			}
			if start.Processes != 3 {
				t.Errorf("%d processes instead of the recorder and two", start.Processes)
			}
			culprit, found := f.Figures.(gate.NoiseFigures).First.(*suite.Culprit)
			if found != c.found {
				t.Fatalf("first operation: %+v", culprit)
			}
			if found {
				lookAtNoise(t, f.Detail, culprit, c.faults)
			}
		})
	}
}

func lookAtNoise(t *testing.T, detail string, c *suite.Culprit, f suitetest.Faults) {
	t.Helper()
	if !strings.Contains(detail, "; first at operation 1 of 2, aten::mul.Tensor(") || !strings.Contains(detail, " in head") {
		t.Errorf("detail: %s", detail)
	}
	if c.Operation != 1 || c.Probe != "noise" || c.Native != "" || c.Reference == "" || c.Again == "" || c.Reference == c.Again {
		t.Errorf("culprit %+v", c)
	}
	if (c.Bits == nil) != f.NoiseEachTime || c.Bits != nil && (c.Bits.Different != 1 || c.Bits.FirstIndex != 5) {
		t.Errorf("bits %+v", c.Bits)
	}
	made, weight := c.Operands[0], c.Operands[1]
	if made.From != "operation 0, aten::relu" || made.Reference == "" || made.Reference != made.Again || made.Native != "" {
		t.Errorf("operand %+v", made)
	}
	if f.OwnScalar { // what the two read cannot be told by the recorder's names
		if weight.Reference != "" || weight.Again != "" {
			t.Errorf("operand %+v", weight)
		}
		return
	}
	if weight.From != "parameter weight" || len(weight.Reference) != 64 || len(weight.Again) != 64 || (weight.Reference != weight.Again) != f.OwnWeights {
		t.Errorf("operand %+v", weight)
	}
}

// A trace that breaks off after it has found the operation keeps that.
func TestNoiseHalfTraced(t *testing.T) {
	traces := 0
	s := &suite.Suite{Timing: suite.DefaultTiming(), Start: &suitetest.Starter{Faults: suitetest.Faults{OwnWeights: true, TraceFails: func() error {
		if traces++; traces > 2 {
			return errors.New("the device is lost")
		}
		return nil
	}}}}
	f := s.Verify(t.Context(), fakeCell("cuda:0")).Gates[gate.Reproduces]
	culprit, found := f.Figures.(gate.NoiseFigures).First.(*suite.Culprit)
	if !found || f.Reason != gate.EagerNoise || !strings.HasSuffix(f.Detail, " in head; the trace failed: reference-eager: fetch a result of operation 1: the device is lost") {
		t.Errorf("%+v, %s: %s", culprit, f.Reason, f.Detail)
	}
}

// Where both processes give the same bits nobody traces, and none is measured before the first one has ended.
func TestNoNoise(t *testing.T) {
	var calls []suite.Call
	s := &suite.Suite{Start: &suitetest.Starter{}, Timing: suite.DefaultTiming(), Calls: func(c suite.Call) { calls = append(calls, c) }}
	if r := s.Verify(t.Context(), fakeCell("cuda:0")); r.Verdict != result.Exact {
		t.Fatal(r.Summary)
	}
	stopped := false
	for _, c := range calls {
		stopped = stopped || c.Arm == arm.ReferenceEager && c.What == "Stop"
		if c.What == "Trace" || c.What == "Measure" && !stopped {
			t.Errorf("%s: %s", c.Arm, c.What)
		}
	}
}
