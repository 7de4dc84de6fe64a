package turns

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Memory is that of a device on which cells are verified at the same time: who will fill some of it takes it before. A nil Memory
// gives everybody what he wants.
//
// Who comes first is served first, so that one who needs much is not passed for ever by others who need little. Who wants more
// than there is gets all, alone.
type Memory struct {
	bytes, share int64
	free         *semaphore.Weighted
}

// NewMemory shares so many bytes among so many cells. It gives nil where there is nothing to order: the bytes are not known, or
// there is one cell.
func NewMemory(bytes int64, cells int) *Memory {
	if bytes <= 0 || cells < 2 {
		return nil
	}
	return &Memory{bytes, bytes / int64(cells), semaphore.NewWeighted(bytes)}
}

// Share is what one cell has if all have as much: for those of which nothing else is known.
func (m *Memory) Share() int64 {
	if m == nil {
		return 0
	}
	return m.share
}

// Take waits until so many bytes are free; waits is called before, if they are not. What it gives must be called in the end.
func (m *Memory) Take(ctx context.Context, bytes int64, waits func()) (done func(), err error) {
	if m == nil {
		return func() {}, ctx.Err()
	}
	bytes = min(max(bytes, 0), m.bytes)
	if !m.free.TryAcquire(bytes) {
		waits()
		if err := m.free.Acquire(ctx, bytes); err != nil {
			return nil, err
		}
	}
	return func() { m.free.Release(bytes) }, nil
}
