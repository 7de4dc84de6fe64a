package verifypage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/matrix"
	"samebits/parity/page"
	"samebits/parity/result"
)

// A lane has a line for each run of launches of one sort, in units of launches.
func TestLaunchPlot(t *testing.T) {
	l := &result.Launches{Kinds: []string{"kernel silu", "library convolution", "memory fill"}, Order: "AABBACA", Lanes: "0000110"}
	p := newLaunchPlot(l)
	if p == nil || p.Total != 7 || !slices.Equal(p.Lanes, []int{1, 2}) || len(p.Rows) != 2 || p.Rows[1].Label != "lane 2" || !(p.Rows[0].Y < p.Rows[1].Y) {
		t.Fatalf("%+v", p)
	}
	for lane, want := range [][]launchPath{
		{{"launch-0", "M0 0m2 0h2"}, {"launch-1", "M0 0m0 0h2m4 0h1"}},
		{{"launch-1", "M0 0m4 0h1"}, {"launch-2", "M0 0m5 0h1"}},
	} {
		if !slices.Equal(p.Rows[lane].Paths, want) {
			t.Errorf("lane %d: %+v", lane+1, p.Rows[lane].Paths)
		}
	}
	for i, want := range []string{"{kernel silu 4 [3 1]}", "{library convolution 2 [2 0]}", "{memory fill 1 [0 1]}"} {
		if got := fmt.Sprint(p.Kinds[i]); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
	if len(p.Legend) != 3 || p.Legend[0].Name != "cuDNN and cuBLAS" || p.Scale*7 != page.PlotWidth-page.LabelWidth-page.EndWidth {
		t.Errorf("%+v, scale %v", p.Legend, p.Scale)
	}
	for name, bad := range map[string]*result.Launches{
		"none": nil, "empty": {}, "lanes of another length": {Kinds: l.Kinds, Order: "AA", Lanes: "0"}, "no such kind": {Kinds: l.Kinds, Order: "D"},
		"no letter": {Kinds: l.Kinds, Order: "!"}, "no such lane": {Kinds: l.Kinds, Order: "A", Lanes: ":"}, "a lane below 0": {Kinds: l.Kinds, Order: "A", Lanes: "/"},
	} {
		if p := newLaunchPlot(bad); p != nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := newLaunchPlot(&result.Launches{Kinds: l.Kinds, Order: "AB"}); p == nil || len(p.Rows) != 1 {
		t.Errorf("without lanes: %+v", p)
	}
}

// Phases that cannot be are not drawn; the others are.
func TestTimeline(t *testing.T) {
	p := newTimeline([]result.Process{
		{Arm: "x", Phases: []result.Phase{{Name: "start", At: 0, Took: 100, Calls: 1}, {Name: "build", At: -5, Took: 3, Calls: 1}, {Name: "steps", At: 100, Took: 300, Calls: 4, Waited: 20},
			{Name: "steps", At: 400, Took: 100, Calls: 2}, {Name: "unheard of", At: 500, Took: 500, Calls: 1}}},
		{Arm: "x"},
	})
	if p == nil || len(p.Rows) != 2 || p.Rows[1].Label != "x (2)" || len(p.Rows[0].Parts) != 4 || p.Rows[0].End != "1.00 s" {
		t.Fatalf("%+v", p)
	}
	var names []string
	for _, s := range p.Legend {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"start", "steps", "other"}) ||
		!slices.Equal(p.Rows[0].Words, []string{"0.10 s (1)", "0.40 s, 20.0 ms waiting (6)", "0.50 s (1)"}) || !slices.Equal(p.Rows[1].Words, []string{"-", "-", "-"}) {
		t.Errorf("%q, %q, %q", names, p.Rows[0].Words, p.Rows[1].Words)
	}
	first, steps := p.Rows[0].Parts[0], p.Rows[0].Parts[1]
	if first.X != page.LabelWidth || steps.X != page.Round(first.X+first.Width) || page.Round(steps.Width) != page.Round(3*first.Width) || steps.Class != "phase-steps" {
		t.Errorf("%+v, %+v", first, steps)
	}
	for _, high := range []float64{0, 1e13} {
		if p := newTimeline([]result.Process{{Phases: []result.Phase{{Took: high}}}}); p != nil {
			t.Errorf("%v: %+v", high, p)
		}
	}
}

// The arena is drawn at the right end of the peak that it is a part of.
func TestMemoryPlot(t *testing.T) {
	r := result.Result{Weights: 2 << 20, Arms: []string{arm.ReferenceGraph, arm.NativeEager, arm.NativeGraph}, Memory: map[string]result.Memory{
		arm.ReferenceGraph: {PeakBytes: 8 << 20, ReservedBytes: 16 << 20}, arm.NativeGraph: {PeakBytes: 8 << 20, ArenaBytes: 4 << 20}}}
	p := newMemoryPlot(&r)
	if p == nil || len(p.Rows) != 2 {
		t.Fatalf("%+v", p)
	}
	reference, native := p.Rows[0], p.Rows[1]
	if reference.Width != native.Width || reference.Arena != 0 || page.Round(native.Width/2) != native.Arena || native.ArenaX != page.LabelWidth+native.Arena {
		t.Errorf("%+v\n%+v", reference, native)
	}
	if reference.ReservedX != page.LabelWidth+2*reference.Width || reference.EndX != reference.ReservedX+8 || native.ReservedX != 0 || native.EndX != page.LabelWidth+native.Width+8 ||
		p.WeightsX != page.Round(page.LabelWidth+native.Width/4) {
		t.Errorf("%+v\n%+v\n%v", reference, native, p.WeightsX)
	}
	if native.Text != "native-graph: peak 8.00 MiB, arena 4.00 MiB" || reference.Text != "reference-graph: peak 8.00 MiB, reserved 16 MiB" {
		t.Errorf("%q, %q", native.Text, reference.Text)
	}
}

func TestSpread(t *testing.T) {
	var cells []matrix.Cell
	for _, x := range []float64{2, 0, 0.5, 4} {
		cells = append(cells, matrix.Cell{NativeGraph: x, ReferenceGraph: 1})
	}
	if s := spreadOf(cells, matrix.Cell.Ratio); s.n != 3 || s.within != 1 || s.String() != "geomean 1.587 of 3 cells; 0.500 to 4.000" {
		t.Errorf("%+v: %s", s, s)
	}
	if s := spreadOf(cells[:2], matrix.Cell.Ratio); s.String() != "2.000 in one cell" {
		t.Errorf("%+v: %s", s, s)
	}
}

// A row is a digest with the arms that have it.
func TestShared(t *testing.T) {
	r := &result.Result{Arms: []string{"a", "b", "c"}}
	for _, c := range []struct {
		digests []string
		want    string
	}{
		{[]string{"1", "1", "1"}, "[{w n 1 all 3 arms false}]"},
		{[]string{"1", "2", "1"}, "[{w n 1 a, c true} {w n 2 b true}]"},
		{[]string{"", "2", "2"}, "[{w n 2 b, c false}]"},
		{[]string{"", "", ""}, "[]"},
	} {
		got := shared(r, "w", "n", func(arm string) string { return c.digests[strings.Index("abc", arm)] })
		if fmt.Sprint(got) != c.want {
			t.Errorf("%q: %v", c.digests, got)
		}
	}
}

// What all machines have alike is said once; of the others each result has its own.
func TestEnvironments(t *testing.T) {
	all := []result.Result{{Environment: map[string]string{"gpu": "A", "torch": "2", "driver": "5"}}, {Environment: map[string]string{"gpu": "B", "torch": "2"}}}
	e := newEnvironments(all)
	if fmt.Sprint(e) != "{[{torch 2}] [{driver [{5 1}]} {gpu [{A 1} {B 1}]}]}" {
		t.Errorf("%v", e)
	}
	if got := fmt.Sprint(e.own(all[0].Environment), e.own(all[1].Environment)); got != "[{driver 5} {gpu A}] [{gpu B}]" {
		t.Errorf("%s", got)
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1\u202f000", -123456: "-123\u202f456", 1234567: "1\u202f234\u202f567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	if got := fmt.Sprint(ticks("`a` is `b`.")); got != "[{a true} { is  false} {b true} {. false}]" {
		t.Errorf("%s", got)
	}
	long := strings.Repeat("x", longest)
	if shorten(long) != long || shorten(long+"yz") != long+"… (2 bytes more in the result)" {
		t.Error(shorten(long + "yz"))
	}
}
