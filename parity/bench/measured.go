package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/compare"
	"samebits/parity/gate"
	"samebits/parity/launch"
	"samebits/parity/suite"
)

// measured is an arm with its process.
type measured struct {
	report   *Arm
	standing *suite.Standing
	watch    *stopwatch
	outputs  gate.Outputs
	perRound int // steps of a round; 0: not known yet
	warmup   int
	samples  []float64
	launched arm.Stats // when it was ready
}

// open starts the arm and has it predict once.
func (m *measured) open(ctx context.Context, r *run) error {
	m.watch = &stopwatch{Starter: r.Start}
	standing, err := r.stand.Open(ctx, m.watch, m.report.Name)
	if err != nil {
		return err
	}
	m.standing = standing
	began := time.Now()
	if m.outputs, err = standing.Step(ctx); err != nil {
		return err
	}
	m.watch.add("step", time.Since(began))
	m.report.Ready = m.watch.stages
	m.report.Memory.ArenaBytes = m.watch.arena
	m.launched, err = standing.Arm().Stats(ctx)
	return err
}

// fail notes why an arm has no figures, or not all, and ends its process: what broke once is not measured again.
func (m *measured) fail(ctx context.Context, err error) {
	m.report.Outcome, m.report.Problems = outcomeOf(ctx, err)
	m.stop()
}

func (m *measured) stop() {
	if m.standing != nil {
		m.standing.Arm().Stop()
		m.standing = nil
	}
}

// stopwatch is a Starter that times the calls on the one arm that it starts.
type stopwatch struct {
	suite.Starter
	inner  suite.Arm
	stages []launch.Stage
	arena  int64
	aside  time.Duration // what the arm was asked beside, for reports
}

func (s *stopwatch) add(name string, took time.Duration) {
	s.stages = append(s.stages, launch.Stage{Name: name, MS: float64(took) / float64(time.Millisecond)})
}

func (s *stopwatch) started(start func() (suite.Arm, error)) (suite.Arm, error) {
	began := time.Now()
	inner, err := start()
	if err != nil {
		return nil, err
	}
	s.inner = inner
	s.add("start", time.Since(began))
	return timed{inner, s}, nil
}

// Reference implements suite.Starter.
func (s *stopwatch) Reference(ctx context.Context) (suite.Arm, error) {
	return s.started(func() (suite.Arm, error) { return s.Starter.Reference(ctx) })
}

// Native implements suite.Starter.
func (s *stopwatch) Native(ctx context.Context, reference []recording.Setting) (suite.Arm, error) {
	return s.started(func() (suite.Arm, error) { return s.Starter.Native(ctx, reference) })
}

// pid is the number of the arm's process; 0: it is none of this machine.
func (s *stopwatch) pid() int {
	if p, is := s.inner.(interface{ PID() int }); is {
		return p.PID()
	}
	return 0
}

// timed is an arm whose calls on the way to its first step are timed.
type timed struct {
	suite.Arm
	watch *stopwatch
}

func (t timed) Describe(ctx context.Context) (arm.Description, error) {
	began := time.Now()
	d, err := t.Arm.Describe(ctx)
	t.watch.aside += time.Since(began)
	return d, err
}

func (t timed) Build(ctx context.Context, r arm.BuildRequest) (arm.BuildReply, error) {
	began := time.Now()
	reply, err := t.Arm.Build(ctx, r)
	t.watch.add("build", time.Since(began))
	return reply, err
}

func (t timed) Load(ctx context.Context, r arm.LoadRequest) (arm.LoadReply, error) {
	began := time.Now()
	reply, err := t.Arm.Load(ctx, r)
	t.watch.add("load", time.Since(began))
	t.watch.arena = reply.ArenaBytes
	return reply, err
}

func (t timed) Prepare(ctx context.Context, r arm.PrepareRequest) (arm.PrepareReply, error) {
	began := time.Now()
	reply, err := t.Arm.Prepare(ctx, r)
	t.watch.add("prepare", time.Since(began))
	return reply, err
}

