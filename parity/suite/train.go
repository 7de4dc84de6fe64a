package suite

import (
	"context"
	"maps"

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

func (v *verification) trainReferenceGraph(ctx context.Context) error {
	l, err := v.trainGraph(ctx, arm.ReferenceGraph, arm.ReferenceEager)
	if err != nil {
		return err
	}
	return v.resume(ctx, l, source{arm.ReferenceGraph, l.checkpoint})
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
	t, err := v.openTrainee(ctx, arm.ReferenceEager)
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

// trainGraph runs a graph arm and judges the gates of graphs against the eager arm of its side.
func (v *verification) trainGraph(ctx context.Context, name, eager string) (*line, error) {
	l, err := v.replayTraining(ctx, name, eager)
	if err != nil {
		return nil, err
	}
	if err := v.judgeGraph(ctx, name, eager, l); err != nil {
		return nil, err
	}
	return l, v.tookLine(name, l)
}

func (v *verification) replayTraining(ctx context.Context, name, eager string) (*line, error) {
	v.progress(name)
	t, err := v.openTrainee(ctx, name)
	if err != nil {
		return nil, err
	}
	defer t.arm.Stop()
	bases := []*line{v.training.lines[eager]}
	if v.cell.OnGPU() && eager != arm.ReferenceEager {
		bases = append(bases, v.training.lines[arm.ReferenceEager])
	}
	l, err := t.episodes(ctx, bases...)
	if err != nil {
		return nil, err
	}
	return l, v.measureTraining(ctx, t)
}

// judgeGraph judges the gates of graphs.
func (v *verification) judgeGraph(ctx context.Context, name, eager string, l *line) error {
	base := v.training.lines[eager]
	findings := map[gate.ID]gate.Finding{
		gate.Engaged:      gate.JudgeEngaged(l.engaged),
		gate.Replay:       gate.JudgeReplayedSteps(base.main, l.main),
		gate.NotStale:     gate.JudgeStaleSteps(base.main, l.main),
		gate.State:        gate.JudgeState(base.main, l.main),
		gate.HyperObeyed:  gate.JudgeHyper(base.changing, l.changing, base.frozen, gate.JudgeEngaged(l.obeying)),
		gate.PartialBatch: gate.JudgePartial(base.partial, l.partial, shortStep, v.training.short),
	}
	episodes := map[gate.ID]*gate.History{gate.Replay: l.main, gate.State: l.main, gate.HyperObeyed: l.changing, gate.PartialBatch: l.partial}
	for _, id := range gate.Order(gate.Train) {
		f, judged := findings[id]
		if !judged {
			continue
		}
		if h := episodes[id]; h != nil {
			if err := v.explain(ctx, &f, base.history(h.Episode), h); err != nil {
				return err
			}
		}
		v.judgeArm(id, name, f)
	}
	return nil
}

// trainNative runs the native engine's arms, and resumes the eager reference from native's checkpoint.
func (v *verification) trainNative(ctx context.Context) error {
	var exact gate.Outputs
	if !v.cell.OnGPU() {
		var err error
		if exact, err = v.trainDouble(ctx); err != nil {
			return err
		}
	}
	if err := v.trainNativeEager(ctx, exact); err != nil {
		return err
	}
	l, err := v.trainGraph(ctx, arm.NativeGraph, arm.NativeEager)
	if err != nil {
		return err
	}
	if err := v.judgeNativeTraining(ctx, arm.NativeGraph, l, exact); err != nil {
		return err
	}
	eager := v.training.lines[arm.ReferenceEager]
	theirs, ours := source{arm.ReferenceEager, eager.checkpoint}, source{arm.NativeGraph, l.checkpoint}
	if err := v.resume(ctx, l, ours, theirs); err != nil {
		return err
	}
	return v.resume(ctx, eager, theirs, ours)
}

func (v *verification) trainNativeEager(ctx context.Context, exact gate.Outputs) error {
	l, err := v.practise(ctx)
	if err != nil {
		return err
	}
	v.training.lines[arm.NativeEager] = l
	if err := v.tookLine(arm.NativeEager, l); err != nil {
		return err
	}
	if err := v.judgeNativeTraining(ctx, arm.NativeEager, l, exact); err != nil {
		return err
	}
	err = v.resume(ctx, l, source{arm.NativeEager, l.checkpoint})
	l.checkpoint = nil // it is large
	return err
}

// practise runs the native engine eagerly. On a GPU the reference's runs with frozen hyperparameters are native's, too.
func (v *verification) practise(ctx context.Context) (*line, error) {
	v.progress(arm.NativeEager)
	t, err := v.openTrainee(ctx, arm.NativeEager)
	if err != nil {
		return nil, err
	}
	defer t.arm.Stop()
	base := v.training.lines[arm.ReferenceEager]
	var bases []*line
	if v.cell.OnGPU() {
		bases = append(bases, base)
	}
	l, err := t.episodes(ctx, bases...)
	if err != nil {
		return nil, err
	}
	if v.cell.OnGPU() {
		l.frozen = maps.Clone(base.frozen)
	} else if l.frozen, err = t.freeze(ctx); err != nil {
		return nil, err
	}
	return l, v.measureTraining(ctx, t)
}

// trainDouble runs the first step in double precision.
func (v *verification) trainDouble(ctx context.Context) (exact gate.Outputs, err error) {
	v.progress(arm.ReferenceFP64)
	t, err := v.openTrainee(ctx, arm.ReferenceFP64)
	if err != nil {
		return nil, err
	}
	defer t.arm.Stop()
	_, err = t.run(ctx, v.training.mainEpisode().until(1), nil, func(_ int, data [][]byte) error {
		exact = t.made(data)
		return nil
	})
	return exact, err
}

// judgeNativeTraining compares a native arm with the eager reference: for the same bits on a GPU, for the error of its first
// loss and gradients on the host.
func (v *verification) judgeNativeTraining(ctx context.Context, name string, l *line, exact gate.Outputs) error {
	base := v.training.lines[arm.ReferenceEager]
	if !v.cell.OnGPU() {
		f, err := v.judgeFirstStep(base.first, l.first, exact)
		if err != nil {
			return err
		}
		v.judgeArm(gate.Native, name, f)
		return nil
	}
	f := gate.JudgeNativeSteps(base.histories(), l.histories())
	if figures := f.Figures.(gate.StateFigures); len(figures.Differences) > 0 {
		episode := figures.Differences[0].Episode
		if err := v.explain(ctx, &f, base.history(episode), l.history(episode)); err != nil {
			return err
		}
	}
	v.judgeArm(gate.Native, name, f)
	return nil
}

func (v *verification) judgeFirstStep(reference, native, exact gate.Outputs) (gate.Finding, error) {
	step := stepName(1)
	return gate.JudgeRounding(gate.Run{step: exact.Sorted(reference)}, gate.Run{step: reference}, gate.Run{step: native.Sorted(reference)}, []string{step})
}
