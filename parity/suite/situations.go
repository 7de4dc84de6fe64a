package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/parity/gate"
)

// truth is what eager gives in the situations that change values.
type truth struct {
	run     gate.Run       // in none of them
	updated gate.Run       // after update; nil: there is nothing to update, or nobody knows
	drawn   []gate.Drawing // after seeds
	// Why nobody knows; empty: it is known.
	noUpdate, noSeeding string
}

// seeds are given one after the other, each for a number of steps on the first probe.
var seeds = []struct {
	seed  uint64
	steps int
}{{1, 2}, {2, 1}, {1, 1}}

// comeBack is how many steps an arm may take until it replays again: one eagerly, one that captures, one more.
const comeBack = 3

// truths puts an eager arm into the situations that change values, and back.
func (v *verification) truths(ctx context.Context, s *session, run gate.Run) (truth, error) {
	t := truth{run: run}
	if v.asks(gate.Moved) && v.recorded.trains() {
		updated, err := s.updated(ctx)
		if unknown(err) {
			t.noUpdate, err = fmt.Sprintf("%s knows no situation %q", s.name, arm.Updated), nil
		}
		if err != nil {
			return t, fmt.Errorf("%s: %s: %w", s.name, arm.Updated, err)
		}
		t.updated = updated
	}
	if !v.asks(gate.SeedObeyed) {
		return t, nil
	}
	var err error
	if t.drawn, err = s.draw(ctx, nil); unknown(err) {
		t.noSeeding, err = fmt.Sprintf("%s knows no situation %q", s.name, arm.Seeded), nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", s.name, arm.Seeded, err)
	}
	return t, err
}

// updated steps with changed weights, and puts the old ones back.
func (s *session) updated(ctx context.Context) (gate.Run, error) {
	if _, err := s.arm.Situate(ctx, arm.SituateRequest{Situation: arm.Updated}); err != nil {
		return nil, err
	}
	run, err := s.all(ctx)
	if err == nil {
		_, err = s.arm.Situate(ctx, arm.SituateRequest{Situation: arm.Restored})
	}
	return run, err
}

// trains reports whether the step reads weights that an update changes.
func (r *Recorded) trains() bool {
	return slices.ContainsFunc(r.Recording.Storages, func(s recording.Storage) bool { return s.Role == recording.Parameter && s.DType.Float() })
}

// unknown reports whether an arm does not have what it was asked for.
func unknown(err error) bool { return errors.Is(err, arm.ErrUnimplemented) }

// passing reports whether an error says something of a situation. Otherwise the process is gone or the machine is full, and
// nothing can be said.
func passing(ctx context.Context, err error) bool {
	var gone *host.Error
	return err != nil && ctx.Err() == nil && !errors.As(err, &gone) && !errors.Is(err, arm.ErrOutOfMemory)
}

// draw seeds the generator and steps. What eager drew, if it is given, saves copies of what is the same.
func (s *session) draw(ctx context.Context, eager []gate.Drawing) ([]gate.Drawing, error) {
	var all []gate.Drawing
	for _, of := range seeds {
		if _, err := s.arm.Situate(ctx, arm.SituateRequest{Situation: arm.Seeded, Seed: of.seed}); err != nil {
			return nil, err
		}
		for i := range of.steps {
			var like gate.Outputs
			if n := len(all); n < len(eager) {
				like = eager[n].Outputs
			}
			outputs, err := s.stepLike(ctx, s.probes[0], len(all)%outputBanks, like)
			if err != nil {
				return nil, err
			}
			stats, err := s.arm.Stats(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, gate.Drawing{Seed: of.seed, Number: i + 1, Probe: s.probes[0], Outputs: outputs, Generator: stats.Generator})
		}
	}
	return all, nil
}

// trial is a graph arm on its way through the situations.
type trial struct {
	v     *verification
	s     *session
	truth truth
	steps int
	fresh bool // the graph was captured after a release, and nothing was done with it
}

