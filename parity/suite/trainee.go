package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/gate"
	"samebits/parity/probe"
	"samebits/parity/schedule"
)

// The inputs of a training recording.
const (
	imagesName  = "images"
	targetsName = "targets"
)

// trainee is an arm in training: its process, the files it was given, and its banks.
type trainee struct {
	session
	v      *verification
	native bool
	only   []string // names of the outputs that a bank shall have; none: all

	weights, recording, added arm.Region
	full, short               *inputBank
	banks                     []arm.Bank // of outputs

	prepare func() error // is called once the arm is prepared; may be nil

	checkpointLength int64
	saved            arm.Region
	savedData        []byte
}

// inputBank is a set of inputs at its places.
type inputBank struct {
	bank  arm.Bank
	specs []tensor.Spec
	data  [][]byte
}

// openTrainee starts a fresh process for an arm. only names the outputs of interest; none: all.
func (v *verification) openTrainee(ctx context.Context, name string, only ...string) (*trainee, error) {
	return v.openTraineeBy(ctx, name, v.suite.Start.Reference, only...)
}

func (v *verification) openTraineeBy(ctx context.Context, name string, start func(context.Context) (Arm, error), only ...string) (*trainee, error) {
	t := &trainee{v: v, native: strings.HasPrefix(name, native), only: only}
	t.name = name
	if t.native {
		start = func(ctx context.Context) (Arm, error) {
			return v.suite.Start.NativeTrainer(ctx, v.settings(reference))
		}
	}
	var err error
	if t.arm, err = v.start(ctx, name, start); err != nil {
		return nil, err
	}
	if err := t.give(ctx); err != nil {
		t.arm.Stop()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// give hands over the files, and has the reference build the model.
func (t *trainee) give(ctx context.Context) (err error) {
	file := t.v.recorded.Weights
	if !t.native {
		file = t.v.recorded.Built
		built, err := t.arm.Build(ctx, t.v.cell.buildRequest(t.name))
		if err != nil {
			return err
		}
		t.checkpointLength = built.CheckpointLength
		if err := t.place(ctx, built.Inputs, built.Outputs); err != nil {
			return err
		}
	} else if t.recording, err = give(ctx, t.arm, t.v.recorded.File); err != nil {
		return err
	}
	t.weights, err = give(ctx, t.arm, file)
	return err
}

// place gives inputs and outputs their places, once.
func (t *trainee) place(ctx context.Context, inputs, outputs []tensor.Spec) error {
	if t.full != nil {
		return nil
	}
	inputs = t.v.training.withHyper(inputs)
	short := slices.Clone(inputs)
	for i, spec := range short {
		if !strings.HasPrefix(spec.Name, schedule.Prefix) {
			short[i].Sizes = append([]int64{t.v.training.short}, spec.Sizes[1:]...)
		}
	}
	var err error
	if t.full, err = t.inputBank(ctx, inputs); err != nil {
		return err
	}
	if t.short, err = t.inputBank(ctx, short); err != nil {
		return err
	}
	for _, spec := range outputs {
		if len(t.only) == 0 || slices.Contains(t.only, spec.Name) {
			t.outputs = append(t.outputs, spec)
		}
	}
	for i := range t.data {
		bank, data, err := t.arm.AllocBank(ctx, t.outputs)
		if err != nil {
			return err
		}
		t.banks = append(t.banks, bank)
		t.data[i] = data
	}
	return nil
}

func (t *trainee) inputBank(ctx context.Context, specs []tensor.Spec) (*inputBank, error) {
	bank, data, err := t.arm.AllocBank(ctx, specs)
	return &inputBank{bank, specs, data}, err
}

// begin sets the state to that of the weights or of a checkpoint, and prepares the arm with the inputs of the first step.
func (t *trainee) begin(ctx context.Context, e episode, checkpoint []byte) error {
	if err := t.load(ctx, e.short, checkpoint); err != nil {
		return err
	}
	request := arm.PrepareRequest{Inputs: []arm.Bank{t.full.bank}, Outputs: t.banks,
		CUDAGraph: t.graph()}
	if e.short {
		request.Inputs = append(request.Inputs, t.short.bank)
	}
	if err := t.write(e.moves[0]); err != nil {
		return err
	}
	if e.short {
		if err := t.write(move{batch: e.moves[0].batch, hyper: e.moves[0].hyper, short: true}); err != nil {
			return err
		}
	}
	var err error
	if t.prepared, err = t.arm.Prepare(ctx, request); err != nil || t.prepare == nil {
		return err
	}
	return t.prepare()
}

func (t *trainee) load(ctx context.Context, short bool, checkpoint []byte) (err error) {
	request := arm.LoadRequest{Weights: t.weights, Recording: t.recording, Device: t.v.cell.Device, Arm: t.name}
	if !t.native {
		request.Device = t.v.cell.ReferenceDevice()
	}
	if len(checkpoint) > 0 {
		if request.Checkpoint, err = t.giveCheckpoint(ctx, checkpoint); err != nil {
			return err
		}
	}
	loaded, err := t.arm.Load(ctx, request)
	if err != nil || !t.native {
		return err
	}
	if err := t.v.sameRecording(t.name, loaded); err != nil {
		return err
	}
	t.checkpointLength, t.arena = loaded.CheckpointLength, loaded.ArenaBytes
	t.v.account.launch(loaded.Launches)
	if err := t.v.describe(ctx, t.arm, native); err != nil { // now that it has opened its device
		return err
	}
	if err := t.place(ctx, loaded.Inputs, loaded.Outputs); err != nil || !short {
		return err
	}
	if t.added.Length == 0 {
		if t.added, err = give(ctx, t.arm, t.v.training.shortFile); err != nil {
			return err
		}
	}
	request.Recording, request.Checkpoint = t.added, arm.Region{}
	request.Options = []recording.Setting{{Key: "add", Value: "on"}}
	_, err = t.arm.Load(ctx, request)
	return err
}

// giveCheckpoint uses one place for all checkpoints of a size.
func (t *trainee) giveCheckpoint(ctx context.Context, file []byte) (arm.Region, error) {
	if err := t.reserve(ctx, int64(len(file))); err != nil {
		return arm.Region{}, err
	}
	copy(t.savedData, file)
	return t.saved, nil
}

func (t *trainee) reserve(ctx context.Context, length int64) (err error) {
	if t.saved.Length != length {
		t.saved, t.savedData, err = t.arm.Alloc(ctx, length)
	}
	return err
}

// checkpoint copies the state out.
func (t *trainee) checkpoint(ctx context.Context) ([]byte, error) {
	if err := t.reserve(ctx, t.checkpointLength); err != nil {
		return nil, err
	}
	if err := t.arm.Export(ctx, arm.ExportRequest{What: arm.TheCheckpoint, Region: t.saved}); err != nil {
		return nil, fmt.Errorf("%s: export the %v: %w", t.name, arm.TheCheckpoint, err)
	}
	return slices.Clone(t.savedData), nil
}

// write puts the inputs of a step into its bank.
func (t *trainee) write(m move) error {
	b := t.full
	if m.short {
		b = t.short
	}
	return t.v.training.fill(m, b.specs, t.v.cell.Seed, b.data)
}

// fill writes the inputs of a step.
func (tr *training) fill(m move, specs []tensor.Spec, seed uint64, data [][]byte) error {
	for i, spec := range specs {
		if strings.HasPrefix(spec.Name, schedule.Prefix) {
			if err := m.hyper.Fill(spec, data[i]); err != nil {
				return err
			}
			continue
		}
		number := m.batch
		if spec.Name == targetsName && m.targets > 0 {
			number = m.targets
		}
		if err := probe.FillBatch(number, spec, seed, tr.classes, data[i]); err != nil {
			return err
		}
	}
	return nil
}

// after is told the number of each step that is done, and what it left.
type after func(step int, data [][]byte) error

// run starts an episode from the weights or from a checkpoint and follows all its steps. Where it parts from a base, tensors
// are kept.
func (t *trainee) run(ctx context.Context, e episode, checkpoint []byte, tell after, bases ...*gate.History) (*gate.History, error) {
	if err := t.begin(ctx, e, checkpoint); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", t.name, e.name, err)
	}
	h := gate.NewHistory(t.name, e.name, e.first, t.outputs, bases...)
	for i, m := range e.moves {
		bank := i % outputBanks
		if err := t.stepInto(ctx, m, bank); err != nil {
			return nil, fmt.Errorf("%s, %s step %d: %w", t.name, e.name, e.first+i, err)
		}
		h.Stepped(t.data[bank])
		if t.graph() && i > 0 {
			h.Held(t.data[(i+1)%outputBanks])
		}
		if tell != nil {
			if err := tell(e.first+i, t.data[bank]); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

func (t *trainee) graph() bool { return t.name == arm.NativeGraph || t.name == arm.ReferenceGraph }

// stepInto runs one step into a poisoned bank; of a graph arm in memory that was poisoned and churned, too.
func (t *trainee) stepInto(ctx context.Context, m move, bank int) error {
	if t.graph() {
		if err := t.arm.Disturb(ctx, arm.DisturbRequest{PoisonOutputs: true, Churn: true}); err != nil {
			return fmt.Errorf("disturb: %w", err)
		}
	}
	if err := t.write(m); err != nil {
		return err
	}
	for _, data := range t.data[bank] {
		poison(data)
	}
	input := 0
	if m.short {
		input = 1
	}
	return t.arm.Step(ctx, input, bank)
}

// made copies out what a step made anew: the loss and the gradients.
func (t *trainee) made(data [][]byte) gate.Outputs {
	var made gate.Outputs
	for i, spec := range t.outputs {
		if gate.Made(spec.Name) {
			made = append(made, gate.NewOutput(spec, slices.Clone(data[i])))
		}
	}
	return made
}
