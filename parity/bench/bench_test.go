package bench_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/parity/bench"
	"samebits/parity/smi"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

// gpu is a Watcher whose memory empties with each process that ends.
type gpu struct {
	start  *suitetest.Starter
	fails  bool
	adjust func(n int, s *smi.Sample)
	asked  int
}

func (g *gpu) Read(context.Context) (smi.Sample, error) {
	if g.fails {
		return smi.Sample{}, errors.New("the driver is gone")
	}
	s := smi.Sample{SMClock: 1980, MaxSMClock: 1980, Power: 400, Temperature: 40, PState: "P0", MemoryUsed: float64(10 + 500*g.start.Alive)}
	if g.adjust != nil {
		g.adjust(g.asked, &s)
	}
	g.asked++
	return s, nil
}

func cellOn(device string) suite.Cell {
	return suite.Cell{Family: "fake", Precision: "fp32", Profile: "exact-1", Device: device, Mode: "predict"}
}

func settings() bench.Settings { return bench.Settings{Rounds: 5, Seconds: 0.03, Starts: 2} }

func measure(t testing.TB, faults suitetest.Faults, device string, change func(*bench.Bench, *gpu)) (bench.Cell, *suitetest.Starter) {
	t.Helper()
	start := &suitetest.Starter{Faults: faults}
	watch := &gpu{start: start}
	b := &bench.Bench{Start: start, Settings: settings(), Arms: bench.Arms(device != suite.HostDevice, true), Opening: 1}
	if device != suite.HostDevice {
		b.Watch = watch
	}
	if change != nil {
		change(b, watch)
	}
	cell, _, err := b.Measure(t.Context(), cellOn(device))
	if err != nil {
		t.Fatal(err)
	}
	if start.Alive != 0 {
		t.Errorf("%d processes are left", start.Alive)
	}
	if start.Device.Disturbed != 0 {
		t.Errorf("an arm was disturbed %d times while it was measured", start.Device.Disturbed)
	}
	return cell, start
}

var times = map[string]float64{arm.ReferenceEager: 12, arm.ReferenceGraph: 4, arm.ReferenceCompile: 3.5, arm.NativeEager: 5, arm.NativeGraph: 3}

func TestMeasure(t *testing.T) {
	c, start := measure(t, suitetest.Faults{Bench: suitetest.Bench{Milliseconds: times, Compiled: suitetest.ULPs(3)}}, "cuda:0", nil)
	if c.Outcome != bench.Measured || c.Exit() != 0 || len(c.Problems) > 0 || c.ImgSize != 8 || c.Operations != 2 || len(c.Recording) != 64 {
		t.Errorf("cell %+v", c)
	}
	if start.Most != 5 {
		t.Errorf("at most %d arms lived side by side", start.Most)
	}
	for i, name := range []string{arm.ReferenceEager, arm.ReferenceGraph, arm.ReferenceCompile, arm.NativeEager, arm.NativeGraph} {
		a := c.Arms[i]
		if a.Name != name || a.Outcome != bench.Measured || a.Step == nil || len(a.Rounds) != 5 {
			t.Fatalf("arm %d: %+v", i, a)
		}
		perRound := min(max(int(30/times[name]), 5), 200)
		if *a.Step != (bench.Spread{MedianMS: times[name], MinMS: times[name], Q1MS: times[name], Q3MS: times[name], Steps: 5 * perRound}) {
			t.Errorf("%s: %+v", name, *a.Step)
		}
		want := map[bool]float64{true: 2, false: 5}[strings.HasSuffix(name, "-graph")] // what the fakes count
		if a.Launches != want || a.LaunchUnit == "" {
			t.Errorf("%s: %v %s", name, a.Launches, a.LaunchUnit)
		}
		if a.Memory.DeviceBytes != 500<<20 || a.Memory.PeakBytes == 0 || (a.Memory.ReservedBytes > 0) != strings.HasPrefix(name, "reference") {
			t.Errorf("%s: memory %+v", name, a.Memory)
		}
		var stages []string
		for _, s := range a.Ready {
			stages = append(stages, s.Name)
		}
		if want := map[bool]string{true: "start build load prepare step", false: "start load prepare step"}[strings.HasPrefix(name, "reference")]; strings.Join(stages, " ") != want {
			t.Errorf("%s: stages %v", name, stages)
		}
		switch {
		case name == arm.ReferenceEager:
			if a.Bits != nil {
				t.Errorf("eager is compared with itself: %+v", a.Bits)
			}
		case name == arm.ReferenceCompile:
			if a.Bits.Same || a.Bits.Demanded || a.Bits.MaxAbs == 0 || !reflect.DeepEqual(a.Bits.Different, []string{"logits"}) {
				t.Errorf("%s: bits %+v", name, a.Bits)
			}
		case !a.Bits.Same || !a.Bits.Demanded || a.Bits.Outputs != 2:
			t.Errorf("%s: bits %+v", name, a.Bits)
		}
	}
	var when []string
	for _, s := range c.GPU {
		when = append(when, s.When)
	}
	if got := strings.Join(when, ", "); got != "before, round 1, round 2, round 3, round 4, round 5, after" {
		t.Errorf("the GPU was looked at %s", got)
	}
	if len(c.Notes) > 0 {
		t.Errorf("notes %q", c.Notes)
	}
}

