// Package train runs training steps of a recording: forward, loss and backward as recorded, then the optimizer and the
// moving average of weights, all in one launch list. Hyperparameters lie in device memory and may change before every
// step without a new capture.
package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/engine"
	"samebits/native/plan"
)

// Options of a trainer.
type Options struct {
	Plan plan.Options // off switches
}

// Trainer holds the state of a training run on a device: parameters, buffers, momentum and averages, and a model for each
// shape of input. It is used by one goroutine at a time.
type Trainer struct {
	device  device.Device
	options Options
	state   *engine.State
	weights engine.Weights
	recipe  recipe
	shapes  []*Shape
	specs   []tensor.Spec // of the state
	steps   int64         // finished steps, for checkpoints
}

// Shape is the trainer at one shape of input.
type Shape struct {
	trainer   *Trainer
	recording *recording.Recording
	model     *engine.Model
	launcher  tables
	classes   int64  // of the loss; 0: it is none over classes
	settings  []byte // of the latest SetHyper, until Wait
}

// recipe is what a recording's header says about the optimizer.
type recipe struct {
	groups   [][]string // parameters, by name
	nesterov bool
	inPlace  bool // PyTorch used foreach, as it does on CUDA: Nesterov without weight decay changes gradients in place
	average  bool
}

const maxGroups = 16 // as many as the kernel's settings have room for

