package samebits

import "fmt"

// autoAfter is how many eager steps come before mode auto captures.
const autoAfter = 2

// graph says whether steps run eagerly or from a captured graph, and counts them.
type graph struct {
	mode     string // off, on, auto
	lenient  bool   // a step that cannot be captured runs eagerly, whatever the mode
	nodes    int
	since    int // eager steps since the last release
	captures int64
	replays  int64
	eager    int64
	failed   string // why capturing was given up
}

// launcher is what a graph is captured of: a model, or a trainer at one shape.
type launcher interface {
	Run() error
	Capture() (nodes int, err error)
	Replay() error
}

// launch runs one step without waiting. Inputs are written. The warning is for the caller of the step at which capturing was
// given up.
func (g *graph) launch(l launcher) (warning string, err error) {
	if g.nodes == 0 && (g.mode == "on" || g.mode == "auto" && g.since >= autoAfter) {
		err := g.capture(l)
		switch {
		case err != nil && g.mode == "on" && !g.lenient:
			return "", err
		case err != nil:
			g.mode, g.failed = "off", err.Error()
			warning = fmt.Sprintf("no graph could be captured, steps run eagerly from now on: %v", err)
		}
	}
	if g.nodes > 0 {
		g.replays++
		return warning, l.Replay()
	}
	g.eager++
	g.since++
	return warning, l.Run()
}

func (g *graph) capture(l launcher) error {
	if g.nodes > 0 {
		return nil
	}
	nodes, err := l.Capture()
	if err != nil {
		return err
	}
	g.nodes = nodes
	g.captures++
	return nil
}

// released forgets the graph that was dropped.
func (g *graph) released() { g.nodes, g.since = 0, 0 }

// info is what graph_info() of Python gives.
type info struct {
	Mode     string `json:"mode"`
	Captured bool   `json:"captured"`
	Nodes    int    `json:"nodes"`
	Captures int64  `json:"captures"`
	Replays  int64  `json:"replays"`
	Eager    int64  `json:"eager_steps"`
	Failure  string `json:"failure"`
}

func (g *graph) info() info {
	return info{g.mode, g.nodes > 0, g.nodes, g.captures, g.replays, g.eager, g.failed}
}

// graphed is content that has a graph.
type graphed interface {
	content
	captureNow() error
	releaseNow() error
	graphInfo() info
}

// CaptureGraph captures a step now, if none is captured: a job that gives GraphInfo's result.
func CaptureGraph(ticket, number int64) (result string, err error) {
	defer finish(&err)
	return withGraph(ticket, number, graphed.captureNow)
}

// ReleaseGraphs drops captured graphs: a job that gives GraphInfo's result.
func ReleaseGraphs(ticket, number int64) (result string, err error) {
	defer finish(&err)
	return withGraph(ticket, number, graphed.releaseNow)
}

// GraphInfo says how steps run: a job that gives an info.
func GraphInfo(ticket, number int64) (result string, err error) {
	defer finish(&err)
	return withGraph(ticket, number, func(graphed) error { return nil })
}

func withGraph(ticket, number int64, f func(g graphed) error) (string, error) {
	return run(ticket, func(*job) (result string, err error) {
		err = use(number, func(_ *object, g graphed) error {
			err := as(codeDevice, f(g))
			result = asJSON(g.graphInfo())
			return err
		})
		return result, err
	})
}

func (m *model) captureNow() error {
	if err := m.settle(); err != nil {
		return err
	}
	if err := m.zeroInputs(); err != nil {
		return err
	}
	return m.graph.capture(m)
}

func (m *model) releaseNow() error {
	m.graph.released()
	return m.Release()
}

func (m *model) graphInfo() info { return m.graph.info() }

// zeroInputs gives inputs that were never written a content, before a step runs to warm up: garbage could be an index.
func (m *model) zeroInputs() error {
	if m.written {
		return nil
	}
	for i, spec := range m.Inputs {
		if m.IsKey(i) {
			continue // no step reads it
		}
		if err := m.WriteInput(i, make([]byte, spec.Bytes())); err != nil {
			return err
		}
	}
	return nil
}