// situated puts a graph arm, after its replays, through the situations that are asked for, one after the other. What fails is
// followed by a release, so that it does not spoil the next. In the end there is a graph again, for who measures.
func (v *verification) situated(ctx context.Context, s *session, truth truth) (findings map[gate.ID]gate.Finding, gone bool, err error) {
	t := &trial{v: v, s: s, truth: truth}
	findings = map[gate.ID]gate.Finding{}
	lost := ""
	for _, id := range gate.Situations {
		if !v.asks(id) {
			continue
		}
		if lost != "" {
			findings[id] = gate.Skip(gate.NotReached, lost)
			continue
		}
		finding, err := t.judged(ctx, id)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %s: %w", s.name, id, err)
		}
		findings[id] = finding
		if finding.Outcome == gate.Failed && id != gate.Nodes {
			if lost, err = t.recover(ctx, id); err != nil {
				return nil, false, fmt.Errorf("%s: %s: %w", s.name, id, err)
			}
		}
	}
	return findings, lost != "", nil
}

// judged goes through the situations of one gate.
func (t *trial) judged(ctx context.Context, id gate.ID) (gate.Finding, error) {
	switch id {
	case gate.Nodes:
		stats, err := t.s.arm.Stats(ctx)
		return gate.JudgeNodes(t.s.prepared, stats, t.v.recorded.Recording, t.v.asked.OnGPU()), err
	case gate.OtherStream:
		return t.passed(ctx, arm.OtherStream, len(t.s.probes))
	case gate.OtherThread:
		return t.passed(ctx, arm.OtherThread, 2)
	case gate.Modes:
		return t.passed(ctx, arm.OtherMode, 2)
	case gate.OtherDevice:
		return t.passed(ctx, arm.OtherDevice, 2)
	case gate.Moved:
		return t.moved(ctx)
	case gate.SeedObeyed:
		return t.seeded(ctx)
	case gate.FailedCapture:
		return t.failing(ctx)
	case gate.MemoryKept:
		return t.holding(ctx)
	}
	return gate.Finding{}, fmt.Errorf("nobody knows how to judge %s", id)
}

// passed goes through one situation.
func (t *trial) passed(ctx context.Context, situation string, steps int) (gate.Finding, error) {
	p, err := t.through(ctx, situation, steps, t.truth.run)
	if err != nil {
		return gate.Finding{}, err
	}
	return gate.JudgeSituation(p)
}

// through puts the arm into a situation and takes steps, and further ones until it replays again.
func (t *trial) through(ctx context.Context, situation string, steps int, want gate.Run) (p gate.Passage, err error) {
	p.Situation = situation
	if p.Before, err = t.s.arm.Stats(ctx); passing(ctx, err) {
		p.Refused = err
		return p, nil
	} else if err != nil {
		return p, err
	}
	p.Entered, p.After = p.Before, p.Before
	reply, err := t.s.arm.Situate(ctx, arm.SituateRequest{Situation: situation})
	if unknown(err) {
		p.Unknown = true
		return p, nil
	}
	if passing(ctx, err) {
		p.Refused = err
		return p, nil
	}
	p.Facts = reply.Facts
	if err == nil {
		p.Entered, err = t.s.arm.Stats(ctx)
	}
	p.After = p.Entered
	for i := 0; err == nil && (i < steps || i < comeBack && situation != arm.FailsCapture && !p.Steps[i-1].Replayed); i++ {
		var taken gate.Taken
		before := p.After
		if taken, err = t.take(ctx, want); err == nil {
			p.After, err = t.s.arm.Stats(ctx)
		}
		if passing(ctx, err) {
			p.Refused, p.InStep = err, true
			return p, nil
		}
		taken.Replayed = p.After.Replays == before.Replays+1 && p.After.EagerSteps == before.EagerSteps
		p.Steps = append(p.Steps, taken)
	}
	return p, err
}

// take runs one step on the next probe.
func (t *trial) take(ctx context.Context, want gate.Run) (gate.Taken, error) {
	name := t.s.probes[t.steps%len(t.s.probes)]
	t.steps++
	got, err := t.s.stepLike(ctx, name, t.steps%outputBanks, want[name])
	return gate.Taken{Probe: name, Want: want[name], Got: got}, err
}

