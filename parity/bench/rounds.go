package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"samebits/parity/suite"
)

// rounds measures all arms in alternation. In each round every arm has one turn, and another one is first: what changes in
// the course of a run, as temperatures do, meets all of them.
func (r *run) rounds(ctx context.Context) {
	for round := 1; round <= r.Settings.Rounds; round++ {
		r.progress(fmt.Sprintf("round %d of %d", round, r.Settings.Rounds))
		for place, m := range r.order(round) {
			if ctx.Err() != nil {
				return
			}
			if err := suite.Guarded(func() error { return m.turn(ctx, r.Settings, round, place+1) }); err != nil {
				m.fail(ctx, err)
			}
		}
		r.sample(ctx, fmt.Sprintf("round %d", round))
	}
	for _, m := range r.arms {
		if len(m.samples) > 0 {
			s := Summarize(m.samples)
			m.report.Step = &s
		}
	}
}

// order lists the arms that run, another one first in each round.
func (r *run) order(round int) []*measured {
	n := (round - 1) % len(r.arms)
	rotated := slices.Concat(r.arms[n:], r.arms[:n])
	return slices.DeleteFunc(rotated, func(m *measured) bool { return m.standing == nil })
}

// finish asks every arm what it took, and ends one after the other to see what the device has less in use then.
func (r *run) finish(ctx context.Context) {
	for _, m := range r.arms {
		if m.standing == nil {
			continue
		}
		if err := suite.Guarded(func() error { return m.sumUp(ctx) }); err != nil {
			m.fail(ctx, err)
		}
	}
	if r.Watch == nil {
		return
	}
	before, err := r.Watch.Read(ctx)
	for _, m := range r.arms {
		if m.standing == nil || err != nil || ctx.Err() != nil {
			continue
		}
		m.stop()
		now, failed := r.Watch.Read(ctx)
		if failed == nil && now.MemoryUsed > 0 && before.MemoryUsed > now.MemoryUsed {
			m.report.Memory.DeviceBytes = int64(before.MemoryUsed-now.MemoryUsed) << 20
		}
		before, err = now, failed
	}
	if err != nil && ctx.Err() == nil {
		r.note("what processes took of the GPU is not known: %v", err)
	}
}

// sample notes what the GPU does now.
func (r *run) sample(ctx context.Context, when string) {
	if r.Watch == nil || ctx.Err() != nil {
		return
	}
	s, err := r.Watch.Read(ctx)
	if err != nil {
		r.note("%s: %v", when, err)
		return
	}
	s.When = when
	r.cell.GPU = append(r.cell.GPU, s)
}

// The clock may move by so much of its highest between rounds before that is worth a note, and the GPU may have so much to
// do before the start.
const (
	clockDrift  = 0.03
	busyPercent = 5
)

// judgeSamples says what the figures of the GPU mean for those of the arms.
func (r *run) judgeSamples() {
	var clocks []float64
	var held []string
	for _, s := range r.cell.GPU {
		if s.When == "before" {
			if s.Utilisation > busyPercent {
				r.note("the GPU was busy before the start (%.0f %%): somebody else may use it", s.Utilisation)
			}
			continue
		}
		if s.When == "after" {
			continue
		}
		if s.SMClock > 0 {
			clocks = append(clocks, s.SMClock)
		}
		for _, reason := range s.HeldBack() {
			if !slices.Contains(held, reason) {
				held = append(held, reason)
			}
		}
	}
	if len(held) > 0 {
		r.note("the GPU's clocks were held back by: %s", strings.Join(held, ", "))
	}
	if len(clocks) > 1 {
		if low, high := slices.Min(clocks), slices.Max(clocks); high-low > clockDrift*high {
			r.note("the GPU's clock was between %.0f and %.0f MHz", low, high)
		}
	}
}
