package train

import (
	"fmt"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/engine"
	"samebits/native/plan"
)

// Shapes lists the recordings that were loaded, in their order.
func (t *Trainer) Shapes() []*Shape { return t.shapes }

// Steps is the number of finished steps, those before a restored checkpoint included.
func (t *Trainer) Steps() int64 { return t.steps }

// Groups is the number of parameter groups: Hyper has as many learning rates and weight decays.
func (t *Trainer) Groups() int { return len(t.recipe.groups) }

// State lists what outlives a step: param.X, buffer.X, momentum.X, ema.X.
func (t *Trainer) State() []tensor.Spec { return t.specs }

// ReadState copies one of State. All launched work must be done.
func (t *Trainer) ReadState(name string, data []byte) error { return t.state.Read(name, data) }

// Inputs and Outputs of the recording: images, targets; loss, grad.X.
func (s *Shape) Inputs() []tensor.Spec  { return s.model.Inputs }
func (s *Shape) Outputs() []tensor.Spec { return s.model.Outputs }

// Recording is what the shape runs.
func (s *Shape) Recording() *recording.Recording { return s.recording }

// Model is the recording's model.
func (s *Shape) Model() *engine.Model { return s.model }

// Feed copies an input for the steps that are launched after it; the data must stay as it is until Wait. Class numbers
// are checked: PyTorch's loss stops the GPU where one is out of range.
func (s *Shape) Feed(i int, data []byte) error {
	if spec := s.model.Inputs[i]; spec.Name == "targets" && spec.DType == tensor.Int64 {
		if err := s.checkTargets(spec, data); err != nil {
			return err
		}
	}
	return s.model.Feed(i, data)
}

// Fetch copies an output of the step that was launched last, by its index; the data must not be read until Wait.
func (s *Shape) Fetch(i int, data []byte) error { return s.model.Fetch(i, data) }

// FetchState copies one of the trainer's State as the step that was launched last leaves it, like Fetch.
func (s *Shape) FetchState(name string, data []byte) error { return s.model.FetchState(name, data) }

// Wait blocks until everything that was launched is done.
func (s *Shape) Wait() error { return s.model.Wait() }

// ignoreIndex is the class number that PyTorch's cross entropy leaves out.
const ignoreIndex = -100

func (s *Shape) checkTargets(spec tensor.Spec, data []byte) error {
	classes := s.classes
	if classes == 0 || int64(len(data)) != spec.Bytes() {
		return nil // the size is refused where the bytes are copied
	}
	var problems diag.Problems
	for i := range spec.Numel() {
		label := int64(0)
		for b := 7; b >= 0; b-- {
			label = label<<8 | int64(data[i*8+int64(b)])
		}
		if label != ignoreIndex && (label < 0 || label >= classes) {
			problems.Add("LABEL_OUT_OF_RANGE", fmt.Sprintf("targets[%d]", i), "class %d, the model has classes 0 to %d", label, classes-1)
		}
	}
	return problems.Err()
}

// classesOf is the number of classes of the recorded loss, or 0 if there is no loss over classes.
func classesOf(r *recording.Recording) int64 {
	for i := range r.Operations {
		op := &r.Operations[i]
		if !strings.HasPrefix(op.Name, "aten::nll_loss_forward") || len(op.Arguments) == 0 {
			continue
		}
		if sizes := r.Values[op.Arguments[0].Value].Sizes; len(sizes) > 0 {
			return sizes[len(sizes)-1]
		}
	}
	return 0
}

// SetHyper sets the hyperparameters of the steps that are launched after it. Nothing waits for it.
func (s *Shape) SetHyper(h Hyper) error {
	groups := s.trainer.Groups()
	var problems diag.Problems
	if len(h.LR) != groups {
		problems.Add("WRONG_HYPER", "hyper.lr", "%d learning rates for %d parameter groups", len(h.LR), groups)
	}
	if len(h.WeightDecay) != groups {
		problems.Add("WRONG_HYPER", "hyper.weight_decay", "%d weight decays for %d parameter groups", len(h.WeightDecay), groups)
	}
	if err := problems.Err(); err != nil {
		return err
	}
	s.settings = h.encode(s.trainer.recipe, s.settings[:0])
	return s.model.FeedState(settingsName, s.settings)
}

// Capture records the step into a graph, without moving any state.
func (s *Shape) Capture() (nodes int, err error) { return s.model.Capture() }

// Captured reports whether there is a graph that may be replayed.
func (s *Shape) Captured() bool { return s.model.Captured() }

// Release drops the captured graph.
func (s *Shape) Release() error { return s.model.Release() }

// Run launches one eager step, without waiting.
func (s *Shape) Run() error { return s.launched(s.model.Run()) }

// Replay launches the captured step, without waiting.
func (s *Shape) Replay() error { return s.launched(s.model.Replay()) }

func (s *Shape) launched(err error) error {
	if err == nil {
		s.trainer.steps++
	}
	return err
}

// Trace runs forward, loss and backward eagerly on a copy of the state and shows every result. It moves no state.
func (s *Shape) Trace(inputs [][]byte, see func(at engine.Result, spec tensor.Spec, data []byte) error) (err error) {
	copied := &engine.State{}
	model, err := engine.Load(s.trainer.device, s.recording, s.trainer.weights,
		engine.Options{Plan: plan.Options{KeepAll: true}, State: copied})
	if err != nil {
		return err
	}
	defer func() {
		if e := model.Close(); err == nil {
			err = e
		}
		if e := copied.Close(); err == nil {
			err = e
		}
	}()
	if err := copied.CopyFrom(s.trainer.state); err != nil {
		return err
	}
	for i, data := range inputs {
		if err := model.WriteInput(i, data); err != nil {
			return err
		}
	}
	return model.Trace(see)
}
