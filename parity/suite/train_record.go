package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/schedule"
)

// training is what a cell of mode train has beside its recording.
type training struct {
	recipe    schedule.Recipe
	classes   int64  // targets are below it
	decayed   []bool // by parameter group: whether its weights decay
	short     int64  // size of the short batch
	shortFile []byte // the recording of it
	tensors   int    // that an arm holds

	lines map[string]*line // what eager arms gave, by arm
}

// fewClasses is how many classes the targets have where the model does not say how many it has.
const fewClasses = 10

// countClasses takes the last parameter for the bias, or the weights, of the layer that tells classes apart.
func countClasses(outputs []tensor.Spec) int64 {
	for _, spec := range slices.Backward(outputs) {
		if strings.HasPrefix(spec.Name, "param.") && len(spec.Sizes) > 0 {
			return spec.Sizes[0]
		}
	}
	return fewClasses
}

// withHyper adds the hyperparameters to inputs that lack them.
func (tr *training) withHyper(inputs []tensor.Spec) []tensor.Spec {
	if slices.ContainsFunc(inputs, func(s tensor.Spec) bool { return strings.HasPrefix(s.Name, schedule.Prefix) }) {
		return inputs
	}
	return append(slices.Clone(inputs), schedule.Specs(len(tr.decayed))...)
}

// readGroups finds the parameter groups whose weights decay: those of weights alone that are more than a scale for each
// channel. Biases and the weights of normalisation are in groups of their own.
func readGroups(r *recording.Recording, outputs []tensor.Spec) ([]bool, error) {
	const key = "train.groups"
	at := slices.IndexFunc(r.Header.ProfileSettings, func(s recording.Setting) bool { return s.Key == key })
	if at < 0 {
		return nil, diag.New("WRONG_RECORDING", "header.profile_settings", "a training recording without %s", key)
	}
	var groups [][]string
	if err := json.Unmarshal([]byte(r.Header.ProfileSettings[at].Value), &groups); err != nil {
		return nil, diag.New("WRONG_RECORDING", "header.profile_settings."+key, "no lists of names: %v", err)
	}
	dimensions := map[string]int{}
	for _, spec := range outputs {
		if name, is := strings.CutPrefix(spec.Name, "param."); is {
			dimensions[name] = len(spec.Sizes)
		}
	}
	decayed := make([]bool, len(groups))
	for g, names := range groups {
		bias := slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, "weight") })
		wide := slices.ContainsFunc(names, func(name string) bool { return dimensions[name] > 1 })
		decayed[g] = wide && !bias
	}
	return decayed, nil
}

// apprentice is the reference process that makes the recordings of a training run.
type apprentice struct {
	trainee
	got     Recorded
	outputs []tensor.Spec
}

// startApprentice builds the cell's model for training.
func startApprentice(ctx context.Context, a Arm, cell Cell) (*apprentice, *training, error) {
	if err := cell.Training.Check(); err != nil {
		return nil, nil, err
	}
	if cell.Batch < 2 {
		return nil, nil, diag.New("BAD_BATCH", "batch", "training needs a batch of two or more: there must be a shorter one")
	}
	built, err := a.Build(ctx, cell.buildRequest(arm.ReferenceEager))
	if err != nil {
		return nil, nil, fmt.Errorf("build %v: %w", cell, err)
	}
	cell.Size, cell.Task, cell.ImgSize = built.Size, built.Task, built.ImgSize
	tr := &training{recipe: cell.Training, classes: countClasses(built.Outputs), short: shortBatch(cell.Batch), lines: map[string]*line{}}
	for _, spec := range built.Inputs { // replaced by what the recording says
		if spec.Name == schedule.Prefix+"lr" {
			tr.decayed = make([]bool, spec.Numel())
		}
	}
	p := &apprentice{outputs: built.Outputs}
	p.arm, p.name = a, recorderName
	p.got = Recorded{Cell: cell, Inputs: built.Inputs}
	p.got.Built, err = export(ctx, a, arm.TheWeights, built.WeightsLength)
	return p, tr, err
}

// record records one step on the inputs of a move, and gives the file.
func (p *apprentice) record(ctx context.Context, tr *training, m move) (*recording.Recording, []byte, arm.RecordReply, error) {
	specs := slices.Clone(p.got.Inputs)
	if m.short {
		for i, spec := range specs {
			if !strings.HasPrefix(spec.Name, schedule.Prefix) {
				specs[i].Sizes = append([]int64{tr.short}, spec.Sizes[1:]...)
			}
		}
	}
	bank, data, err := p.arm.AllocBank(ctx, specs)
	if err != nil {
		return nil, nil, arm.RecordReply{}, err
	}
	if err := tr.fill(m, specs, p.got.Cell.Seed, data); err != nil {
		return nil, nil, arm.RecordReply{}, err
	}
	reply, err := p.arm.Record(ctx, bank)
	if err != nil {
		return nil, nil, reply, fmt.Errorf("record batch %d: %w", m.batch, err)
	}
	file, err := export(ctx, p.arm, arm.TheRecording, reply.RecordingLength)
	if err != nil {
		return nil, nil, reply, err
	}
	rec, err := recording.Decode(file)
	if err != nil {
		return nil, nil, reply, fmt.Errorf("the recording of batch %d: %w", m.batch, err)
	}
	return rec, file, reply, nil
}

