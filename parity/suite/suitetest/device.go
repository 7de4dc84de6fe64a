package suitetest

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/parity/suite"
)

// Device counts who uses the device that all fakes share.
type Device struct {
	Constructed int // models that were made before their turn on the device
	Most        int // calls that used the device at once
	Measured    int // arms
	// Disturbed counts calls that used the device while an arm was measured, or measurements at the same time.
	Disturbed  int
	Memory     int64 // of which processes take some when they build or load a model; 0: there is always enough
	MostFilled int64 // of it, at once

	mu        sync.Mutex
	users     int
	measuring int
	filled    map[*fakeArm]int64
}

// fill takes memory for the model of a process.
func (d *Device) fill(a *fakeArm) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.filled == nil {
		d.filled = map[*fakeArm]int64{}
	}
	d.filled[a] = a.reserves()
	all := int64(0)
	for _, bytes := range d.filled {
		all += bytes
	}
	if d.Memory > 0 && all > d.Memory {
		delete(d.filled, a)
		return &host.CallError{Plugin: a.kind, Call: "Build", Code: codes.ResourceExhausted,
			Problems: diag.Problems{{Reason: "OUT_OF_MEMORY", Summary: "the device is full"}}}
	}
	d.MostFilled = max(d.MostFilled, all)
	return nil
}

// empty gives back what a process took.
func (d *Device) empty(a *fakeArm) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.filled, a)
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
	fake   *fakeArm
}

func (w watched) Stop() {
	w.Arm.Stop()
	w.device.empty(w.fake)
}

// filling makes a call that takes memory of the device.
func filling[Reply any](w watched, call func() (Reply, error)) (Reply, error) {
	return used(w.device, func() (reply Reply, err error) {
		if reply, err = call(); err == nil {
			err = w.device.fill(w.fake)
		}
		return reply, err
	})
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
	return filling(w, func() (arm.BuildReply, error) { return w.Arm.Build(ctx, r) })
}

func (w watched) Record(ctx context.Context, inputs arm.Bank) (arm.RecordReply, error) {
	return used(w.device, func() (arm.RecordReply, error) { return w.Arm.Record(ctx, inputs) })
}

func (w watched) Load(ctx context.Context, r arm.LoadRequest) (arm.LoadReply, error) {
	return filling(w, func() (arm.LoadReply, error) { return w.Arm.Load(ctx, r) })
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
