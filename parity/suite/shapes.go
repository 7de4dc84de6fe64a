package suite

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/gate"
)

// addition is the option of Load that keeps what was loaded before.
var addition = recording.Setting{Key: "add", Value: "on"}

// shapes lets graph arms serve other shapes or keys in turn with this cell's own, and judges SHAPE.
func (v *verification) shapes(ctx context.Context) error {
	served := []*verification{v}
	for _, other := range v.recorded.Others {
		w, err := v.beside(ctx, other)
		if err != nil {
			return err
		}
		served = append(served, w)
	}
	if !v.cell.OnGPU() {
		v.judgeArm(gate.Shape, arm.ReferenceGraph, gate.Skip(gate.NoGPU, "PyTorch captures graphs on a GPU only"))
	} else if err := v.serve(ctx, arm.ReferenceGraph, served); err != nil {
		return err
	}
	return v.serve(ctx, arm.NativeGraph, served)
}

// beside records another cell of the same weights, and runs it eagerly.
func (v *verification) beside(ctx context.Context, other arm.Other) (*verification, error) {
	cell := v.cell
	cell.Family = other.Family
	if other.ImgSize != 0 {
		cell.ImgSize = other.ImgSize
	}
	w := v.suite.begin(cell)
	w.environment = v.environment // of the same plugins
	w.room = v.room
	if err := w.recordQuietly(ctx); err != nil {
		return nil, fmt.Errorf("beside %v: %w", v.cell, err)
	}
	if !bytes.Equal(w.recorded.Built, v.recorded.Built) {
		return nil, diag.New("OTHER_WEIGHTS", "others", "%v has other weights than %v: graphs of the two do not belong together", w.cell, v.cell)
	}
	open := w.openNative
	name := arm.NativeEager
	if v.cell.OnGPU() {
		name, open = arm.ReferenceEager, func(ctx context.Context, name string, _ ...recording.Setting) (*session, error) {
			return w.openReference(ctx, name)
		}
	}
	s, err := open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.arm.Stop()
	run, err := s.all(ctx)
	w.runs[name] = run
	return w, err
}

// recordQuietly makes a recording for other arms, and nothing else.
func (v *verification) recordQuietly(ctx context.Context) error {
	a, err := v.start(ctx, recorderName, v.suite.Start.Reference)
	if err != nil {
		return err
	}
	defer a.Stop()
	r, err := startRecorder(ctx, a, v.cell, v.probes)
	if err != nil {
		return err
	}
	if err := r.first(ctx); err != nil {
		return err
	}
	v.cell, v.recorded = r.got.Cell, r.got
	close(v.ready)
	return v.recorded.check()
}

// expected is what each of the served must give: eager's bits, the reference's where it can be demanded.
func expected(served []*verification) []gate.Run {
	var all []gate.Run
	for _, w := range served {
		name := arm.ReferenceEager
		if !w.cell.OnGPU() {
			name = arm.NativeEager
		}
		all = append(all, w.runs[name])
	}
	return all
}