// In each round another arm is first, so that none always has the same place.
func TestRotation(t *testing.T) {
	c, _ := measure(t, suitetest.Faults{}, "cuda:0", nil)
	for i, a := range c.Arms {
		var places []int
		for _, r := range a.Rounds {
			places = append(places, r.Place)
		}
		if slices.Sort(places); !reflect.DeepEqual(places, []int{1, 2, 3, 4, 5}) {
			t.Errorf("%s had the places %v", a.Name, places)
		}
		if a.Rounds[i].Place != 1 {
			t.Errorf("%s was not first in round %d", a.Name, i+1)
		}
	}
}

func TestFirstPredictions(t *testing.T) {
	c, _ := measure(t, suitetest.Faults{}, "cuda:0", nil)
	if len(c.First) != 3 {
		t.Fatalf("%+v", c.First)
	}
	for _, want := range []struct {
		name, cache string
		times       int
	}{{bench.FirstWarm, "warm", 2}, {bench.FirstCold, "cold", 1}, {bench.FirstReference, "", 2}} {
		f := c.FirstOf(want.name)
		if f == nil || f.Cache != want.cache || len(f.Times) != want.times || f.Same == nil || !*f.Same || len(f.Stages) == 0 {
			t.Errorf("%s: %+v", want.name, f)
		}
	}
	if f := c.FirstOf(bench.FirstReference); f.MS != 5000 || f.MaxRSS != 1<<30 {
		t.Errorf("%+v", f)
	}
	if ratio := c.FirstRatio(bench.FirstWarm, bench.FirstReference); !(ratio > 0 && ratio < 1) {
		t.Errorf("ratio %v", ratio)
	}
	none, _ := measure(t, suitetest.Faults{}, "cuda:0", func(b *bench.Bench, _ *gpu) { b.Settings.Starts = 0 })
	if len(none.First) != 0 || none.Outcome != bench.Measured {
		t.Errorf("%+v", none.First)
	}
}

// One that fails does not take the figures of the others along.
func TestOneFails(t *testing.T) {
	refused := &host.CallError{Plugin: "reference", Call: "Prepare", Code: codes.Unimplemented,
		Problems: diag.Problems{{Reason: "COMPILE_FAILED", Summary: "torch.compile cannot compile this step: no C compiler"}}}
	crashed := &host.Error{Reason: host.ReasonCrashed, Plugin: "predictor", Summary: "ended by itself"}
	for _, c := range []struct {
		name   string
		faults suitetest.Faults
		failed []string // arms
		why    string
		cell   bench.Outcome
		exit   int
	}{
		{"the compiler", suitetest.Faults{Bench: suitetest.Bench{PrepareFails: map[string]error{arm.ReferenceCompile: refused}}},
			[]string{arm.ReferenceCompile}, "COMPILE_FAILED", bench.Partly, 2},
		{"native while it is measured", suitetest.Faults{Bench: suitetest.Bench{MeasureFails: map[string]error{arm.NativeGraph: crashed}}},
			[]string{arm.NativeGraph}, host.ReasonCrashed, bench.Partly, 3},
		{"native at its first step", suitetest.Faults{Crash: crashed}, []string{arm.NativeEager, arm.NativeGraph}, host.ReasonCrashed, bench.Partly, 3},
		{"native knows no such operation", suitetest.Faults{Refuses: &host.CallError{Code: codes.InvalidArgument, Problems: diag.Problems{{Reason: "UNKNOWN_OPERATION"}}}},
			[]string{arm.NativeEager, arm.NativeGraph}, "UNKNOWN_OPERATION", bench.Partly, 2},
		{"the recording", suitetest.Faults{OtherPrecision: true}, []string{arm.NativeEager, arm.NativeGraph}, "WRONG_RECORDING", bench.Partly, 2},
		{"a panic on the host's side", suitetest.Faults{PanicsOn: "fake"}, []string{arm.NativeEager, arm.NativeGraph}, "PANIC", bench.Partly, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell, _ := measure(t, c.faults, "cuda:0", nil)
			if cell.Outcome != c.cell || cell.Exit() != c.exit {
				t.Errorf("%s, exit %d", cell.Outcome, cell.Exit())
			}
			for _, a := range cell.Arms {
				failed := slices.Contains(c.failed, a.Name)
				if failed != (len(a.Problems) > 0) || failed != (a.Outcome != bench.Measured) || failed == (len(a.Rounds) == 5) {
					t.Errorf("%s: %s %+v, %d rounds", a.Name, a.Outcome, a.Problems, len(a.Rounds))
				}
				if failed && a.Problems[0].Reason != c.why {
					t.Errorf("%s: %+v", a.Name, a.Problems)
				}
			}
		})
	}
}

