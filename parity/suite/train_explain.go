package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/compare"
	"samebits/parity/gate"
)

// explain says more of where a history parts from its base: it runs the base again up to that step, in a fresh process, and
// compares the tensors that were kept. Of a native arm that parts from the reference in the run itself, it looks for the
// first operation that differs.
func (v *verification) explain(ctx context.Context, f *gate.Finding, base, got *gate.History) error {
	figures, is := f.Figures.(gate.StateFigures)
	if !is || f.Outcome != gate.Failed || len(figures.Differences) == 0 {
		return nil
	}
	parting := got.Parting(base)
	if parting == nil || parting.Step != figures.Differences[0].Step {
		return nil
	}
	var names []string
	for _, kept := range parting.Tensors {
		names = append(names, kept.Name)
	}
	trace := f.Reason == gate.NativeDiffers && got.Arm == arm.NativeEager && got.Episode == gate.Main
	var again repeated
	err := guarded(func() (err error) { again, err = v.again(ctx, base, parting.Step, names, trace); return err })
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil: // the finding stays
		f.Detail += "; looking closer failed: " + err.Error()
		return nil
	}
	before := figures.Differences[0].String()
	for i := range figures.Differences {
		d := &figures.Differences[i]
		at := slices.IndexFunc(parting.Tensors, func(k gate.Kept) bool { return k.Name == d.Tensor })
		want, there := again.tensors[d.Tensor]
		if at < 0 || !there || want.Digest != d.Want {
			continue // it did not come again: then there is nothing to compare with
		}
		bits, err := compare.Bits(want.DType, want.Data, parting.Tensors[at].Data)
		if err != nil {
			return err
		}
		d.Bits = &bits
		if d.Histogram, _, err = compare.Histogram(want.DType, want.Data, parting.Tensors[at].Data); err != nil {
			return err
		}
	}
	f.Detail = strings.Replace(f.Detail, before, figures.Differences[0].String(), 1)
	if trace {
		f.Reproduce = fmt.Sprintf("parity trace %s --step %d", v.flags(), parting.Step)
		switch {
		case again.culprit != nil:
			figures.First = again.culprit
			f.Detail += "; first at " + again.culprit.String()
		case slices.ContainsFunc(names, gate.Made):
			f.Detail += "; traced one by one, all operations agree: look at fusions and at how outputs are copied"
		default:
			f.Detail += "; loss and gradients agree: look at the optimizer, the average and the buffers"
		}
	}
	f.Figures = figures
	return nil
}

// repeated is what a base gave when it was run again.
type repeated struct {
	tensors map[string]gate.Output // after the step
	culprit *Culprit
}

// again runs a base up to a step in a fresh process.
func (v *verification) again(ctx context.Context, base *gate.History, step int, names []string, trace bool) (repeated, error) {
	r := repeated{tensors: map[string]gate.Output{}}
	t, err := v.openTrainee(ctx, base.Arm, names...)
	if err != nil {
		return r, err
	}
	defer t.arm.Stop()
	var before []byte
	_, err = t.run(ctx, v.episode(base.Episode).until(step), nil, func(done int, data [][]byte) (err error) {
		if trace && done == step-1 {
			before, err = t.checkpoint(ctx)
		}
		if done == step {
			for i, spec := range t.outputs {
				r.tensors[spec.Name] = gate.NewOutput(spec, slices.Clone(data[i]))
			}
		}
		return err
	})
	if err != nil || !trace {
		return r, err
	}
	r.culprit, err = v.traceTraining(ctx, t, step, before)
	return r, err
}

func (v *verification) episode(name string) episode {
	switch name {
	case gate.Changing:
		return v.training.changingEpisode("")
	case gate.Partial:
		return v.training.partialEpisode()
	}
	return v.training.mainEpisode()
}

// traceTraining traces a step of the run on both sides, from the reference's state before it.
func (v *verification) traceTraining(ctx context.Context, eager *trainee, step int, before []byte) (*Culprit, error) {
	engine, err := v.openTrainee(ctx, arm.NativeEager)
	if err != nil {
		return nil, err
	}
	defer engine.arm.Stop()
	e := v.training.mainEpisode().from(step)
	for _, t := range []*trainee{eager, engine} {
		if err := t.begin(ctx, e, before); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	weights, err := safetensors.Decode(v.recorded.Weights)
	if err != nil {
		return nil, err
	}
	state := &safetensors.File{}
	if len(before) > 0 {
		if state, err = safetensors.Decode(before); err != nil {
			return nil, err
		}
	}
	return v.compareTraces(ctx, [2]*session{&eager.session, &engine.session}, 0, stepName(step), func(s recording.Storage) string {
		for _, kind := range []string{"param.", "buffer."} {
			if d := digestIn(state, kind+s.Name); d != "" {
				return d
			}
		}
		return digestIn(weights, s.Name)
	})
}

// TraceStep records a cell of mode train and compares the operations of one step of its run one by one. It gives nil if
// all agree.
func (s *Suite) TraceStep(ctx context.Context, cell Cell, step int) (*Culprit, error) {
	v := s.begin(cell)
	if step < 1 || step > cell.Training.Steps {
		return nil, diag.New("UNKNOWN_STEP", "", "no step %d; there are 1 to %d", step, cell.Training.Steps)
	}
	if err := v.recordTraining(ctx, false); err != nil {
		return nil, err
	}
	v.progress("tracing")
	r, err := v.again(ctx, &gate.History{Arm: arm.ReferenceEager, Episode: gate.Main}, step, []string{"loss"}, true)
	return r.culprit, err
}