// serve opens a graph arm with all of them, and steps through them in turn.
func (v *verification) serve(ctx context.Context, name string, served []*verification) error {
	c := &counter{served: served, session: &session{name: name, probes: v.probes}}
	if err := c.open(ctx, v); err != nil {
		return err
	}
	defer c.session.arm.Stop()
	shown, err := c.turns(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	finding, err := gate.JudgeShape(shown, expected(served))
	if err != nil {
		return err
	}
	v.judgeArm(gate.Shape, name, finding)
	return nil
}

// counter is a graph arm that serves several cells. Its banks of inputs are those of the first cell's probes, then of the
// next one's; there is one bank of outputs for each cell.
type counter struct {
	*session
	served  []*verification
	results [][][]byte // by cell and output
}

func (c *counter) open(ctx context.Context, v *verification) (err error) {
	start := v.suite.Start.Reference
	if c.name == arm.NativeGraph {
		start = func(ctx context.Context) (Arm, error) { return v.suite.Start.Native(ctx, v.settings(reference)) }
	}
	if c.arm, err = v.start(ctx, c.name, start); err != nil {
		return err
	}
	_, err = opened(c.session, func() error {
		load := c.loadNative
		if c.name == arm.ReferenceGraph {
			load = c.build
		}
		if err := load(ctx); err != nil {
			return err
		}
		return c.prepare(ctx)
	})
	return err
}

func (c *counter) build(ctx context.Context) error {
	v := c.served[0]
	if _, err := c.arm.Build(ctx, v.asked.buildRequest(c.name)); err != nil {
		return err
	}
	weights, err := give(ctx, c.arm, v.recorded.Built)
	if err != nil {
		return err
	}
	_, err = c.arm.Load(ctx, arm.LoadRequest{Weights: weights, Device: v.cell.ReferenceDevice(), Arm: c.name})
	return err
}

func (c *counter) loadNative(ctx context.Context) error {
	for i, w := range c.served {
		file, err := give(ctx, c.arm, w.recorded.File)
		if err != nil {
			return err
		}
		weights, err := give(ctx, c.arm, w.recorded.Weights)
		if err != nil {
			return err
		}
		request := arm.LoadRequest{Recording: file, Weights: weights, Device: w.cell.Device, Arm: c.name}
		if i > 0 {
			request.Options = []recording.Setting{addition}
		}
		if _, err := c.arm.Load(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

func (c *counter) prepare(ctx context.Context) error {
	request := arm.PrepareRequest{CUDAGraph: true}
	for _, w := range c.served {
		c.keys = w.recorded.Recording
		if err := c.place(ctx, inputsOf(w.recorded.Recording), w.cell.Seed); err != nil {
			return err
		}
		bank, data, err := c.arm.AllocBank(ctx, w.recorded.Outputs)
		if err != nil {
			return err
		}
		request.Outputs, c.results = append(request.Outputs, bank), append(c.results, data)
	}
	request.Inputs = c.inputs
	var err error
	c.prepared, err = c.arm.Prepare(ctx, request)
	return err
}

// inputsOf are the inputs of a recording, its keys among them.
func inputsOf(r *recording.Recording) []tensor.Spec {
	var all []tensor.Spec
	for _, n := range r.Inputs {
		v := &r.Values[n.Value]
		all = append(all, tensor.Spec{Name: n.Name, DType: v.DType, Sizes: v.Sizes})
	}
	return all
}

// turns steps through all cells in turn, with each probe, and comes back to the first; then with a key of none of them.
func (c *counter) turns(ctx context.Context) (shown gate.Shapes, err error) {
	for _, w := range c.served {
		shown.Names = append(shown.Names, c.nameOf(w))
	}
	shown.Engage.Prepared = c.prepared
	if shown.Engage.Before, err = c.arm.Stats(ctx); err != nil {
		return shown, err
	}
	for i := range len(c.probes) + 1 {
		for of := range c.served {
			name := c.probes[i%len(c.probes)]
			got, err := c.turn(ctx, of, name)
			if err != nil {
				return shown, err
			}
			shown.Turns = append(shown.Turns, gate.Turn{Of: of, Probe: name, Got: got})
			shown.Engage.Steps++
		}
	}
	if shown.Engage.After, err = c.arm.Stats(ctx); err != nil {
		return shown, err
	}
	shown.Stranger, err = c.stranger(ctx)
	return shown, err
}

// nameOf is what tells a cell from the others.
func (c *counter) nameOf(w *verification) string {
	if w.cell.Family != c.served[len(c.served)-1].cell.Family || w.cell.Family != c.served[0].cell.Family {
		return w.cell.Family
	}
	return fmt.Sprint(w.cell.ImgSize)
}

func (c *counter) turn(ctx context.Context, of int, probe string) (gate.Outputs, error) {
	if err := c.arm.Disturb(ctx, arm.DisturbRequest{PoisonOutputs: true, Churn: true}); err != nil {
		return nil, fmt.Errorf("disturb: %w", err)
	}
	for _, data := range c.results[of] {
		poison(data)
	}
	if err := c.arm.Step(ctx, of*len(c.probes)+c.bankOf(probe), of); err != nil {
		return nil, fmt.Errorf("%s, probe %s: %w", c.nameOf(c.served[of]), probe, err)
	}
	outputs := make(gate.Outputs, len(c.results[of]))
	for i, spec := range c.served[of].recorded.Outputs {
		outputs[i] = gate.NewOutput(spec, slices.Clone(c.results[of][i]))
	}
	return outputs, nil
}

// stranger puts numbers into a key of the first cell's bank that none of the cells has, behind the arm's back, and steps.
func (c *counter) stranger(ctx context.Context) (gate.Stranger, error) {
	input, numbers, data := c.strangeKey()
	if input == "" {
		return gate.Stranger{}, nil
	}
	s := gate.Stranger{Key: input + " " + numbers, Probe: c.probes[0]}
	kept := slices.Clone(data)
	defer copy(data, kept)
	strange := recording.Recording{Header: recording.Header{ProfileSettings: []recording.Setting{{Key: "key." + input, Value: numbers}}}}
	if err := strange.PutKey(tensor.Spec{Name: input, DType: tensor.Int64, Sizes: []int64{int64(len(data) / 8)}}, data); err != nil {
		return s, err
	}
	before, err := c.arm.Stats(ctx)
	if err != nil {
		return s, err
	}
	got, err := c.turn(ctx, 0, s.Probe)
	if refusedKey(err) {
		s.Became = gate.WasRefused
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Outputs = got
	after, err := c.arm.Stats(ctx)
	if err == nil && after.Replays == before.Replays && after.EagerSteps == before.EagerSteps+1 {
		s.Became = gate.RanEagerly
	}
	return s, err
}

func refusedKey(err error) bool {
	problems, _ := diag.Of(err)
	return slices.ContainsFunc(problems, func(p diag.Problem) bool { return p.Reason == recording.OtherKey })
}

// strangeKey turns the numbers of a known key round, until they are those of no cell.
func (c *counter) strangeKey() (input, numbers string, data []byte) {
	for i, spec := range inputsOf(c.served[0].recorded.Recording) {
		if _, is := c.served[0].recorded.Recording.Key(spec.Name); !is {
			continue
		}
		var known []string
		for _, w := range c.served {
			text, _ := w.recorded.Recording.Key(spec.Name)
			known = append(known, text)
		}
		for _, text := range known {
			words := strings.Fields(text)
			slices.Reverse(words)
			turned := strings.Join(words, " ")
			if int64(len(words)) == spec.Numel() && !slices.Contains(known, turned) {
				return spec.Name, turned, c.given[0][i]
			}
		}
	}
	return "", "", nil
}
