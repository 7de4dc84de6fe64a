package suite_test

import (
	"reflect"
	"slices"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

func phasesOf(p result.Process) (names []string) {
	for _, ph := range p.Phases {
		names = append(names, ph.Name)
	}
	return names
}

// find gives the n-th process of an arm.
func find(t *testing.T, r result.Result, name string, n int) result.Process {
	t.Helper()
	for _, p := range r.Processes {
		if p.Arm != name {
			continue
		}
		if n--; n < 0 {
			return p
		}
	}
	t.Fatalf("there is no such process of %s: %v", name, r.Processes)
	return result.Process{}
}

func TestMemory(t *testing.T) {
	r, _ := verify(t, suitetest.Faults{}, "cuda:0")
	trained, _ := train(t, suitetest.Faults{}, "cuda:0")
	for _, r := range []result.Result{r, trained} {
		for name, want := range map[string]result.Memory{
			arm.ReferenceEager: {PeakBytes: 2 << 20, ReservedBytes: 4 << 20}, arm.ReferenceGraph: {PeakBytes: 2 << 20, ReservedBytes: 4 << 20},
			arm.NativeEager: {PeakBytes: 1 << 20}, arm.NativeGraph: {PeakBytes: 1 << 20},
		} {
			if r.Memory[name] != want {
				t.Errorf("%s, %s: %+v, want %+v", r.Mode, name, r.Memory[name], want)
			}
		}
		if len(r.Memory) != 4 || r.Weights <= 0 {
			t.Errorf("%s: %v, weights of %d bytes", r.Mode, r.Memory, r.Weights)
		}
	}
	onHost, _ := verify(t, suitetest.Faults{}, suite.HostDevice)
	if onHost.Memory != nil {
		t.Errorf("on the host nobody counts, and there is %v", onHost.Memory)
	}
}

func TestProcesses(t *testing.T) {
	r, _ := verify(t, suitetest.Faults{}, "cuda:0")
	if len(r.Processes) != 7 || r.Processes[0].Arm != "recorder" {
		t.Fatalf("%v", r.Processes)
	}
	for _, c := range []struct {
		arm  string
		n    int
		want []string
	}{
		{"recorder", 0, []string{"start", "build", "record"}},
		{arm.ReferenceEager, 0, []string{"start", "build", "load", "prepare", "steps", "situations"}},
		{arm.ReferenceEager, 1, []string{"start", "build", "load", "prepare", "steps", "measure"}},
		{arm.NativeGraph, 0, []string{"start", "load", "prepare", "steps", "situations", "measure"}},
		{arm.NativeGraph, 1, []string{"start", "load", "prepare", "steps"}}, // with a cold cache
	} {
		if got := phasesOf(find(t, r, c.arm, c.n)); !slices.Equal(got, c.want) {
			t.Errorf("process %d of %s: %v, want %v", c.n, c.arm, got, c.want)
		}
	}
	for _, p := range r.Processes {
		last := 0.0
		for _, ph := range p.Phases {
			if ph.At < last || ph.Took < 0 || ph.Waited > ph.Took+0.1 {
				t.Errorf("%s: %+v after %g ms", p.Arm, ph, last)
			}
			last = ph.At + ph.Took - 0.2 // both are rounded
		}
	}
	if steps := find(t, r, arm.NativeGraph, 0).Phases[3]; steps.Calls != 30 {
		t.Errorf("15 steps, each after a disturbance, are %d calls", steps.Calls)
	}
}

func TestLaunches(t *testing.T) {
	r, _ := verify(t, suitetest.Faults{}, "cuda:0")
	want := result.Launches{Kinds: []string{"library convolution", "kernel relu"}, Order: "ABA", Lanes: "010"}
	if r.Launches == nil || !reflect.DeepEqual(*r.Launches, want) {
		t.Errorf("%+v, want %+v", r.Launches, want)
	}
}

// A training run begins its episodes anew: the list of phases must not grow with them.
func TestProcessesOfTraining(t *testing.T) {
	r, _ := train(t, suitetest.Faults{}, "cuda:0")
	for _, p := range r.Processes {
		if len(p.Phases) > 7 {
			t.Errorf("%s: %v", p.Arm, phasesOf(p))
		}
	}
	if got := phasesOf(find(t, r, arm.NativeGraph, 0)); !slices.Equal(got, []string{"start", "load", "prepare", "steps", "measure"}) {
		t.Errorf("%v", got)
	}
}
