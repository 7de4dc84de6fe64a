package suitetest

import (
	"context"
	"errors"
	"sync"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/suite"
)

// Faults of the fakes. Each stands for one kind of mistake that a gate must see.
type Faults struct {
	Noise            bool // eager differs from process to process
	NoiseTrace       bool // a trace sees that
	NoiseEachTime    bool // each trace of eager gives yet other bits
	OwnWeights       bool // each process of eager has other weights than it was given
	OwnScalar        bool // the recording depends on the process
	StateMoves       bool // eager differs from step to step
	Jumps            bool // eager gives quite other outputs beside the probes
	GraphsProcess    bool // the process of the reference's graph differs, with a graph and without
	InputIgnored     bool
	BranchOnInput    bool // the recording depends on the input
	ScalarFromStep   bool // the recording depends on the step
	OtherPrecision   bool // the recording is of another precision
	Stale            bool // replays go on with the inputs of the first
	NotWritten       bool // replays leave the outputs alone
	LeavesBankBehind bool // every replay writes all banks
	ReadsPoison      bool // replays read what Disturb poisoned
	ReadsChurn       bool // replays read memory that was freed
	NotCaptured      bool
	FallsBack        bool
	Waits            bool
	RunsEagerly      bool // says that it captured, and steps eagerly
	CapturesAgain    bool
	LaunchesNothing  bool
	Native           func(logits []float32) // what native changes
	NativeTrace      bool                   // native's fault is seen by a trace
	TraceFails       func() error           // of each trace
	OtherShape       bool                   // native gives other outputs
	OtherRecording   bool                   // native says that it loaded another recording
	Refuses          error                  // by native's Load
	Crash            error                  // by native's Step
	Dead             error                  // at the start of the reference
	CrashesOn        string                 // the family that native cannot load
	PanicsOn         string                 // the family on which native's side of the host panics

	Further  // of families with a seam or with keys
	Training // of the fakes in training
	Bench    // of the fakes that are measured
	Between  // of what happens between steps
	Pictures // of the fakes that predict
}

// Starter is a suite.Starter of fakes. What it counts may be read when nothing runs any more.
type Starter struct {
	Faults
	Processes   int // started so far
	Alive       int // of them, not yet stopped
	Most        int // of them, alive at once
	Device      Device
	Environment []recording.Setting // that all of them describe, beside their own
	// OnStart is told the number of each process that starts; it may be nil.
	OnStart func(process int)

	mu sync.Mutex
}

func (s *Starter) start(kind string) *fakeArm {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Processes++
	s.Alive++
	s.Most = max(s.Most, s.Alive)
	if s.OnStart != nil {
		s.OnStart(s.Processes)
	}
	return &fakeArm{starter: s, Faults: s.Faults, kind: kind, process: s.Processes}
}

func (s *Starter) stopped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Alive--
}

// Reference implements suite.Starter.
func (s *Starter) Reference(context.Context) (suite.Arm, error) {
	if s.Dead != nil {
		return nil, s.Dead
	}
	a := s.start("reference")
	return watched{&reference{Arm: a}, &s.Device, a}, nil
}

// reference becomes another fake when it is asked to build a model for training.
type reference struct{ suite.Arm }

func (r *reference) Build(ctx context.Context, request arm.BuildRequest) (arm.BuildReply, error) {
	if request.ConstructOnly {
		return arm.BuildReply{}, nil
	}
	if request.Mode == "train" {
		r.Arm = newPupil(r.Arm.(*fakeArm))
	}
	return r.Arm.Build(ctx, request)
}

// Native implements suite.Starter.
func (s *Starter) Native(_ context.Context, reference []recording.Setting) (suite.Arm, error) {
	a, err := s.native(reference)
	if err != nil {
		return nil, err
	}
	return watched{a, &s.Device, a}, nil
}

func (s *Starter) native(reference []recording.Setting) (*fakeArm, error) {
	if len(reference) == 0 {
		return nil, errors.New("native was not told of the reference's environment")
	}
	return s.start("native"), nil
}

// NativeTrainer implements suite.Starter.
func (s *Starter) NativeTrainer(_ context.Context, reference []recording.Setting) (suite.Arm, error) {
	a, err := s.native(reference)
	if err != nil {
		return nil, err
	}
	return watched{newPupil(a), &s.Device, a}, nil
}
