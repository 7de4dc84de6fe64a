package suitetest

import (
	"context"
	"sync"
	"time"

	"samebits/bridge/arm"
	"samebits/parity/suite"
)

// Device counts who uses the device that all fakes share.
type Device struct {
	Constructed int // models that were made before their turn on the device
	Most        int // calls that used the device at once
	Measured    int // arms
	// Disturbed counts calls that used the device while an arm was measured, or measurements at the same time.
	Disturbed int

	mu        sync.Mutex
	users     int
	measuring int
}

// use makes a call that uses the device.
func (d *Device) use(call func() error) error {
	d.mu.Lock()
	d.users++
	d.Most = max(d.Most, d.users)
	if d.measuring > 0 {
		d.Disturbed++
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.users--
		d.mu.Unlock()
	}()
	return call()
}

// measure takes a moment, so that others can disturb.
func (d *Device) measure() (done func()) {
	d.mu.Lock()
	d.Measured++
	if d.users > 0 || d.measuring > 0 {
		d.Disturbed++
	}
	d.measuring++
	d.mu.Unlock()
	time.Sleep(time.Millisecond)
	return func() {
		d.mu.Lock()
		d.measuring--
		d.mu.Unlock()
	}
}

// watched is an arm whose use of the device is counted.
type watched struct {
	suite.Arm
	device *Device
}

func used[Reply any](d *Device, call func() (Reply, error)) (reply Reply, err error) {
	err = d.use(func() error {
		reply, err = call()
		return err
	})
	return reply, err
}

func (w watched) Build(ctx context.Context, r arm.BuildRequest) (arm.BuildReply, error) {
	if r.ConstructOnly {
		w.device.mu.Lock()
		w.device.Constructed++
		w.device.mu.Unlock()
		return w.Arm.Build(ctx, r)
	}
	return used(w.device, func() (arm.BuildReply, error) { return w.Arm.Build(ctx, r) })
}

func (w watched) Record(ctx context.Context, inputs arm.Bank) (arm.RecordReply, error) {
	return used(w.device, func() (arm.RecordReply, error) { return w.Arm.Record(ctx, inputs) })
}

func (w watched) Load(ctx context.Context, r arm.LoadRequest) (arm.LoadReply, error) {
	return used(w.device, func() (arm.LoadReply, error) { return w.Arm.Load(ctx, r) })
}

func (w watched) Prepare(ctx context.Context, r arm.PrepareRequest) (arm.PrepareReply, error) {
	return used(w.device, func() (arm.PrepareReply, error) { return w.Arm.Prepare(ctx, r) })
}

func (w watched) Step(ctx context.Context, input, output int) error {
	return w.device.use(func() error { return w.Arm.Step(ctx, input, output) })
}

func (w watched) Disturb(ctx context.Context, r arm.DisturbRequest) error {
	return w.device.use(func() error { return w.Arm.Disturb(ctx, r) })
}

func (w watched) Situate(ctx context.Context, r arm.SituateRequest) (arm.SituateReply, error) {
	return used(w.device, func() (arm.SituateReply, error) { return w.Arm.Situate(ctx, r) })
}

func (w watched) Trace(ctx context.Context, r arm.TraceRequest) (arm.TraceReply, error) {
	return used(w.device, func() (arm.TraceReply, error) { return w.Arm.Trace(ctx, r) })
}

func (w watched) Measure(ctx context.Context, r arm.MeasureRequest) (arm.MeasureReply, error) {
	defer w.device.measure()()
	return w.Arm.Measure(ctx, r)
}
