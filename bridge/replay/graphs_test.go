package replay

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

// step counts what is asked of it.
type step struct {
	did      []string
	captured bool
	broken   bool
	kept     error // what Release says
}

func (s *step) note(what string) error { s.did = append(s.did, what); return nil }
func (s *step) Run() error             { return s.note("run") }
func (s *step) Replay() error          { return s.note("replay") }
func (s *step) Release() error         { s.captured = false; _ = s.note("release"); return s.kept }
func (s *step) Captured() bool         { return s.captured }
func (s *step) Capture() (int, error) {
	if s.broken {
		return 0, errors.New("CAPTURE_FAILED: as told")
	}
	s.captured = true
	return 3, s.note("capture")
}

func watched(mode Mode) (*Graphs, *[]string) {
	said := &[]string{}
	return &Graphs{Mode: mode, Warn: func(line string) { *said = append(*said, line) }}, said
}

func launch(t *testing.T, g *Graph, times int) {
	t.Helper()
	for range times {
		if err := g.Launch(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestModes(t *testing.T) {
	for mode, want := range map[Mode]string{
		Off: "run run run run", On: "capture replay replay replay replay", Auto: "run run capture replay replay",
	} {
		s := &step{}
		graphs, _ := watched(mode)
		launch(t, graphs.Add(s, Shape{}), 4)
		if got := strings.Join(s.did, " "); got != want {
			t.Errorf("%s: %s instead of %s", mode, got, want)
		}
	}
	for text, want := range map[string]Mode{"True": On, "FALSE": Off, "AUTO": Auto, "auto": Auto} {
		if got, err := ParseMode(text); err != nil || got != want {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "yes", "force"} {
		if _, err := ParseMode(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// A step may ask for another mode than the model's.
func TestLaunchAs(t *testing.T) {
	graphs, _ := watched(Off)
	s := &step{}
	g := graphs.Add(s, Shape{})
	for _, mode := range []Mode{Off, Auto, On, Auto, Off} {
		if err := g.LaunchAs(mode); err != nil {
			t.Fatal(err)
		}
	}
	launch(t, g, 1) // the model's own mode is off, and there is a graph
	if got := strings.Join(s.did, " "); got != "run run capture replay replay run replay" {
		t.Error(got)
	}
	broken := errors.New("LAUNCH_FAILED: as told")
	if err := graphs.Add(&failing{err: broken}, Shape{}).LaunchAs(Off); !errors.Is(err, broken) {
		t.Errorf("a step that fails: %v", err)
	}
}

// failing is a step that fails.
type failing struct {
	step
	err error
}

func (f *failing) Run() error { return f.err }

// Eight graphs, and none gives way; one line says so.
func TestAtMostEightGraphs(t *testing.T) {
	if MaxGraphs != 8 {
		t.Errorf("%d graphs", MaxGraphs)
	}
	graphs, said := watched(On)
	var all []*Graph
	for range MaxGraphs + 2 {
		all = append(all, graphs.Add(&step{}, Shape{Sizes: []int64{1, int64(len(all))}, DType: "float32", Device: "host"}))
	}
	for range 3 {
		for _, g := range all {
			launch(t, g, 1)
		}
	}
	info := graphs.Info()
	if info.Count != MaxGraphs || info.Captures != MaxGraphs || info.Replays != 3*MaxGraphs || info.EagerSteps != 6 || info.EagerFallbacks != 6 {
		t.Errorf("%+v", info)
	}
	if len(*said) != 1 || !strings.HasPrefix((*said)[0], "GRAPH_LIMIT") || !strings.Contains((*said)[0], "float32[1 8] on host and further shapes") ||
		!strings.Contains(info.FallbackReason, "GRAPH_LIMIT") {
		t.Errorf("%q, %q", *said, info.FallbackReason)
	}
	if info.Nodes != 3*MaxGraphs {
		t.Errorf("%d nodes", info.Nodes)
	}
	if err := all[MaxGraphs].Capture(); !is(err, "GRAPH_LIMIT") {
		t.Error(err)
	}
	if err := graphs.Release(); err != nil {
		t.Fatal(err)
	}
	launch(t, all[MaxGraphs], 1)
	if info := graphs.Info(); info.Count != 1 || !slices.Equal(info.Captured[0].Shape, []int64{1, MaxGraphs}) || info.Captured[0].Replays != 1 {
		t.Errorf("after the release: %+v", info)
	}
	for _, g := range all {
		launch(t, g, 1)
	}
	if len(*said) != 2 || !strings.HasPrefix((*said)[1], "GRAPH_LIMIT") {
		t.Errorf("too many again: %q", *said)
	}
}

func is(err error, reason string) bool {
	problems, _ := diag.Of(err)
	return slices.ContainsFunc(problems, func(p diag.Problem) bool { return p.Reason == reason })
}

// A capture that fails is tried no more before Release, for no shape, and steps are right meanwhile.
func TestAFailedCaptureIsLatched(t *testing.T) {
	graphs, said := watched(On)
	s, other := &step{broken: true}, &step{}
	a, b := graphs.Add(s, Shape{}), graphs.Add(other, Shape{})
	launch(t, a, 2)
	launch(t, b, 1)
	if strings.Join(s.did, " ") != "run run" || strings.Join(other.did, " ") != "run" || !graphs.Latched() || len(*said) != 1 {
		t.Errorf("%q %q, %q", s.did, other.did, *said)
	}
	if info := graphs.Info(); info.EagerFallbacks != 3 || !strings.Contains(info.FallbackReason, "as told") || info.Count != 0 {
		t.Errorf("%+v", info)
	}
	if err := b.Capture(); !is(err, "CAPTURE_LATCHED") {
		t.Error(err)
	}
	s.broken = false
	if err := graphs.Release(); err != nil || graphs.Latched() || graphs.Info().FallbackReason != "" {
		t.Errorf("%v, %+v", err, graphs.Info())
	}
	launch(t, a, 1)
	if graphs.Info().Count != 1 {
		t.Errorf("%+v", graphs.Info())
	}
}

// So is one that fails when it is asked for by hand. Its error is the caller's.
func TestAFailedCaptureByHandIsLatched(t *testing.T) {
	graphs := &Graphs{Mode: On} // nobody is told
	s, other := &step{broken: true}, &step{}
	a, b := graphs.Add(s, Shape{}), graphs.Add(other, Shape{})
	if err := a.Capture(); err == nil || !strings.Contains(err.Error(), "as told") || is(err, "CAPTURE_LATCHED") {
		t.Errorf("%v", err)
	}
	launch(t, b, 1)
	if err := b.Capture(); !is(err, "CAPTURE_LATCHED") || !strings.Contains(err.Error(), "as told") {
		t.Errorf("%v", err)
	}
	if info := graphs.Info(); !graphs.Latched() || info.Count != 0 || !strings.Contains(info.FallbackReason, "as told") {
		t.Errorf("%+v", info)
	}
	if err := graphs.Release(); err != nil {
		t.Fatal(err)
	}
	s.broken = false
	launch(t, a, 1)
	s.broken, s.captured = true, false
	launch(t, a, 1) // with nobody to tell
	if !graphs.Latched() {
		t.Error("not latched")
	}
}

// A shape that has its graph is not captured again by hand.
func TestCapturedOnce(t *testing.T) {
	graphs, _ := watched(Off)
	s := &step{}
	g := graphs.Add(s, Shape{})
	for range 2 {
		if err := g.Capture(); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(s.did, " ") != "capture" || graphs.Info().Captures != 1 || g.Nodes() != 3 {
		t.Errorf("%q, %+v", s.did, graphs.Info())
	}
}

// Release releases every graph, whatever one of them says; what the first said is its error. Mode Auto counts anew then.
func TestRelease(t *testing.T) {
	graphs, _ := watched(Auto)
	first, second := errors.New("first"), errors.New("second")
	steps := []*step{{}, {kept: first}, {kept: second}, {}}
	var all []*Graph
	for _, s := range steps {
		g := graphs.Add(s, Shape{})
		launch(t, g, 3)
		all = append(all, g)
	}
	if err := graphs.Release(); !errors.Is(err, first) || errors.Is(err, second) {
		t.Errorf("%v", err)
	}
	for i, s := range steps {
		if s.did[len(s.did)-1] != "release" || all[i].Nodes() != 0 {
			t.Errorf("%d: %q, %d nodes", i, s.did, all[i].Nodes())
		}
		s.did = nil
		launch(t, all[i], 3)
		if got := strings.Join(s.did, " "); got != "run run capture replay" {
			t.Errorf("%d after the release: %s", i, got)
		}
	}
}

// What is captured beforehand and serves no step is said once.
func TestUnusedGraphs(t *testing.T) {
	graphs, said := watched(Auto)
	early, runs := graphs.Add(&step{}, Shape{DType: "early"}), graphs.Add(&step{}, Shape{DType: "runs"})
	if err := early.Capture(); err != nil {
		t.Fatal(err)
	}
	launch(t, runs, 3)
	if err := graphs.Release(); err != nil {
		t.Fatal(err)
	}
	if len(*said) != 1 || !strings.Contains((*said)[0], "GRAPH_UNUSED: early") {
		t.Errorf("%q", *said)
	}
	*said = nil
	for _, g := range []*Graph{early, runs} {
		if err := g.Capture(); err != nil {
			t.Fatal(err)
		}
	}
	launch(t, early, 1)
	graphs.Unused()
	graphs.Unused()
	if len(*said) != 1 || !strings.Contains((*said)[0], "GRAPH_UNUSED: runs") {
		t.Errorf("%q", *said)
	}
}

// It is said at the first step of another shape that runs eagerly, or else when the graphs go. A graph that was replayed, or
// that is gone, is not meant, nor is the running step's own.
func TestWhenUnusedGraphsAreNamed(t *testing.T) {
	graphs, said := watched(Auto)
	one, two, gone := &step{}, &step{}, &step{}
	early, used, lost, runs := graphs.Add(one, Shape{DType: "early"}), graphs.Add(two, Shape{DType: "used"}), graphs.Add(gone, Shape{DType: "lost"}),
		graphs.Add(&step{}, Shape{DType: "runs"})
	for _, g := range []*Graph{early, used, lost} {
		if err := g.Capture(); err != nil {
			t.Fatal(err)
		}
	}
	gone.captured = false
	launch(t, used, 1)
	if err := early.LaunchAs(Off); err != nil || len(*said) != 0 {
		t.Errorf("%q, %v", *said, err)
	}
	launch(t, runs, 2)
	if len(*said) != 1 || (*said)[0] != "GRAPH_UNUSED: early[] on  was captured beforehand and never replayed; steps have the shape runs[] on " {
		t.Errorf("%q", *said)
	}
	if err := graphs.Release(); err != nil || len(*said) != 1 {
		t.Errorf("%q, %v", *said, err)
	}
	if err := early.Capture(); err != nil {
		t.Fatal(err)
	}
	if err := graphs.Release(); err != nil || len(*said) != 2 || (*said)[1] != "GRAPH_UNUSED: early[] on  was captured beforehand and never replayed" {
		t.Errorf("%q, %v", *said, err)
	}
}

// Where nothing may be captured, nothing is, whatever is asked for.
func TestRefusal(t *testing.T) {
	for _, mode := range []Mode{On, Auto} {
		graphs, _ := watched(mode)
		graphs.Refusal = diag.New("NO_CERTIFICATE", "", "nobody certified it")
		s := &step{}
		g := graphs.Add(s, Shape{})
		launch(t, g, 4)
		if err := g.LaunchAs(On); err != nil {
			t.Fatal(err)
		}
		if err := g.Capture(); !is(err, "NO_CERTIFICATE") {
			t.Error(err)
		}
		info := graphs.Info()
		if strings.Contains(strings.Join(s.did, " "), "capture") || info.Captures != 0 || !strings.Contains(info.FallbackReason, "NO_CERTIFICATE") {
			t.Errorf("%q, %+v", s.did, info)
		}
	}
}

// A shape may be refused alone: the others are captured. For a trial a refusal does not count, in no step but by hand.
func TestRefusalOfOneShape(t *testing.T) {
	graphs, _ := watched(On)
	s, other := &step{}, &step{}
	refused, taken := graphs.Add(s, Shape{}), graphs.Add(other, Shape{})
	refused.Refusal = diag.New("NO_CERTIFICATE", "", "nobody certified it")
	launch(t, refused, 1)
	launch(t, taken, 1)
	if err := refused.Capture(); !is(err, "NO_CERTIFICATE") {
		t.Error(err)
	}
	if strings.Join(s.did, " ") != "run" || strings.Join(other.did, " ") != "capture replay" {
		t.Errorf("%q %q", s.did, other.did)
	}
	graphs.Trial = true
	launch(t, refused, 1)
	if err := refused.Capture(); err != nil {
		t.Error(err)
	}
	if got := strings.Join(s.did, " "); got != "run run capture" {
		t.Error(got)
	}
}

// A graph that its step no longer holds is captured again, and is no graph meanwhile.
func TestInvalidatedGraphs(t *testing.T) {
	graphs, _ := watched(On)
	s := &step{}
	g := graphs.Add(s, Shape{})
	launch(t, g, 1)
	s.captured = false // as a Model says after its weights moved
	if graphs.Count() != 0 || len(graphs.Info().Captured) != 0 {
		t.Errorf("%+v", graphs.Info())
	}
	launch(t, g, 1)
	if got := strings.Join(s.did, " "); got != "capture replay capture replay" {
		t.Error(got)
	}
}

// No step takes memory: neither a replay, nor one that has no graph for whatever reason.
func TestLaunchesDoNotAllocate(t *testing.T) {
	full, _ := watched(On)
	for range MaxGraphs {
		full.Add(quiet{captured: true}, Shape{})
	}
	refused, _ := watched(Auto)
	refused.Refusal = diag.New("NO_CERTIFICATE", "", "nobody certified it")
	failed, _ := watched(On)
	failed.failed = errors.New("CAPTURE_FAILED: as told")
	replayed, _ := watched(On)
	for name, g := range map[string]*Graph{
		"replayed": replayed.Add(quiet{captured: true}, Shape{}), "too many": full.Add(quiet{}, Shape{}),
		"refused": refused.Add(quiet{}, Shape{}), "failed": failed.Add(quiet{}, Shape{}),
	} {
		launch(t, g, 4) // what is said is said once
		if n := testing.AllocsPerRun(20, func() { _ = g.Launch() }); n != 0 {
			t.Errorf("%s: a step takes memory %v times", name, n)
		}
		if fell := g.fallbacks > 0; fell != (name != "replayed") || fell != (g.set.Info().FallbackReason != "") {
			t.Errorf("%s: %+v", name, g.set.Info())
		}
	}
}

type quiet struct{ captured bool }

func (quiet) Run() error            { return nil }
func (quiet) Replay() error         { return nil }
func (quiet) Release() error        { return nil }
func (q quiet) Captured() bool      { return q.captured }
func (quiet) Capture() (int, error) { return 1, nil }

func TestShapeOf(t *testing.T) {
	inputs := []tensor.Spec{{DType: tensor.Float32, Sizes: []int64{1, 3}}, {DType: tensor.Int64, Sizes: []int64{2}}}
	if got := ShapeOf(inputs, "host").String(); got != "float32[1 3] on host" {
		t.Error(got)
	}
	if got := ShapeOf(nil, "host"); got.Sizes == nil || len(got.Sizes) != 0 || got.DType != "" || got.Device != "host" {
		t.Errorf("of a step without inputs: %#v", got)
	}
}
