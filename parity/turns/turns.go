// Package turns orders who may use what verifications at the same time share: a device, on which nobody else may work while
// one is measured, and the processors, which starting and building keep busy.
package turns

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// everybody is more than there will ever be users of a device at once.
const everybody = 1 << 30

// Turns orders the users of one device and of the processors. Who waits is served in the order of coming, so that one who
// wants the device alone is not passed for ever by those who share it. A nil Turns lets everybody do everything.
type Turns struct {
	device     *semaphore.Weighted
	processors *semaphore.Weighted
}

// New makes turns under which so many may prepare at once.
func New(preparing int) *Turns {
	return &Turns{semaphore.NewWeighted(everybody), semaphore.NewWeighted(int64(max(preparing, 1)))}
}

// Share waits until the device may be used beside others. What it gives must be called in the end.
func (t *Turns) Share(ctx context.Context) (done func(), err error) {
	if t == nil {
		return func() {}, ctx.Err()
	}
	return take(ctx, t.device, 1)
}

// Alone waits until nobody else uses the device, and keeps others off it. Who shares it already must not ask.
func (t *Turns) Alone(ctx context.Context) (done func(), err error) {
	if t == nil {
		return func() {}, ctx.Err()
	}
	return take(ctx, t.device, everybody)
}

// Prepare waits for a processor: for work that keeps one busy and leaves the device alone.
func (t *Turns) Prepare(ctx context.Context) (done func(), err error) {
	if t == nil {
		return func() {}, ctx.Err()
	}
	return take(ctx, t.processors, 1)
}

func take(ctx context.Context, s *semaphore.Weighted, n int64) (func(), error) {
	if err := s.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { s.Release(n) }, nil
}
