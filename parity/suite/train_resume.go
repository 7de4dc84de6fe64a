package suite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"samebits/bridge/digest"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/gate"
)

// source is a checkpoint of the middle of a run, with the arm that wrote it.
type source struct {
	arm  string
	file []byte
}

// resume goes on from checkpoints in a fresh process of an arm, and judges RESUME. Where native has
// other bits, on the host or because NATIVE failed, the other side's checkpoint is only read and written out again.
func (v *verification) resume(ctx context.Context, l *line, sources ...source) error {
	name := l.main.Arm
	v.progress(name + " resumed")
	resumed, err := v.continued(ctx, l, sources)
	if err != nil {
		return err
	}
	f := gate.JudgeResume(l.main, v.training.half(), resumed)
	for _, r := range resumed {
		if r.History != nil && r.History.Parting(l.main) != nil {
			if err := v.explain(ctx, &f, l.main, r.History); err != nil {
				return err
			}
			break
		}
	}
	v.judgeArm(gate.Resume, name, f)
	return nil
}

func (v *verification) continued(ctx context.Context, l *line, sources []source) (all []gate.Resumed, err error) {
	t, err := v.openTrainee(ctx, l.main.Arm)
	if err != nil {
		return nil, err
	}
	defer t.arm.Stop()
	rest := v.training.mainEpisode().from(v.training.half() + 1)
	for _, s := range sources {
		r := gate.Resumed{From: s.arm}
		if s.arm == l.main.Arm || v.cell.OnGPU() && !v.failed(gate.Native) {
			if s.arm == l.main.Arm {
				if r.Changed, err = notTheState(s.file, l.main, v.training.half()); err != nil {
					return nil, err
				}
			}
			r.History, err = t.run(ctx, rest, s.file, nil, l.main)
		} else {
			r.Changed, err = t.roundTrip(ctx, rest, s.file)
		}
		if err != nil {
			return nil, fmt.Errorf("from the checkpoint of %s: %w", s.arm, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// notTheState lists what a checkpoint has otherwise than the arm had after the step, and what it lacks.
func notTheState(checkpoint []byte, h *gate.History, step int) ([]string, error) {
	file, err := safetensors.Decode(checkpoint)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, spec := range h.Tensors {
		if gate.Made(spec.Name) {
			continue
		}
		t, there := file.Get(spec.Name)
		if !there || int64(len(t.Data)) != spec.Bytes() || digest.Tensor(spec, t.Data) != h.Digest(step, spec.Name) {
			names = append(names, spec.Name)
		}
	}
	return names, nil
}

// roundTrip reads a checkpoint and writes it out again, and lists what came back otherwise.
func (t *trainee) roundTrip(ctx context.Context, e episode, file []byte) ([]string, error) {
	if err := t.begin(ctx, e, file); err != nil {
		return nil, err
	}
	back, err := t.checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	return tensorsChanged(file, back)
}

// tookLine notes that an arm trained, and what it held.
func (v *verification) tookLine(name string, l *line) error {
	v.result.Arms = append(v.result.Arms, name)
	d := &v.result.Digests
	if d.Outputs == nil {
		d.Outputs, d.Steps = map[string]map[string]map[string]string{}, map[string][]string{}
	}
	last := map[string]string{}
	for _, spec := range l.main.Tensors {
		last[spec.Name] = l.main.Digest(l.main.Last(), spec.Name)
	}
	d.Outputs[name] = map[string]map[string]string{stepName(l.main.Last()): last}
	for step := l.main.First; step <= l.main.Last(); step++ {
		list := l.main.List(step)
		d.Steps[name] = append(d.Steps[name], digest.Bytes(list))
		if err := v.keepFile(name, strings.ReplaceAll(stepName(step), " ", "-")+".txt", list); err != nil {
			return err
		}
	}
	return v.keepFile(name, fmt.Sprintf("step-%d.safetensors", v.training.half()), l.checkpoint)
}

// keepFile keeps a file of an arm.
func (v *verification) keepFile(name, file string, data []byte) error {
	if v.suite.Keep == "" {
		return nil
	}
	dir := filepath.Join(v.folder(), name)
	if err := makeFolder(dir); err != nil {
		return err
	}
	return write(filepath.Join(dir, file), data)
}
