package suite

import (
	"context"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/gate"
	"samebits/parity/probe"
)

// Stand is a cell that was built and recorded, for arms that are run outside of a verification. They get one probe.
type Stand struct {
	Cell Cell // with size, task and image size filled in
	// Recorded has the model's own weights at least.
	Recorded Recorded
	// Unrecorded is why there is no recording, if there is none: native arms cannot run then.
	Unrecorded error

	asked       Cell
	environment []recording.Setting // of the reference
}

// standProbe is the input of arms on a stand.
const standProbe = probe.Noise

// NewStand builds a cell and records it. It fails only if the cell cannot be built.
func NewStand(ctx context.Context, start Starter, cell Cell) (*Stand, error) {
	a, err := start.Reference(ctx)
	if err != nil {
		return nil, err
	}
	defer a.Stop()
	s := &Stand{asked: cell}
	return s, guarded(func() error { return s.record(ctx, a) })
}

func (s *Stand) record(ctx context.Context, a Arm) error {
	r, err := startRecorder(ctx, a, s.asked, []string{standProbe})
	if err != nil {
		return err
	}
	d, err := a.Describe(ctx)
	if err != nil {
		return err
	}
	s.environment = d.Environment
	if s.Unrecorded = r.first(ctx); s.Unrecorded == nil {
		s.Unrecorded = r.got.check()
	}
	s.Cell, s.Recorded = r.got.Cell, r.got
	return nil
}

// Images gives the bytes of the images that every arm gets.
func (s *Stand) Images() ([]byte, error) {
	images := s.Recorded.Inputs[0]
	data := make([]byte, images.Bytes())
	return data, probe.Fill(standProbe, images, s.Cell.Seed, data)
}

// Standing is an arm on a stand, ready to step.
type Standing struct {
	session *session
	v       *verification
}

// Open starts a process for an arm by its name, a native one with options, and makes it ready. A reference arm is built anew
// and given the weights of the recorder.
func (s *Stand) Open(ctx context.Context, start Starter, name string, options ...recording.Setting) (*Standing, error) {
	v := (&Suite{Start: start}).begin(s.asked)
	v.cell, v.recorded, v.probes = s.Cell, s.Recorded, []string{standProbe}
	v.environment[reference] = s.environment
	close(v.ready)
	open := func() (*session, error) { return v.openReference(ctx, name) }
	if name == arm.NativeEager || name == arm.NativeGraph {
		if s.Unrecorded != nil {
			return nil, s.Unrecorded
		}
		open = func() (*session, error) { return v.openNative(ctx, name, options...) }
	}
	ready, err := open()
	if err != nil {
		return nil, err
	}
	return &Standing{ready, v}, nil
}

// Arm is the arm itself.
func (s *Standing) Arm() Arm { return s.session.arm }

// Prepared is what the arm said when it became ready.
func (s *Standing) Prepared() arm.PrepareReply { return s.session.prepared }

// Step runs one step and gives its outputs.
func (s *Standing) Step(ctx context.Context) (outputs gate.Outputs, err error) {
	err = guarded(func() error {
		outputs, err = s.session.step(ctx, standProbe, 0)
		return err
	})
	return outputs, err
}

// Environment is that of the two sides, as far as this arm knows them.
func (s *Standing) Environment() map[string]string { return s.v.mergedEnvironment() }

// Guarded calls work and makes an error of a panic, so that what one plugin did does not end others' work.
func Guarded(work func() error) error { return guarded(work) }
