// Package turns orders who may use what verifications at the same time share: a device, on which nobody else may work while
// one is measured, and the processors, which starting and building keep busy.
package turns

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Turns orders the users of one device and of the processors. A nil Turns lets everybody do everything.
//
// Whoever wants the device alone must wait until all who share it have ended their calls, and meanwhile nobody may begin
// one. So that this happens rarely, some who want it alone are gathered, and served one after the other.
type Turns struct {
	gather     int
	patience   time.Duration
	processors *semaphore.Weighted

	mu      sync.Mutex
	sharing int
	alone   bool
	closed  bool // nobody new may share, until those who want to be alone were served
	sharers []*waiter
	loners  []*waiter
}

// waiter is somebody who waits for the device.
type waiter struct {
	turn     chan struct{} // is closed when it is there
	patience *time.Timer   // of one who wants to be alone
}

// patience is how long one who wants the device alone lets others come first.
const patience = 20 * time.Second

// New makes turns under which so many may prepare at once, and so many who want the device alone are gathered.
func New(preparing, gather int) *Turns {
	return &Turns{gather: max(gather, 1), patience: patience, processors: semaphore.NewWeighted(int64(max(preparing, 1)))}
}

// Share waits until the device may be used beside others. What it gives must be called in the end.
func (t *Turns) Share(ctx context.Context) (done func(), err error) {
	if t == nil {
		return func() {}, ctx.Err()
	}
	w := &waiter{turn: make(chan struct{})}
	return t.wait(ctx, w, &t.sharers, t.shared)
}

// Alone waits until nobody else uses the device, and keeps others off it. Who shares it already must not ask.
func (t *Turns) Alone(ctx context.Context) (done func(), err error) {
	if t == nil {
		return func() {}, ctx.Err()
	}
	w := &waiter{turn: make(chan struct{})}
	w.patience = time.AfterFunc(t.patience, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.loners) > 0 {
			t.closed = true
		}
		t.admit()
	})
	defer w.patience.Stop()
	return t.wait(ctx, w, &t.loners, t.wasAlone)
}

// Prepare waits for a processor: for work that keeps one busy and leaves the device alone.
func (t *Turns) Prepare(ctx context.Context) (done func(), err error) {
	if t == nil {
		return func() {}, ctx.Err()
	}
	if err := t.processors.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { t.processors.Release(1) }, nil
}

// wait queues w and waits for its turn.
func (t *Turns) wait(ctx context.Context, w *waiter, queue *[]*waiter, done func()) (func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	*queue = append(*queue, w)
	t.admit()
	t.mu.Unlock()
	select {
	case <-w.turn:
		return done, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range *queue {
		if other == w {
			*queue = append((*queue)[:i], (*queue)[i+1:]...)
			t.admit() // the device may have been kept free for this one
			return nil, ctx.Err()
		}
	}
	return done, nil // its turn came in the same moment
}

// admit gives turns to all whose time has come.
func (t *Turns) admit() {
	if len(t.loners) >= t.gather {
		t.closed = true
	}
	if len(t.loners) == 0 && !t.alone {
		t.closed = false
	}
	if !t.closed && !t.alone {
		for _, w := range t.sharers {
			t.sharing++
			close(w.turn)
		}
		t.sharers = nil
	}
	if t.sharing == 0 && !t.alone && len(t.loners) > 0 { // also where it is free by chance
		w := t.loners[0]
		t.loners = t.loners[1:]
		t.alone = true
		close(w.turn)
	}
}

func (t *Turns) shared() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sharing--
	t.admit()
}

func (t *Turns) wasAlone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alone = false
	t.admit()
}