// measure has the arm step a number of times.
func (m *measured) measure(ctx context.Context, warmup, iterations int) ([]float64, error) {
	reply, err := m.standing.Arm().Measure(ctx, arm.MeasureRequest{Warmup: warmup, Iterations: iterations})
	if err != nil {
		return nil, fmt.Errorf("%s: measure: %w", m.report.Name, err)
	}
	if len(reply.Milliseconds) != iterations {
		return nil, fmt.Errorf("%s: measured %d steps instead of %d", m.report.Name, len(reply.Milliseconds), iterations)
	}
	for _, ms := range reply.Milliseconds {
		if !(ms > 0) || math.IsInf(ms, 0) {
			return nil, fmt.Errorf("%s: a step took %v ms", m.report.Name, ms)
		}
	}
	return reply.Milliseconds, nil
}

// The bounds of a round's steps where their number was not asked for.
const (
	fewestSteps  = 5
	mostSteps    = 200
	mostWarmup   = 20
	fewestWarmup = 2
)

// turn is one round of an arm: warm-up, then the steps that count.
func (m *measured) turn(ctx context.Context, s Settings, round, place int) error {
	if m.perRound == 0 {
		if err := m.afford(ctx, s); err != nil {
			return err
		}
	}
	times, err := m.measure(ctx, m.warmup, m.perRound)
	if err != nil {
		return err
	}
	m.samples = append(m.samples, times...)
	m.report.Rounds = append(m.report.Rounds, Round{Round: round, Place: place, Warmup: m.warmup, Spread: Summarize(times)})
	return nil
}

// afford chooses how many steps a round has. They are the same in all rounds, so that rounds weigh the same.
func (m *measured) afford(ctx context.Context, s Settings) error {
	one, err := m.measure(ctx, fewestWarmup, 1)
	if err != nil {
		return err
	}
	m.perRound = s.Iterations
	if m.perRound == 0 {
		m.perRound = min(max(int(s.Seconds*1000/one[0]), fewestSteps), mostSteps)
	}
	m.warmup = min(max(int(s.Seconds*250/one[0]), fewestWarmup), mostWarmup)
	return nil
}

// sumUp asks the arm what it did and took.
func (m *measured) sumUp(ctx context.Context) error {
	stats, err := m.standing.Arm().Stats(ctx)
	if err != nil {
		return fmt.Errorf("%s: stats: %w", m.report.Name, err)
	}
	a := m.report
	a.Memory.PeakBytes, a.Memory.ReservedBytes, a.Note = stats.PeakBytes, stats.ReservedBytes, stats.FallbackReason
	a.Memory.MaxRSSBytes, a.Memory.SharedBytes = rss(m.watch.pid())
	steps := stats.Replays + stats.EagerSteps - m.launched.Replays - m.launched.EagerSteps
	if launches := stats.Launches - m.launched.Launches; steps > 0 && launches > 0 {
		a.Launches, a.LaunchUnit = float64(launches)/float64(steps), launchUnits[a.Name]
	}
	return nil
}

// launchUnits says what an arm counts.
var launchUnits = map[string]string{
	arm.ReferenceEager:   "operations",
	arm.ReferenceGraph:   "graph nodes",
	arm.ReferenceCompile: "graph nodes",
	arm.NativeEager:      "commands",
	arm.NativeGraph:      "graph nodes",
}

// compareBits says how outputs differ from the eager reference's.
func compareBits(eager, got gate.Outputs) Bits {
	got = got.Sorted(eager)
	b := Bits{Same: len(eager) == len(got), Outputs: len(eager)}
	for i, want := range eager {
		if i < len(got) && got[i].Name == want.Name && got[i].Digest == want.Digest {
			continue
		}
		b.Same = false
		b.Different = append(b.Different, want.Name)
		if i >= len(got) || got[i].Name != want.Name || got[i].DType != want.DType {
			continue
		}
		if figures, err := compare.Bits(want.DType, want.Data, got[i].Data); err == nil { // else they have other sizes
			b.MaxAbs = max(b.MaxAbs, figures.MaxAbs)
		}
	}
	return b
}