// A time that is none is no figure.
func TestNoTimes(t *testing.T) {
	for _, ms := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		cell, _ := measure(t, suitetest.Faults{Bench: suitetest.Bench{Milliseconds: map[string]float64{arm.NativeGraph: ms}}}, "cuda:0", nil)
		if a := cell.Arm(arm.NativeGraph); a.Outcome != bench.Broken || a.Step != nil || !strings.Contains(a.Problems[0].Summary, fmt.Sprintf("a step took %v ms", ms)) {
			t.Errorf("%v: %+v", ms, a)
		}
	}
}

// Each part is told once, and there are as many as were announced.
func TestSteps(t *testing.T) {
	for _, starts := range []int{0, 2} {
		var told []int
		of := 0
		measure(t, suitetest.Faults{}, "cuda:0", func(b *bench.Bench, _ *gpu) {
			b.Settings.Starts = starts
			of = bench.Steps(len(b.Arms), b.Settings)
			b.Progress = func(e suite.Event) {
				if told = append(told, e.Step); e.Steps != of {
					t.Errorf("%d parts instead of %d", e.Steps, of)
				}
			}
		})
		if len(told) != of || told[of-1] != of || !slices.IsSorted(told) {
			t.Errorf("%d parts: %v", of, told)
		}
	}
}

