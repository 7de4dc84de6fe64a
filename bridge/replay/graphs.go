// Package replay says of each step whether it runs eagerly or is a replay of a captured graph: by what a user asks for, by what a
// certificate allows, and by how many graphs there are. Models of the native engine and of plugins use it alike.
package replay

import (
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

const (
	// MaxGraphs is how many graphs one model keeps. None gives way to another: further shapes run eagerly.
	MaxGraphs = 8
	// AutoAfter is how many steps of a shape run eagerly before mode Auto captures one: it does so at the third.
	AutoAfter = 2
)

// Mode is what a user says of graphs.
type Mode string

// The modes.
const (
	Off  Mode = "off"
	On   Mode = "on"   // a shape is captured at its first step
	Auto Mode = "auto" // at its third
)

// ParseMode reads a mode in any case: false, true and auto, or off and on.
func ParseMode(text string) (Mode, error) {
	switch strings.ToLower(text) {
	case "false", "off":
		return Off, nil
	case "true", "on":
		return On, nil
	case "auto":
		return Auto, nil
	}
	return Off, diag.New("WRONG_GRAPH_MODE", "cuda_graph", "%q; there are false, true and auto", text)
}

// Graphs says of each step of a model, which may have several shapes, whether it runs eagerly or is replayed, and counts both.
// It is used by one goroutine at a time.
type Graphs struct {
	Mode Mode
	// Refusal says why no shape may be captured; nil: all may but those that have a Refusal of their own.
	Refusal error
	// Trial lets Capture capture in spite of Refusal: what it gives is no CUDA graph.
	Trial bool
	// Warn is told, once each, what a person should know; nil: nobody.
	Warn func(line string)

	all    []*Graph
	failed error // why a capture failed: no other is tried until Release
	full   bool  // it was said that there are too many
	reason error // of the latest step that fell back, which is not made a text in every step
}

// Shape says what a graph was captured of.
type Shape struct {
	Sizes  []int64 // of the first input
	DType  string
	Device string
}

// ShapeOf is that of a step with these inputs. It may have none.
func ShapeOf(inputs []tensor.Spec, device string) Shape {
	if len(inputs) == 0 {
		return Shape{Sizes: []int64{}, Device: device}
	}
	return Shape{Sizes: slices.Clone(inputs[0].Sizes), DType: inputs[0].DType.String(), Device: device}
}

func (s Shape) String() string { return fmt.Sprintf("%s%v on %s", s.DType, s.Sizes, s.Device) }

// Launcher is what a graph is captured of: a model at one shape.
type Launcher interface {
	Run() error
	Capture() (nodes int, err error)
	Captured() bool
	Replay() error
	Release() error
}

// Graph is one shape's.
type Graph struct {
	Refusal error // why this shape may not be captured; nil: the set's counts

	set     *Graphs
	step    Launcher
	shape   Shape
	nodes   int
	replays int64 // since the capture
	since   int   // eager steps since the last release
	byHand  bool  // captured before a step asked for it
	unused  bool  // it was said that such a graph is not replayed
	counts
}

// counts are since the model was loaded.
type counts struct{ captures, replayed, eager, fallbacks int64 }

func (c *counts) add(o counts) {
	c.captures += o.captures
	c.replayed += o.replayed
	c.eager += o.eager
	c.fallbacks += o.fallbacks
}

// Add takes a further shape.
func (s *Graphs) Add(step Launcher, shape Shape) *Graph {
	g := &Graph{set: s, step: step, shape: shape}
	s.all = append(s.all, g)
	return g
}

func (s *Graphs) warn(format string, args ...any) {
	if s.Warn != nil {
		s.Warn(fmt.Sprintf(format, args...))
	}
}

// Launch runs one step without waiting, in the model's own mode: also in mode Off a graph is replayed that was captured by
// hand. Inputs are written. What cannot be captured runs eagerly; it was said why when that was found.
func (g *Graph) Launch() error { return g.launch(g.set.Mode, true) }

// LaunchAs is Launch in another mode: in mode Off the step runs eagerly.
func (g *Graph) LaunchAs(mode Mode) error { return g.launch(mode, mode != Off) }

func (g *Graph) launch(mode Mode, replay bool) error {
	s := g.set
	wanted := mode == On || mode == Auto && g.since >= AutoAfter
	if replay && g.step.Captured() {
		g.replays++
		g.replayed++
		return g.step.Replay()
	}
	if wanted {
		if g.tryCapture() {
			g.replays++
			g.replayed++
			return g.step.Replay()
		}
		g.fallbacks++
	}
	s.sayUnused(g)
	g.eager++
	g.since++
	return g.step.Run()
}

var errFull = fmt.Errorf("GRAPH_LIMIT: there are %d graphs, which is the most", MaxGraphs)

// tryCapture captures for a step, and latches what goes wrong.
func (g *Graph) tryCapture() bool {
	s := g.set
	switch refusal := g.refusal(); {
	case refusal != nil:
		s.reason = refusal
		return false
	case s.failed != nil:
		s.reason = s.failed
		return false
	case s.Count() >= MaxGraphs:
		s.reason = errFull
		if !s.full {
			s.full = true
			s.warn("%v: %v and further shapes run eagerly; release_graphs() makes room", s.reason, g.shape)
		}
		return false
	}
	if err := g.capture(); err != nil {
		s.failed, s.reason = err, err
		s.warn("no graph could be captured, steps run eagerly until release_graphs(): %v", err)
		return false
	}
	return true
}

func (g *Graph) refusal() error {
	if g.set.Refusal != nil {
		return g.set.Refusal
	}
	return g.Refusal
}

func (g *Graph) capture() error {
	nodes, err := g.step.Capture()
	if err != nil {
		return err
	}
	g.nodes, g.replays, g.byHand, g.unused = nodes, 0, false, false
	g.captures++
	return nil
}

// Capture captures a shape now, whatever the mode. What goes wrong is an error, and no other capture is tried until Release.
func (g *Graph) Capture() error {
	s := g.set
	switch {
	case g.step.Captured():
		return nil
	case g.refusal() != nil && !s.Trial:
		return g.refusal()
	case s.failed != nil:
		return diag.New("CAPTURE_LATCHED", "", "a capture failed before, and no other is tried until release_graphs(): %v", s.failed)
	case s.Count() >= MaxGraphs:
		return diag.New("GRAPH_LIMIT", "", "there are %d graphs, which is the most; release_graphs() makes room", MaxGraphs)
	}
	if err := g.capture(); err != nil {
		s.failed, s.reason = err, err
		return err
	}
	g.byHand = true
	return nil
}

// Nodes is the size of the graph.
func (g *Graph) Nodes() int { return g.nodes }

// Count is the number of graphs that may be replayed now.
func (s *Graphs) Count() int {
	n := 0
	for _, g := range s.all {
		if g.step.Captured() {
			n++
		}
	}
	return n
}

// sayUnused says that a graph which was captured beforehand does not serve, when a step of another shape runs eagerly.
func (s *Graphs) sayUnused(running *Graph) {
	for _, g := range s.all {
		if g != running && g.byHand && g.replays == 0 && !g.unused && g.step.Captured() {
			g.unused = true
			s.warn("GRAPH_UNUSED: %v was captured beforehand and never replayed; steps have the shape %v", g.shape, running.shape)
		}
	}
}

// Unused says of graphs that were captured beforehand that none replayed them, as far as it was not said.
func (s *Graphs) Unused() {
	for _, g := range s.all {
		if g.byHand && g.replays == 0 && !g.unused && g.step.Captured() {
			g.unused = true
			s.warn("GRAPH_UNUSED: %v was captured beforehand and never replayed", g.shape)
		}
	}
}

// Release drops all graphs. A capture that failed is forgotten, and mode Auto counts anew.
func (s *Graphs) Release() error {
	s.Unused()
	var first error
	for _, g := range s.all {
		if err := g.step.Release(); err != nil && first == nil {
			first = err
		}
		g.nodes, g.replays, g.since, g.byHand, g.unused = 0, 0, 0, false, false
	}
	s.failed, s.reason, s.full = nil, nil, false
	return first
}

// Latched reports whether a capture failed, so that no other is tried.
func (s *Graphs) Latched() bool { return s.failed != nil }

// Info is what is known of a model's graphs.
type Info struct {
	Mode           Mode            `json:"mode"`
	Captured       []CapturedGraph `json:"captured"`
	Count          int             `json:"graph_count"`
	Max            int             `json:"max_graphs"`
	Nodes          int             `json:"nodes"`
	Captures       int64           `json:"captures"`
	Replays        int64           `json:"replays"`
	EagerSteps     int64           `json:"eager_steps"`
	EagerFallbacks int64           `json:"eager_fallbacks"`
	FallbackReason string          `json:"fallback_reason"`
}

// CapturedGraph is one of them.
type CapturedGraph struct {
	Shape   []int64 `json:"shape"`
	DType   string  `json:"dtype"`
	Device  string  `json:"device"`
	Nodes   int     `json:"nodes"`
	Replays int64   `json:"replays"`
}

// Info counts what ran since the model was loaded.
func (s *Graphs) Info() Info {
	info := Info{Mode: s.Mode, Captured: []CapturedGraph{}, Max: MaxGraphs}
	if s.reason != nil {
		info.FallbackReason = s.reason.Error()
	}
	var sum counts
	for _, g := range s.all {
		sum.add(g.counts)
		if g.step.Captured() {
			info.Captured = append(info.Captured, CapturedGraph{g.shape.Sizes, g.shape.DType, g.shape.Device, g.nodes, g.replays})
			info.Nodes += g.nodes
		}
	}
	info.Count = len(info.Captured)
	info.Captures, info.Replays, info.EagerSteps, info.EagerFallbacks = sum.captures, sum.replayed, sum.eager, sum.fallbacks
	return info
}
