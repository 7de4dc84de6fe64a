package suite

import (
	"context"

	"samebits/bridge/arm"
	"samebits/parity/turns"
)

// start starts a process for an arm of this cell, and teaches it to wait for its turns.
func (v *verification) start(ctx context.Context, start func(context.Context) (Arm, error)) (Arm, error) {
	p := polite{turns: v.suite.Turns, gpu: v.asked.OnGPU()}
	done, err := p.busy(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if p.Arm, err = start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// polite is an arm that waits for its turn before each call that uses the device. Measure is not among them: who
// measures has the device alone.
type polite struct {
	Arm
	turns *turns.Turns
	gpu   bool // otherwise the device is what everything runs on
}

// busy waits for the turn of work that keeps a processor busy and needs no GPU.
func (p polite) busy(ctx context.Context) (done func(), err error) {
	if p.gpu {
		return p.turns.Prepare(ctx)
	}
	return p.turns.Share(ctx)
}

// shared makes a call that uses the device beside others.
func shared[Reply any](ctx context.Context, t *turns.Turns, call func() (Reply, error)) (Reply, error) {
	done, err := t.Share(ctx)
	if err != nil {
		var none Reply
		return none, err
	}
	defer done()
	return call()
}

func (p polite) silent(ctx context.Context, call func() error) error {
	_, err := shared(ctx, p.turns, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// Build leaves the GPU to others for as long as it can: most of the work is the processor's.
func (p polite) Build(ctx context.Context, r arm.BuildRequest) (arm.BuildReply, error) {
	if p.gpu && p.turns != nil {
		if err := p.construct(ctx, r); err != nil {
			return arm.BuildReply{}, err
		}
	}
	return shared(ctx, p.turns, func() (arm.BuildReply, error) { return p.Arm.Build(ctx, r) })
}

func (p polite) construct(ctx context.Context, r arm.BuildRequest) error {
	done, err := p.busy(ctx)
	if err != nil {
		return err
	}
	defer done()
	r.ConstructOnly = true
	_, err = p.Arm.Build(ctx, r)
	return err
}

func (p polite) Record(ctx context.Context, inputs arm.Bank) (arm.RecordReply, error) {
	return shared(ctx, p.turns, func() (arm.RecordReply, error) { return p.Arm.Record(ctx, inputs) })
}

// Export of what Build and Record left behind copies files, a checkpoint comes from the device.
func (p polite) Export(ctx context.Context, r arm.ExportRequest) error {
	if r.What != arm.TheCheckpoint {
		return p.Arm.Export(ctx, r)
	}
	return p.silent(ctx, func() error { return p.Arm.Export(ctx, r) })
}

func (p polite) Load(ctx context.Context, r arm.LoadRequest) (arm.LoadReply, error) {
	return shared(ctx, p.turns, func() (arm.LoadReply, error) { return p.Arm.Load(ctx, r) })
}

func (p polite) Prepare(ctx context.Context, r arm.PrepareRequest) (arm.PrepareReply, error) {
	return shared(ctx, p.turns, func() (arm.PrepareReply, error) { return p.Arm.Prepare(ctx, r) })
}

func (p polite) Step(ctx context.Context, input, output int) error {
	return p.silent(ctx, func() error { return p.Arm.Step(ctx, input, output) })
}

func (p polite) Disturb(ctx context.Context, r arm.DisturbRequest) error {
	return p.silent(ctx, func() error { return p.Arm.Disturb(ctx, r) })
}

func (p polite) Trace(ctx context.Context, r arm.TraceRequest) (arm.TraceReply, error) {
	return shared(ctx, p.turns, func() (arm.TraceReply, error) { return p.Arm.Trace(ctx, r) })
}
