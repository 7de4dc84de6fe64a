package suite

import (
	"context"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/schedule"
)

// line is what an arm gave in training: all that other arms of its side are held to.
type line struct {
	main, changing, partial *gate.History
	frozen                  gate.Frozen
	checkpoint              []byte       // of the main episode, in its middle
	first                   gate.Outputs // loss and gradients of its first step
	engaged, obeying        gate.Engagement
}

// histories lists those of all episodes.
func (l *line) histories() []*gate.History {
	return []*gate.History{l.main, l.changing, l.partial}
}

// history finds the one of an episode.
func (l *line) history(name string) *gate.History {
	for _, h := range l.histories() {
		if h.Episode == name {
			return h
		}
	}
	return nil
}

// train goes through the arms of a training run, each in a process of its own, and judges the gates.
func (v *verification) train(ctx context.Context) error {
	if err := v.recordTraining(ctx, true); err != nil || v.failed(gate.SameRecording) {
		return err
	}
	if err := v.room.await(ctx); err != nil {
		return err
	}
	if err := v.repeatTraining(ctx); err != nil || v.failed(gate.Reproduces) || v.failed(gate.InputSeen) {
		return err
	}
	if !v.cell.OnGPU() {
		for _, id := range []gate.ID{gate.Engaged, gate.Replay, gate.NotStale, gate.State, gate.HyperObeyed, gate.PartialBatch, gate.Resume} {
			v.judgeArm(id, arm.ReferenceGraph, gate.Skip(gate.NoGPU, "PyTorch captures graphs on a GPU only"))
		}
	} else if err := v.trainReferenceGraph(ctx); err != nil {
		return err
	}
	return v.trainNative(ctx)
}

// half is the step after which checkpoints are taken.
func (tr *training) half() int { return tr.recipe.Steps / 2 }

// episodes runs all episodes one after the other in one process. Tensors are kept where they part from those of bases.
func (t *trainee) episodes(ctx context.Context, bases ...*line) (*line, error) {
	tr := &t.v.training
	l := &line{}
	of := func(name string) []*gate.History {
		var histories []*gate.History
		for _, b := range bases {
			histories = append(histories, b.history(name))
		}
		return histories
	}
	var err error
	l.main, err = t.engage(ctx, &l.engaged, func() (*gate.History, error) {
		return t.run(ctx, tr.mainEpisode(), nil, func(step int, data [][]byte) (err error) {
			if step == 1 && !t.v.cell.OnGPU() {
				l.first = t.made(data)
			}
			if step == tr.half() {
				l.checkpoint, err = t.checkpoint(ctx)
			}
			return err
		}, of(gate.Main)...)
	})
	if err != nil {
		return nil, err
	}
	if t.graph() {
		t.v.account.weigh(&t.session, l.engaged.Before) // what disturbs it takes memory, too
	} else if err := t.v.weigh(ctx, &t.session); err != nil {
		return nil, err
	}
	l.changing, err = t.engage(ctx, &l.obeying, func() (*gate.History, error) {
		return t.run(ctx, tr.changingEpisode(""), nil, nil, of(gate.Changing)...)
	})
	if err != nil {
		return nil, err
	}
	l.partial, err = t.run(ctx, tr.partialEpisode(), nil, nil, of(gate.Partial)...)
	return l, err
}

// engage counts what a graph arm launches while it runs.
func (t *trainee) engage(ctx context.Context, e *gate.Engagement, run func() (*gate.History, error)) (*gate.History, error) {
	if !t.graph() {
		return run()
	}
	t.prepare = func() (err error) {
		e.Prepared = t.prepared
		e.Before, err = t.arm.Stats(ctx)
		return err
	}
	h, err := run()
	t.prepare = nil
	if err != nil {
		return nil, err
	}
	e.Steps = int64(len(h.Steps))
	e.After, err = t.arm.Stats(ctx)
	return h, err
}

// freeze runs the episode of changing hyperparameters with each of them frozen in turn, and with all.
func (t *trainee) freeze(ctx context.Context) (gate.Frozen, error) {
	frozen := gate.Frozen{}
	for _, name := range append(schedule.Names(), gate.AllFrozen) {
		var err error
		if frozen[name], err = t.run(ctx, t.v.training.changingEpisode(name), nil, nil); err != nil {
			return nil, err
		}
	}
	return frozen, nil
}

// repeatTraining runs the eager reference in two fresh processes, and judges REPRODUCES and INPUT-SEEN.
func (v *verification) repeatTraining(ctx context.Context) error {
	first, seen, err := v.teach(ctx)
	if err != nil {
		return err
	}
	second, again, err := v.teachAgain(ctx, first)
	if err != nil {
		return err
	}
	v.training.lines[arm.ReferenceEager] = first
	v.judge(gate.Reproduces, gate.JudgeReproducedSteps(first.histories(), second.histories(), again))
	if v.failed(gate.Reproduces) {
		return v.tookLine(arm.ReferenceEager, first)
	}
	base := seen[""]
	delete(seen, "")
	v.judge(gate.InputSeen, gate.JudgeBatchSeen(base, seen))
	v.judgeArm(gate.HyperObeyed, arm.ReferenceEager, gate.JudgeHyperSeen(first.changing, first.frozen))
	return v.tookLine(arm.ReferenceEager, first)
}

// teach is the first process of the eager reference. Beside the episodes it gives first steps with other inputs, by the
// input that changed.
func (v *verification) teach(ctx context.Context) (*line, map[string]*gate.History, error) {
	v.progress("reference-eager")
	t, err := v.openTrainee(ctx, arm.ReferenceEager)
	if err != nil {
		return nil, nil, err
	}
	defer t.arm.Stop()
	l, err := t.episodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	if l.frozen, err = t.freeze(ctx); err != nil {
		return nil, nil, err
	}
	seen := map[string]*gate.History{}
	for _, input := range []string{"", imagesName, targetsName} {
		if seen[input], err = t.run(ctx, v.training.seenEpisode(input), nil, nil); err != nil {
			return nil, nil, err
		}
	}
	return l, seen, nil
}

// teachAgain is the second process: the episodes, the first step once more, and the time that a step takes.
func (v *verification) teachAgain(ctx context.Context, first *line) (*line, *gate.History, error) {
	v.progress("reference-eager again")
	t, err := v.openTraineeBy(ctx, arm.ReferenceEager, v.fromScratch)
	if err != nil {
		return nil, nil, err
	}
	defer t.arm.Stop()
	l, err := t.episodes(ctx, first)
	if err != nil {
		return nil, nil, err
	}
	again, err := t.run(ctx, v.training.mainEpisode().until(1), nil, nil)
	if err != nil {
		return nil, nil, err
	}
	return l, again, v.measureTraining(ctx, t)
}

// measureTraining times steps of the run, at the end of the arm's process: they train.
func (v *verification) measureTraining(ctx context.Context, t *trainee) error {
	e := v.training.mainEpisode()
	if err := t.begin(ctx, e.from(e.first+v.training.recipe.WarmupSteps), nil); err != nil {
		return err
	}
	return v.measure(ctx, &t.session)
}
