package suite

import (
	"context"
	"time"

	"samebits/bridge/arm"
)

// Call is one call on an arm's process, or its start: what Suite.Calls is told.
type Call struct {
	Cell   Cell
	Arm    string // or recorder
	What   string
	Began  time.Time     // when it was due
	Waited time.Duration // for its turn
	Took   time.Duration // after that
}

// start starts a process for an arm of this cell, and teaches it to wait for its turns.
func (v *verification) start(ctx context.Context, name string, start func(context.Context) (Arm, error)) (Arm, error) {
	return v.startIn(ctx, v.room.await, name, start)
}

// startIn is start for an arm that builds no model on the device before enter has given it room there.
func (v *verification) startIn(ctx context.Context, enter func(context.Context) error, name string, start func(context.Context) (Arm, error)) (Arm, error) {
	p := polite{suite: v.suite, cell: v.asked, name: name, enter: enter}
	p.note = v.account.process(name)
	err := p.call(ctx, "Start", p.busy, func() (err error) {
		p.Arm, err = start(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// polite is an arm that waits for its turn before each call that uses the device, and tells of it.
type polite struct {
	Arm
	suite *Suite
	cell  Cell
	name  string
	note  func(Call)
	enter func(context.Context) error // waits for room on the device
}

// tell says what was done.
func (p polite) tell(c Call) {
	p.note(c)
	if p.suite.Calls != nil {
		p.suite.Calls(c)
	}
}

// busy waits for the turn of work that keeps a processor busy and needs no GPU. Without a GPU the processors are the device.
func (p polite) busy(ctx context.Context) (done func(), err error) {
	if p.cell.OnGPU() {
		return p.suite.Turns.Prepare(ctx)
	}
	return p.suite.Turns.Share(ctx)
}

// call makes a call in its turn.
func (p polite) call(ctx context.Context, what string, turn func(context.Context) (func(), error), call func() error) error {
	began := time.Now()
	done, err := turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	waited := time.Since(began)
	err = call()
	p.tell(Call{p.cell, p.name, what, began, waited, time.Since(began) - waited})
	return err
}

// atOnce is the turn of a call that waits for nobody.
func atOnce(context.Context) (func(), error) { return func() {}, nil }

// shared makes a call that uses the device beside others.
func (p polite) shared(ctx context.Context, what string, call func() error) error {
	return p.call(ctx, what, p.suite.Turns.Share, call)
}

// Build leaves the GPU to others for as long as it can: most of the work is the processor's.
func (p polite) Build(ctx context.Context, r arm.BuildRequest) (reply arm.BuildReply, err error) {
	if p.cell.OnGPU() && p.suite.Turns != nil {
		early := r
		early.ConstructOnly = true
		err := p.call(ctx, "Construct", p.busy, func() error {
			_, err := p.Arm.Build(ctx, early)
			return err
		})
		if err != nil {
			return reply, err
		}
	}
	if err := p.enter(ctx); err != nil {
		return reply, err
	}
	err = p.shared(ctx, "Build", func() (err error) { reply, err = p.Arm.Build(ctx, r); return err })
	return reply, err
}

// Record implements Arm.
func (p polite) Record(ctx context.Context, inputs arm.Bank) (reply arm.RecordReply, err error) {
	err = p.shared(ctx, "Record", func() (err error) { reply, err = p.Arm.Record(ctx, inputs); return err })
	return reply, err
}

// Export of what Build and Record left behind copies files, a checkpoint comes from the device.
func (p polite) Export(ctx context.Context, r arm.ExportRequest) error {
	turn := p.suite.Turns.Share
	if r.What != arm.TheCheckpoint {
		turn = atOnce
	}
	return p.call(ctx, "Export", turn, func() error { return p.Arm.Export(ctx, r) })
}

// Load implements Arm.
func (p polite) Load(ctx context.Context, r arm.LoadRequest) (reply arm.LoadReply, err error) {
	err = p.shared(ctx, "Load", func() (err error) { reply, err = p.Arm.Load(ctx, r); return err })
	return reply, err
}

// Prepare implements Arm.
func (p polite) Prepare(ctx context.Context, r arm.PrepareRequest) (reply arm.PrepareReply, err error) {
	err = p.shared(ctx, "Prepare", func() (err error) { reply, err = p.Arm.Prepare(ctx, r); return err })
	return reply, err
}

// Step implements Arm.
func (p polite) Step(ctx context.Context, input, output int) error {
	return p.shared(ctx, "Step", func() error { return p.Arm.Step(ctx, input, output) })
}

// Disturb implements Arm.
func (p polite) Disturb(ctx context.Context, r arm.DisturbRequest) error {
	return p.shared(ctx, "Disturb", func() error { return p.Arm.Disturb(ctx, r) })
}

// Situate implements Arm.
func (p polite) Situate(ctx context.Context, r arm.SituateRequest) (reply arm.SituateReply, err error) {
	err = p.shared(ctx, "Situate", func() (err error) { reply, err = p.Arm.Situate(ctx, r); return err })
	return reply, err
}

// Trace implements Arm.
func (p polite) Trace(ctx context.Context, r arm.TraceRequest) (reply arm.TraceReply, err error) {
	err = p.shared(ctx, "Trace", func() (err error) { reply, err = p.Arm.Trace(ctx, r); return err })
	return reply, err
}

// Measure waits for no turn: who measures has the device alone, and several arms one after the other.
func (p polite) Measure(ctx context.Context, r arm.MeasureRequest) (reply arm.MeasureReply, err error) {
	err = p.call(ctx, "Measure", atOnce, func() (err error) { reply, err = p.Arm.Measure(ctx, r); return err })
	return reply, err
}

// Stop ends the process.
func (p polite) Stop() {
	began := time.Now()
	p.Arm.Stop()
	p.tell(Call{Cell: p.cell, Arm: p.name, What: "Stop", Began: began, Took: time.Since(began)})
}
