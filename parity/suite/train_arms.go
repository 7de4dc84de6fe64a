package suite

import (
	"context"
	"maps"

	"samebits/bridge/arm"
	"samebits/parity/gate"
)

func (v *verification) trainReferenceGraph(ctx context.Context) error {
	l, err := v.trainGraph(ctx, arm.ReferenceGraph, arm.ReferenceEager)
	if err != nil {
		return err
	}
	return v.resume(ctx, l, source{arm.ReferenceGraph, l.checkpoint})
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
