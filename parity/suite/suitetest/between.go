package suitetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
)

// Between are the faults of fakes in what may happen between steps. The arms are graph arms, but where something else is said.
type Between struct {
	KnowsNot     []string         // situations that no arm knows
	Fails        map[string]error // situations that are refused
	Kinds        map[string]int64 // of a graph's nodes; otherwise two kernels
	SecondDevice bool             // there is one
	CapturesLate bool             // after graphs are gone an eager step comes first

	StaleStream     bool // on another stream steps are wrong
	LosesStream     bool // on another stream steps are eager
	SpoiledByThread bool // a capture beside another thread is spoiled
	ThreadSkips     bool // nothing is captured in a thread
	KeepsPointers   bool // a graph reads the weights at their old addresses
	KeepsWeights    bool // a graph reads a copy of the weights that was made at its capture
	NativeKeeps     bool // native reads a copy of the weights that was made when they were loaded, eagerly too
	IgnoresWeights  bool // all arms: outputs do not depend on the weights
	StaysInMode     bool // after a change of modes a step is one of training
	Draws           bool // all arms: steps after a seed draw random numbers. No fault by itself
	SameDraws       bool // every replay draws what the first one did
	KeepsGenerator  bool // replays do not move the generator
	SurvivesFailure bool // the capture that is to fail does not
	Poisoned        bool // steps after a failed capture are wrong
	Dies            bool // steps after a failed capture are refused
	TriesAgain      bool // another capture is tried after one failed
	NeverAgain      bool // after a failed capture no other one works
	LeaksReplays    bool // each replay takes memory
	LeaksCaptures   bool // each capture does
	OnFirstDevice   bool // steps run on the device that is current
	ColdDiffers     bool // kernels that were just compiled are other ones
}

// between is the state of a fake between its steps.
type between struct {
	graph    bool // there is one
	waiting  bool // an eager step comes before the next capture
	copied   []float32
	loaded   []float32
	reading  []float32 // weights at addresses that no one keeps
	now      string    // the situation that has an effect on steps
	broken   bool      // the next capture fails
	failed   bool      // a capture failed
	seed     uint64
	offset   uint64
	drawing  int // steps that draw
	first    float32
	captures int64
	replays  int64
	cold     bool
}

// Situate implements suite.Arm.
func (a *fakeArm) Situate(_ context.Context, r arm.SituateRequest) (arm.SituateReply, error) {
	b := &a.between
	if slices.Contains(a.KnowsNot, r.Situation) {
		return arm.SituateReply{}, fmt.Errorf("%w: %w", arm.ErrUnimplemented, diag.New("UNKNOWN_SITUATION", "", "this arm knows no situation %q", r.Situation))
	}
	if err := a.Fails[r.Situation]; err != nil {
		return arm.SituateReply{}, err
	}
	b.now, b.drawing = r.Situation, 0
	switch r.Situation {
	case arm.OtherThread:
		b.graph = false
		if !a.ThreadSkips {
			a.capture()
		}
	case arm.Moved:
		if a.KeepsPointers {
			b.reading = slices.Repeat([]float32{float32(math.NaN())}, len(a.weights))
			break
		}
		b.graph = false
		a.stats.Invalidations++
	case arm.Updated, arm.Restored:
		for i := range a.weights {
			a.weights[i] *= map[string]float32{arm.Updated: 0.5, arm.Restored: 2}[r.Situation]
		}
	case arm.Released:
		b.graph, b.failed, b.broken, b.reading = false, false, false, nil
		b.waiting = a.CapturesLate
	case arm.FailsCapture:
		b.graph, b.broken = false, true
	case arm.Seeded:
		b.seed, b.offset, b.drawing = r.Seed, 0, 2
	case arm.OtherDevice:
		if !a.SecondDevice {
			return arm.SituateReply{}, diag.New("NO_SECOND_DEVICE", "situation", "there is one GPU")
		}
	}
	return arm.SituateReply{Facts: []recording.Setting{{Key: "situation", Value: r.Situation}}}, nil
}

func (a *fakeArm) capture() {
	b := &a.between
	b.graph = true
	b.copied = slices.Clone(a.weights)
	b.captures++
	a.stats.Captures++
}

// replaying reports whether the next step is a replay, and captures if it must.
func (a *fakeArm) replaying() bool {
	b := &a.between
	switch {
	case b.graph:
	case b.waiting:
		b.waiting = false
		a.stats.EagerSteps++
	case b.failed && !a.TriesAgain || b.failed && a.NeverAgain:
		a.stats.EagerSteps++
	case b.broken && !a.SurvivesFailure:
		b.broken, b.failed = false, true
		a.stats.Fallbacks++
		a.stats.EagerSteps++
		a.stats.FallbackReason = "the capture broke"
	case a.NeverAgain && b.captures > 0 && b.now == arm.Released:
		a.stats.EagerSteps++
	default:
		a.capture()
	}
	if b.graph && a.LosesStream && b.now == arm.OtherStream {
		a.stats.EagerSteps++
		return false
	}
	return b.graph
}

// read gives the weights that a step reads.
func (a *fakeArm) read(graph bool) []float32 {
	b := &a.between
	switch {
	case a.IgnoresWeights:
		return slices.Repeat([]float32{1}, len(a.weights))
	case graph && b.reading != nil:
		return b.reading
	case graph && a.KeepsWeights:
		return b.copied
	case a.kind == "native" && a.NativeKeeps:
		return b.loaded
	}
	return a.weights
}

// spoil does to a step what its situation does.
func (a *fakeArm) spoil(logits []float32, graph bool) {
	b := &a.between
	wrong := false
	switch b.now {
	case arm.OtherStream:
		wrong = a.StaleStream && graph
	case arm.OtherThread:
		wrong = a.SpoiledByThread && graph
	case arm.OtherMode:
		wrong = a.StaysInMode && a.banks.CUDAGraph
	case arm.FailsCapture:
		wrong = a.Poisoned && a.banks.CUDAGraph
	case arm.OtherDevice:
		wrong = a.OnFirstDevice && graph
	}
	if wrong {
		logits[1]++
	}
	if a.ColdDiffers && b.cold {
		logits[2]++
	}
	if b.drawing == 0 {
		return
	}
	b.drawing--
	draw := float32(b.seed*10+b.offset) / 8
	if graph && a.SameDraws {
		if b.offset == 0 {
			b.first = draw
		}
		draw = b.first
	}
	if !graph || !a.KeepsGenerator {
		b.offset++
	}
	if a.Draws {
		logits[3] += draw
	}
}

// inBetween adds to what the arm counted what its situations left.
func (a *fakeArm) inBetween(s arm.Stats) arm.Stats {
	b := &a.between
	s.Latched = b.failed
	if b.graph {
		if s.NodesByKind = maps.Clone(a.Kinds); s.NodesByKind == nil {
			s.NodesByKind = map[string]int64{arm.KernelNode: 2}
		}
	}
	if a.kind == "reference" {
		s.Generator = fmt.Sprint(b.seed, "/", b.offset)
	}
	s.AllocatedBytes = 1 << 20
	if a.LeaksReplays {
		s.AllocatedBytes += 512 * b.replays
	}
	if a.LeaksCaptures {
		s.AllocatedBytes += 4096 * b.captures
	}
	return s
}

// errDead is what a context says after an error that it does not recover from.
var errDead = errors.New("CUDA error 700: an illegal memory access was encountered")
