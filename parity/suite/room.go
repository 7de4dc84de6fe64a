package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/turns"
)

// What a process takes of a GPU beside what PyTorch's allocator took when the recorder built its model, which runs two steps.
const (
	contextBytes = 600 << 20 // CUDA's context, and the libraries' own memory
	// graphTakes is how many times as much a graph arm reserves: its graph has memory of its own beside that of the warm-up (up to 2.3
	// times on an H200), and situations capture again.
	graphTakes = 3
)

// waitingForMemory is what a cell is doing of which nobody works.
const waitingForMemory = "waiting for GPU memory"

// crew are the processes of a cell that are there at once.
type crew struct{ references, graphs, natives int64 }

// oneByOne are the most where the arms come one after the other: two, if a trace compares them.
var oneByOne = crew{graphs: 1, natives: 1}

// crew are the recorder and all parts.
func (ps *parts) crew() crew {
	c := crew{references: 1}
	for _, p := range ps.all() {
		switch p.name {
		case arm.ReferenceGraph:
			c.graphs++
		case arm.NativeEager, arm.NativeGraph:
			c.natives++
		default:
			c.references++
		}
	}
	return c
}

// needs estimates what they take together, by what the recorder took.
func (c crew) needs(recorder arm.Stats) int64 {
	const most = 1 << 50 // of what a plugin may say
	peak := min(max(recorder.PeakBytes, 0), most)
	reserved := min(max(recorder.ReservedBytes, peak), most)
	return (c.references+graphTakes*c.graphs)*reserved + c.natives*peak + (c.references+c.graphs+c.natives)*contextBytes
}

// room is what a cell has of its device's memory: first for its recorder, of which nobody knows yet what it takes, then for all of
// its processes. While it waits for that it holds no turn, and beside its recorder none of its processes has touched the device.
type room struct {
	memory   *turns.Memory
	there    chan struct{} // is closed when there is room for all
	asking   chan struct{} // is closed when nobody waits for it any more; nil: nobody has asked
	recorder func()        // gives back the recorder's
	all      func()        // gives back that of all
}

// newRoom gives nil where a cell has all it wants.
func (s *Suite) newRoom(cell Cell) *room {
	if s.Memory == nil || !cell.OnGPU() {
		return nil
	}
	return &room{memory: s.Memory, there: make(chan struct{})}
}

// await waits until there is room for all processes of the cell.
func (r *room) await(ctx context.Context) error {
	if r == nil {
		return ctx.Err()
	}
	select {
	case <-r.there:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recorderLeft gives back what the recorder had, whose process has ended.
func (r *room) recorderLeft() {
	if r != nil && r.recorder != nil {
		r.recorder()
		r.recorder = nil
	}
}

// leave gives back all. No process of the cell may be there any more, and the context in which it entered must have ended.
func (r *room) leave() {
	if r == nil || r.asking == nil {
		return
	}
	<-r.asking
	if r.all != nil {
		r.all()
	}
}

// enterToRecord waits for room for the recorder.
func (v *verification) enterToRecord(ctx context.Context) (err error) {
	if v.room == nil {
		return nil
	}
	waited := false
	v.room.recorder, err = v.take(ctx, recorderName, v.room.memory.Share()/2, func() {
		waited = true
		v.tell(v.event(waitingForMemory))
	})
	if err == nil && waited {
		v.tell(v.event("recording"))
	}
	return err
}

// enter asks for room for all processes of the cell, by what the recorder took, and does not wait for it: meanwhile the recorder
// goes on, and then ends. The context must end with the verification.
func (v *verification) enter(ctx context.Context, recorder Arm) error {
	if v.room == nil {
		return nil
	}
	bytes, err := v.needs(ctx, recorder)
	if err != nil {
		return err
	}
	waiting := v.event(waitingForMemory) // now: the recorder changes what it says
	v.room.asking = make(chan struct{})
	go func() {
		defer close(v.room.asking)
		all, err := v.take(ctx, "", bytes, func() { v.tell(waiting) })
		if err == nil {
			v.room.all = all
			close(v.room.there)
		}
	}()
	return nil
}

// needs is what all processes of the cell take; where the recorder does not count, as much as any.
func (v *verification) needs(ctx context.Context, recorder Arm) (int64, error) {
	stats, err := recorder.Stats(ctx)
	if err != nil && !errors.Is(err, arm.ErrUnimplemented) {
		return 0, fmt.Errorf("%s: stats: %w", recorderName, err)
	}
	if err != nil || stats.PeakBytes <= 0 && stats.ReservedBytes <= 0 {
		return v.room.memory.Share(), nil
	}
	c := v.crew
	if len(v.recorded.Others) > 0 && v.asks(gate.Shape) {
		c.graphs++ // of another shape
	}
	return c.needs(stats), nil
}

// take waits for memory, and tells of it like of a call.
func (v *verification) take(ctx context.Context, name string, bytes int64, waits func()) (func(), error) {
	began, waited := time.Now(), false
	done, err := v.room.memory.Take(ctx, bytes, func() {
		waited = true
		waits()
	})
	if err == nil && waited && v.suite.Calls != nil {
		v.suite.Calls(Call{Cell: v.asked, Arm: name, What: "Memory", Began: began, Waited: time.Since(began)})
	}
	return done, err
}