// Open loads a training recording with its weights. Momentum starts at nothing, averages at the weights.
func Open(dev device.Device, r *recording.Recording, weights engine.Weights, options Options) (*Trainer, error) {
	if r.Header.Mode != "train" {
		return nil, diag.New("WRONG_MODE", "header.mode", "the trainer runs recordings of mode train, this one is %q", r.Header.Mode)
	}
	recipe, err := readRecipe(r)
	if err != nil {
		return nil, err
	}
	t := &Trainer{device: dev, options: options, state: &engine.State{}, weights: weights, recipe: recipe}
	if err := t.layout(r); err != nil {
		return nil, err
	}
	if _, err := t.add(r, false); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := t.start(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func readRecipe(r *recording.Recording) (recipe, error) {
	var out recipe
	var problems diag.Problems
	settings := map[string]string{}
	for _, s := range r.Header.ProfileSettings {
		settings[s.Key] = s.Value
	}
	path := func(key string) string { return "header.profile_settings." + key }
	if got := settings["train.optimizer"]; got != "sgd" {
		problems.Add("UNSUPPORTED_OPTIMIZER", path("train.optimizer"), "the trainer has sgd, the recording wants %q", got)
	}
	if got := settings["train.dampening"]; got != "" && got != "0" && got != "0.0" {
		problems.Add("UNSUPPORTED_OPTIMIZER", path("train.dampening"), "dampening %s, the trainer has 0", got)
	}
	if err := json.Unmarshal([]byte(settings["train.groups"]), &out.groups); err != nil {
		problems.Add("BAD_RECORDING", path("train.groups"), "not a list of lists of parameter names: %v", err)
	}
	if len(out.groups) > maxGroups {
		problems.Add("UNSUPPORTED_OPTIMIZER", path("train.groups"), "%d parameter groups, the trainer has room for %d", len(out.groups), maxGroups)
	}
	out.nesterov = settings["train.nesterov"] == "true"
	out.inPlace = r.Header.DeviceType == "cuda"
	out.average = settings["train.ema"] == "true"
	return out, problems.Err()
}

// layout names all that outlives a step.
func (t *Trainer) layout(r *recording.Recording) error {
	var problems diag.Problems
	known := map[string]bool{}
	for i, s := range r.Storages {
		if s.Role != recording.Parameter && s.Role != recording.Buffer {
			continue
		}
		spec := tensor.Spec{Name: stateName(s), DType: s.DType, Sizes: sizesOf(r, i)}
		if s.Role == recording.Parameter {
			known[s.Name] = true
			if s.DType != tensor.Float32 {
				problems.Add("UNSUPPORTED_OPTIMIZER", fmt.Sprintf("storages[%d]", i), "parameter %s is %s, the trainer updates float32", s.Name, s.DType)
			}
		}
		t.specs = append(t.specs, spec)
	}
	for g, names := range t.recipe.groups {
		for n, name := range names {
			if !known[name] {
				problems.Add("BAD_RECORDING", fmt.Sprintf("header.profile_settings.train.groups[%d][%d]", g, n), "no parameter %q", name)
			}
		}
	}
	if err := problems.Err(); err != nil {
		return err
	}
	for _, s := range slices.Clone(t.specs) {
		if name, ok := strings.CutPrefix(s.Name, "param."); ok && hasGradient(r, name) {
			t.specs = append(t.specs, tensor.Spec{Name: "momentum." + name, DType: s.DType, Sizes: s.Sizes})
		}
	}
	if t.recipe.average {
		for _, s := range slices.Clone(t.specs) {
			_, name, _ := strings.Cut(s.Name, ".")
			if !strings.HasPrefix(s.Name, "momentum.") && s.DType == tensor.Float32 {
				t.specs = append(t.specs, tensor.Spec{Name: "ema." + name, DType: s.DType, Sizes: s.Sizes})
			}
		}
	}
	for _, s := range t.specs {
		if _, err := t.state.Layout.Add(s.Name, s.Bytes()); err != nil {
			return err
		}
	}
	_, err := t.state.Layout.Add(settingsName, settingsBytes)
	return err
}

func stateName(s recording.Storage) string {
	if s.Role == recording.Buffer {
		return "buffer." + s.Name
	}
	return "param." + s.Name
}

// sizesOf gives the sizes of the tensor that fills a storage, or its number of elements if there is no such tensor.
func sizesOf(r *recording.Recording, storage int) []int64 {
	s := r.Storages[storage]
	for i := range r.Values {
		v := &r.Values[i]
		if v.Storage == storage && v.DType == s.DType && v.Contiguous() && v.Numel()*v.DType.Size() == s.Bytes {
			return v.Sizes
		}
	}
	return []int64{s.Bytes / max(s.DType.Size(), 1)}
}

func hasGradient(r *recording.Recording, parameter string) bool {
	return slices.ContainsFunc(r.Outputs, func(n recording.Named) bool { return n.Name == "grad."+parameter })
}

// Add loads a further recording of the same run, at another shape of input. State stays as it is.
func (t *Trainer) Add(r *recording.Recording) (*Shape, error) {
	recipe, err := readRecipe(r)
	if err != nil {
		return nil, err
	}
	if !sameRecipe(recipe, t.recipe) {
		return nil, diag.New("OTHER_RUN", "header.profile_settings", "the recording was made with another optimizer or other parameter groups")
	}
	return t.add(r, true)
}

func sameRecipe(a, b recipe) bool {
	return a.nesterov == b.nesterov && a.average == b.average && slices.EqualFunc(a.groups, b.groups, slices.Equal[[]string])
}

func (t *Trainer) add(r *recording.Recording, keepState bool) (*Shape, error) {
	s := &Shape{trainer: t, recording: r, classes: classesOf(r)}
	options := t.options.Plan
	options.Tail = s.tail
	model, err := engine.Load(t.device, r, t.weights, engine.Options{Plan: options, State: t.state, KeepState: keepState,
		Placed: func(*engine.Model) error { return s.fill() }})
	if err != nil {
		return nil, err
	}
	s.model = model
	if err := s.fill(); err != nil {
		return nil, errors.Join(err, model.Close())
	}
	t.shapes = append(t.shapes, s)
	return s, nil
}

// start sets what no weights file holds.
func (t *Trainer) start() error {
	for _, s := range t.specs {
		name, ok := strings.CutPrefix(s.Name, "ema.")
		if !ok {
			continue
		}
		from := "param." + name
		if _, _, ok := t.state.Layout.Find(from); !ok {
			from = "buffer." + name
		}
		data := make([]byte, s.Bytes())
		if err := t.state.Read(from, data); err != nil {
			return err
		}
		if err := t.state.Write(s.Name, data); err != nil {
			return err
		}
	}
	return t.noMomentum()
}

// noMomentum sets momentum to -0: the first step then leaves the gradient itself there, as PyTorch does.
func (t *Trainer) noMomentum() error {
	for _, s := range t.specs {
		if !strings.HasPrefix(s.Name, "momentum.") {
			continue
		}
		if err := t.state.Write(s.Name, nothing(int(s.Bytes()))); err != nil {
			return err
		}
	}
	return nil
}

// nothing is n bytes of momentum before the first step.
func nothing(n int) []byte {
	data := make([]byte, n)
	for i := 3; i < n; i += 4 {
		data[i] = 0x80
	}
	return data
}

// Close frees everything.
func (t *Trainer) Close() error {
	var errs []error
	for _, s := range t.shapes {
		errs = append(errs, s.model.Close())
	}
	t.shapes = nil
	return errors.Join(append(errs, t.state.Close())...)
}