// first makes the recording that native arms will run.
func (p *apprentice) first(ctx context.Context, tr *training) error {
	rec, file, reply, err := p.record(ctx, tr, move{batch: 1, hyper: tr.recipe.At(1, tr.decayed)})
	if err != nil {
		return err
	}
	p.got.Recording, p.got.File, p.got.Outputs = rec, file, reply.Outputs
	if tr.decayed, err = readGroups(rec, p.outputs); err != nil {
		return err
	}
	p.got.Weights, err = export(ctx, p.arm, arm.TheWeights, reply.WeightsLength)
	if err != nil {
		return err
	}
	changed, err := tensorsChanged(p.got.Built, p.got.Weights)
	if err == nil && len(changed) > 0 {
		err = diag.New("RECORDING_MOVES_STATE", "weights/"+changed[0], "recording a step changed %d weights or buffers", len(changed))
	}
	return err
}

// tensorsChanged lists what both files have, and not with the same bits.
func tensorsChanged(before, after []byte) ([]string, error) {
	a, err := safetensors.Decode(before)
	if err != nil {
		return nil, err
	}
	b, err := safetensors.Decode(after)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, t := range a.Tensors {
		if other, both := b.Get(t.Name); both && digest.Bytes(other.Data) != digest.Bytes(t.Data) {
			changed = append(changed, t.Name)
		}
	}
	return changed, nil
}

// again records three more times, the batch of the first step once and another one twice, and judges SAME-RECORDING.
func (p *apprentice) again(ctx context.Context, tr *training) (gate.Finding, error) {
	var others []gate.Recorded
	for i, batch := range []int{1, 2, 2} {
		rec, _, _, err := p.record(ctx, tr, move{batch: batch, hyper: tr.recipe.At(i+2, tr.decayed)})
		if err != nil {
			return gate.Finding{}, err
		}
		others = append(others, gate.Recorded{
			What:    fmt.Sprintf("batch %d, step %d", batch, i+2),
			Changes: recording.Equal(p.got.Recording, rec),
			ByInput: i == 1,
		})
	}
	return gate.JudgeSameRecording(len(p.got.Recording.Operations), others), nil
}

// recordTraining makes the recordings, and if it is asked to, judges SAME-RECORDING.
func (v *verification) recordTraining(ctx context.Context, again bool) error {
	v.progress("recording")
	a, err := v.startIn(ctx, v.enterToRecord, recorderName, v.suite.Start.Reference)
	if err != nil {
		return err
	}
	defer v.room.recorderLeft()
	defer a.Stop()
	p, tr, err := startApprentice(ctx, a, v.cell)
	if err != nil {
		return err
	}
	v.cell = p.got.Cell
	v.fillIn()
	if err := v.enter(ctx, a); err != nil {
		return err
	}
	if err := v.describe(ctx, a, reference); err != nil {
		return err
	}
	if err := p.first(ctx, tr); err != nil {
		return err
	}
	v.recorded, v.training = p.got, *tr
	v.training.tensors = len(p.outputs)
	if err := v.recorded.check(); err != nil {
		return err
	}
	v.result.Training = &result.Training{Recipe: tr.recipe, Classes: tr.classes, ShortBatch: tr.short}
	v.noteRecording()
	v.result.Digests.Weights = digest.Bytes(v.recorded.Weights)
	if v.result.Digests.Inputs, err = v.batchDigests(); err != nil {
		return err
	}
	if _, v.training.shortFile, _, err = p.record(ctx, tr, move{batch: 1, short: true, hyper: tr.recipe.At(1, tr.decayed)}); err != nil {
		return err
	}
	if v.suite.Keep != "" {
		if err := v.recorded.Write(v.folder()); err != nil {
			return err
		}
	}
	if !again {
		return nil
	}
	finding, err := p.again(ctx, tr)
	if err != nil {
		return err
	}
	v.judge(gate.SameRecording, finding)
	return nil
}

// stepName is how inputs and outputs of a step are named in results.
func stepName(step int) string { return fmt.Sprintf("step %d", step) }

// batchDigests names the inputs of each step of the run.
func (v *verification) batchDigests() (map[string]map[string]string, error) {
	specs := v.training.withHyper(v.recorded.Inputs)
	data := make([][]byte, len(specs))
	for i, spec := range specs {
		data[i] = make([]byte, spec.Bytes())
	}
	digests := map[string]map[string]string{}
	for i, m := range v.training.mainEpisode().moves {
		if err := v.training.fill(m, specs, v.cell.Seed, data); err != nil {
			return nil, err
		}
		of := map[string]string{}
		for j, spec := range specs {
			of[spec.Name] = digest.Tensor(spec, data[j])
		}
		digests[stepName(i+1)] = of
	}
	return digests, nil
}

// recordStep builds a cell's model for training and records one step of it.
func recordStep(ctx context.Context, start Starter, cell Cell) (Recorded, error) {
	a, err := start.Reference(ctx)
	if err != nil {
		return Recorded{}, err
	}
	defer a.Stop()
	p, tr, err := startApprentice(ctx, a, cell)
	if err != nil {
		return Recorded{}, err
	}
	err = p.first(ctx, tr)
	return p.got, err
}