func TestNames(t *testing.T) {
	for want, c := range map[string]bench.Cell{"yolo9-t detect 640 batch 1 fp32": {Family: "yolo9", Size: "t", Task: "detect", ImgSize: 640, Batch: 1, Precision: "fp32"},
		"yolo9 batch 2 bf16": {Family: "yolo9", Batch: 2, Precision: "bf16"}} {
		if got := c.Name(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A first prediction that fails is said, and not tried again.
func TestFirstFails(t *testing.T) {
	cell, _ := measure(t, suitetest.Faults{Bench: suitetest.Bench{FirstFails: errors.New("no module named torch")}}, "cuda:0", nil)
	f := cell.First[2]
	if cell.Outcome != bench.Partly || cell.Exit() != 3 || f.Name != bench.FirstReference || len(f.Problems) != 1 || f.MS != 0 || cell.FirstOf(f.Name) != nil {
		t.Errorf("%s, %+v", cell.Outcome, f)
	}
	if cell.Arm(arm.NativeGraph).Step == nil || cell.FirstOf(bench.FirstWarm) == nil {
		t.Error("figures were lost")
	}
}

// An arm that gives other bits than it claims to is measured, but that is said.
func TestOtherBits(t *testing.T) {
	cell, _ := measure(t, suitetest.Faults{Native: suitetest.ULPs(1)}, "cuda:0", nil)
	if cell.Outcome != bench.Differs || cell.Exit() != 1 || cell.Arm(arm.NativeGraph).Outcome != bench.Differs || *cell.First[0].Same {
		t.Errorf("%s: %+v", cell.Outcome, cell.Arm(arm.NativeGraph))
	}
	if a, b := cell.StepRatio(arm.NativeGraph, arm.ReferenceGraph), cell.StepRatio(arm.ReferenceEager, arm.ReferenceGraph); a != 0 || b == 0 {
		t.Errorf("ratios %v and %v", a, b)
	}
	cell, _ = measure(t, suitetest.Faults{Bench: suitetest.Bench{FirstDiffers: true}}, "cuda:0", nil)
	if cell.Outcome != bench.Differs || cell.First[2].Outcome != bench.Differs {
		t.Errorf("%s: %+v", cell.Outcome, cell.First[2])
	}
	cell, _ = measure(t, suitetest.Faults{OtherShape: true}, "cuda:0", nil)
	if b := cell.Arm(arm.NativeEager).Bits; b.Same || len(b.Different) != 2 {
		t.Errorf("%+v", b)
	}
}

// On the host there is no graph of PyTorch's, no compiler, no GPU to look at, and nobody demands bits.
func TestHost(t *testing.T) {
	cell, _ := measure(t, suitetest.Faults{Native: suitetest.ULPs(1)}, suite.HostDevice, nil)
	var names []string
	for _, a := range cell.Arms {
		names = append(names, a.Name)
		if a.Memory.PeakBytes != 0 || a.Bits != nil && a.Bits.Demanded {
			t.Errorf("%+v", a)
		}
	}
	if want := []string{arm.ReferenceEager, arm.NativeEager, arm.NativeGraph}; !slices.Equal(names, want) || cell.Outcome != bench.Measured || len(cell.GPU) != 0 {
		t.Errorf("%s, arms %v, %d samples", cell.Outcome, names, len(cell.GPU))
	}
}

func TestCellThatCannotBeBuilt(t *testing.T) {
	cell, _ := measure(t, suitetest.Faults{Dead: &host.Error{Reason: host.ReasonMissing, Plugin: "reference", Summary: "there is none"}}, "cuda:0", nil)
	if cell.Outcome != bench.Broken || cell.Exit() != 3 || cell.Problems[0].Reason != host.ReasonMissing || len(cell.Arms) != 0 {
		t.Errorf("%+v", cell)
	}
}

func TestGPUIsLookedAt(t *testing.T) {
	for _, c := range []struct {
		name   string
		adjust func(n int, s *smi.Sample)
		note   string
	}{
		{"hot", func(n int, s *smi.Sample) { s.ThrottledBy = []string{"idle", "power cap"} }, "held back by: power cap"},
		{"busy", func(n int, s *smi.Sample) { s.Utilisation = map[bool]float64{true: 80}[n == 0] }, "busy before the start (80 %)"},
		{"drifting", func(n int, s *smi.Sample) { s.SMClock -= float64(100 * n) }, "between 1480 and 1880 MHz"},
		{"idle before and after", func(n int, s *smi.Sample) { s.SMClock = map[bool]float64{true: 345, false: 1980}[n == 0] }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell, _ := measure(t, suitetest.Faults{}, "cuda:0", func(_ *bench.Bench, g *gpu) { g.adjust = c.adjust })
			if got := strings.Join(cell.Notes, "; "); !strings.Contains(got, c.note) || (c.note == "") != (got == "") {
				t.Errorf("notes %q", got)
			}
		})
	}
	cell, _ := measure(t, suitetest.Faults{}, "cuda:0", func(_ *bench.Bench, g *gpu) { g.fails = true })
	if cell.Outcome != bench.Measured || len(cell.GPU) != 0 || !strings.Contains(strings.Join(cell.Notes, "; "), "round 3: the driver is gone") ||
		!strings.Contains(strings.Join(cell.Notes, "; "), "took of the GPU is not known: the driver is gone") {
		t.Errorf("%s, notes %q", cell.Outcome, cell.Notes)
	}
}

// Arms that become ready at the same time are measured one after the other all the same.
func TestOpenedTogether(t *testing.T) {
	cell, start := measure(t, suitetest.Faults{}, "cuda:0", func(b *bench.Bench, _ *gpu) { b.Opening = 4 })
	if cell.Outcome != bench.Measured || start.Most != 5 {
		t.Errorf("%s, %d at once", cell.Outcome, start.Most)
	}
}

func TestIterations(t *testing.T) {
	cell, _ := measure(t, suitetest.Faults{}, "cuda:0", func(b *bench.Bench, _ *gpu) { b.Settings.Rounds, b.Settings.Iterations = 2, 7 })
	for _, a := range cell.Arms {
		if a.Step.Steps != 14 || len(a.Rounds) != 2 || a.Rounds[1].Steps != 7 {
			t.Errorf("%s: %+v", a.Name, a)
		}
	}
}

// Who interrupts a run loses the cell in work, and nothing stays behind.
func TestInterrupted(t *testing.T) {
	for _, at := range []string{"recording", "opening native-eager", "round 2 of 5", "first prediction of " + bench.FirstWarm} {
		t.Run(at, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := &suitetest.Starter{}
			b := &bench.Bench{Start: start, Settings: settings(), Arms: bench.Arms(true, true), Opening: 1, Progress: func(e suite.Event) {
				if e.What == at {
					cancel()
				}
			}}
			if _, _, err := b.Measure(ctx, cellOn("cuda:0")); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if start.Alive != 0 {
				t.Errorf("%d processes are left", start.Alive)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	var events []suite.Event
	measure(t, suitetest.Faults{}, "cuda:0", func(b *bench.Bench, _ *gpu) {
		b.Progress = func(e suite.Event) { events = append(events, e) }
	})
	last := events[len(events)-1]
	if last.Step != last.Steps || last.Steps != 1+5+5+5 || len(events) != last.Steps || bench.Steps(5, settings()) != last.Steps {
		t.Errorf("%d events, the last is %+v", len(events), last)
	}
}

func TestRatios(t *testing.T) {
	cell := func(family, precision string, graph, native float64) bench.Cell {
		return bench.Cell{Family: family, Task: "detect", Precision: precision, ImgSize: 640, Batch: 1, Arms: []bench.Arm{
			{Name: arm.ReferenceGraph, Step: &bench.Spread{MedianMS: graph}, Memory: bench.Memory{PeakBytes: 200}},
			{Name: arm.NativeGraph, Step: &bench.Spread{MedianMS: native}, Memory: bench.Memory{PeakBytes: 100}}}}
	}
	r := bench.Report{Cells: []bench.Cell{cell("a", "bf16", 4, 2), cell("b", "fp32", 4, 4), cell("c", "fp32", 8, 2),
		{Family: "d", Precision: "fp32", Arms: []bench.Arm{{Name: arm.ReferenceGraph}}}}}
	r.SumUp()
	want := []bench.Ratio{
		{What: bench.StepTime, Precision: "fp32", Cells: 2, Geomean: 0.5, Least: 0.25, Most: 1, MostOf: "b detect 640 batch 1 fp32"},
		{What: bench.StepTime, Precision: "bf16", Cells: 1, Geomean: 0.5, Least: 0.5, Most: 0.5, MostOf: "a detect 640 batch 1 bf16"},
		{What: bench.StepTime, Precision: "", Cells: 3, Geomean: 0.5, Least: 0.25, Most: 1, MostOf: "b detect 640 batch 1 fp32"},
		{What: bench.DeviceMemory, Precision: "fp32", Cells: 2, Geomean: 0.5, Least: 0.5, Most: 0.5, MostOf: "b detect 640 batch 1 fp32"},
		{What: bench.DeviceMemory, Precision: "bf16", Cells: 1, Geomean: 0.5, Least: 0.5, Most: 0.5, MostOf: "a detect 640 batch 1 bf16"},
		{What: bench.DeviceMemory, Precision: "", Cells: 3, Geomean: 0.5, Least: 0.5, Most: 0.5, MostOf: "a detect 640 batch 1 bf16"},
	}
	if len(r.Ratios) != len(want) {
		t.Fatalf("%d ratios: %+v", len(r.Ratios), r.Ratios)
	}
	for i, w := range want {
		w.Of, w.To = arm.NativeGraph, arm.ReferenceGraph
		got := r.Ratios[i]
		if math.Abs(got.Geomean-w.Geomean) > 1e-12 {
			t.Errorf("%+v", got)
		}
		got.Geomean = w.Geomean
		if got != w {
			t.Errorf("got  %+v\nwant %+v", got, w)
		}
	}
}

// ExampleSummarize keeps the figures' definitions: those of NumPy's percentile.
func ExampleSummarize() {
	s := bench.Summarize([]float64{4, 1, 3, 2, 10})
	fmt.Println(s.MedianMS, s.MinMS, s.Q1MS, s.Q3MS, s.IQRMS, s.Steps)
	s = bench.Summarize([]float64{1, 2})
	fmt.Println(s.MedianMS, s.Q1MS, s.Q3MS)
	// Output:
	// 3 1 2 4 2 5
	// 1.5 1.25 1.75
}