// moved gives the weights other addresses, then other values in place, and then the old ones.
func (t *trial) moved(ctx context.Context) (gate.Finding, error) {
	var passages []gate.Passage
	situations := []struct {
		name  string
		steps int
		want  gate.Run
	}{{arm.Moved, 2, t.truth.run}, {arm.Updated, 2, t.truth.updated}, {arm.Restored, 1, t.truth.run}}
	for _, of := range situations {
		if of.want == nil || of.name == arm.Restored && t.truth.updated == nil {
			continue
		}
		p, err := t.through(ctx, of.name, of.steps, of.want)
		if err != nil {
			return gate.Finding{}, err
		}
		switch {
		case of.name == arm.Updated:
			p.Old = t.truth.run
		case of.name == arm.Restored && p.Unknown: // after update there must be a way back
			p.Unknown, p.Refused = false, fmt.Errorf("it knows %s and not %s", arm.Updated, arm.Restored)
		}
		passages = append(passages, p)
		if p.Unknown || p.Refused != nil {
			break
		}
	}
	f, err := gate.JudgeMoved(t.truth.run, t.truth.updated, t.s.probes, passages...)
	if f.Outcome == gate.Passed && t.truth.noUpdate != "" {
		f.Outcome, f.Reason, f.Detail = gate.Skipped, gate.NotApplicable, t.truth.noUpdate
	}
	return f, err
}

// seeded gives the generator seeds, as eager got them.
func (t *trial) seeded(ctx context.Context) (gate.Finding, error) {
	if t.truth.noSeeding != "" {
		return gate.Skip(gate.NotApplicable, t.truth.noSeeding), nil
	}
	drawn, err := t.s.draw(ctx, t.truth.drawn)
	switch {
	case unknown(err):
		return gate.JudgeSituation(gate.Passage{Situation: arm.Seeded, Unknown: true})
	case passing(ctx, err):
		return gate.JudgeSituation(gate.Passage{Situation: arm.Seeded, Refused: err})
	case err != nil:
		return gate.Finding{}, err
	}
	return gate.JudgeSeed(t.truth.drawn, drawn)
}

// failing has a capture fail, and captures again.
func (t *trial) failing(ctx context.Context) (gate.Finding, error) {
	failed, err := t.through(ctx, arm.FailsCapture, 2, t.truth.run)
	if err != nil {
		return gate.Finding{}, err
	}
	back := gate.Passage{Situation: arm.Released}
	if !failed.Unknown {
		if back, err = t.through(ctx, arm.Released, 1, t.truth.run); err != nil {
			return gate.Finding{}, err
		}
	}
	f, err := gate.JudgeFailure(failed, back)
	t.fresh = f.Outcome == gate.Passed
	return f, err
}

// holding watches memory over replays, and over another capture.
func (t *trial) holding(ctx context.Context) (gate.Finding, error) {
	h := gate.Holding{Replays: gate.MoreReplays}
	if !t.v.asked.OnGPU() {
		h.Replays = gate.MinReplays // a step takes long there
	}
	var err error
	if t.fresh {
		h.Fresh, err = t.s.arm.Stats(ctx)
	} else {
		var p gate.Passage
		p, err = t.through(ctx, arm.Released, 1, t.truth.run)
		h.Fresh, h.Unknown, h.Refused = p.After, p.Unknown, p.Refused
	}
	if err != nil || h.Unknown || h.Refused != nil {
		return gate.JudgeMemory(h), err
	}
	for i := range h.Replays {
		if err = t.s.arm.Step(ctx, i%len(t.s.probes), i%outputBanks); err != nil { // nobody looks at what it gives
			break
		}
	}
	if err == nil {
		h.Replayed, err = t.s.arm.Stats(ctx)
	}
	if passing(ctx, err) {
		h.Refused = err
		return gate.JudgeMemory(h), nil
	}
	if err != nil {
		return gate.Finding{}, err
	}
	again, err := t.through(ctx, arm.Released, 1, t.truth.run)
	h.Again, h.Refused = again.After, again.Refused
	return gate.JudgeMemory(h), err
}

// recover brings an arm back to a fresh graph after a gate failed, and says why it cannot go on if that does not help.
func (t *trial) recover(ctx context.Context, id gate.ID) (lost string, err error) {
	p, err := t.through(ctx, arm.Released, 1, t.truth.run)
	if err != nil || p.Unknown {
		return "", err
	}
	finding, err := gate.JudgeSituation(p)
	if finding.Outcome == gate.Failed {
		lost = fmt.Sprintf("%s failed, and graphs that were released did not help", id)
	}
	return lost, err
}
