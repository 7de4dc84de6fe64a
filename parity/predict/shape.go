package predict

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// mostShapes is how many shapes of images an arm is ready for. Most families have one; where a picture's size decides, one
// too many makes it forget all.
const mostShapes = 8

// shape is what an arm needs for steps on images of one shape.
type shape struct{ inputs, outputs bank }

// NotReadyError says that the arm could not be made ready for steps on images of the very first shape. None of the others
// would fare better.
type NotReadyError struct{ error }

func (e NotReadyError) Unwrap() error { return e.error }

// step runs one step of the arm, in its turn, from a bank of around's memory to another one. It says how long that took, copies
// left out, and whether a graph was replayed.
func (p *Predictor) step(ctx context.Context, given, made bank) (took time.Duration, graph bool, err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	at, err := p.ready(ctx, given, made)
	if err != nil {
		return 0, false, err
	}
	shape := p.order[at]
	shape.inputs.fill(given)
	began := time.Now()
	if err := p.arm.Step(ctx, at, at); err != nil {
		return 0, false, err
	}
	took = time.Since(began)
	made.fill(shape.outputs)
	return took, p.graph, nil
}

// ready makes the arm ready for a shape, if it is not, and gives the number of its banks.
func (p *Predictor) ready(ctx context.Context, given, made bank) (int, error) {
	if p.broken != nil {
		return 0, p.broken
	}
	key := keyOf(given.Bank)
	if s, known := p.shapes[key]; known {
		return slices.Index(p.order, s), nil
	}
	if len(p.order) == mostShapes {
		p.forget()
	}
	if err := p.add(ctx, key, given, made); err != nil {
		p.forget() // what the arm has of it, and of the others, is unknown
		if !p.wasReady.Load() {
			err = NotReadyError{err}
			p.broken = err
		}
		return 0, err
	}
	p.wasReady.Store(true)
	return len(p.order) - 1, nil
}

func (p *Predictor) add(ctx context.Context, key string, given, made bank) error {
	if err := p.record(ctx, given.Bank); err != nil {
		return err
	}
	var s shape
	var err error
	if s.inputs, err = p.memory.bank(ctx, specs(given.Bank)); err != nil {
		return err
	}
	if s.outputs, err = p.memory.bank(ctx, specs(made.Bank)); err != nil {
		p.memory.put(s.inputs.places...)
		return err
	}
	s.inputs.fill(given) // a graph is captured with real data
	p.shapes[key], p.order = &s, append(p.order, &s)
	request := arm.PrepareRequest{CUDAGraph: p.graph}
	for _, s := range p.order {
		request.Inputs, request.Outputs = append(request.Inputs, s.inputs.Bank), append(request.Outputs, s.outputs.Bank)
	}
	_, err = p.arm.Prepare(ctx, request)
	return err
}

// forget drops all shapes, their places and the weights. The next Load starts anew.
func (p *Predictor) forget() {
	for _, s := range p.order {
		p.memory.put(s.inputs.places...)
		p.memory.put(s.outputs.places...)
	}
	clear(p.shapes)
	p.order, p.recordings = nil, 0
	p.memory.put(p.weights...)
	p.weights = nil
}

// record has one step recorded, asks whether a graph of it may be replayed, and gives the recording with its weights to the
// native arm. A reference arm that asks nobody needs none.
func (p *Predictor) record(ctx context.Context, inputs arm.Bank) error {
	asks := p.graph && p.options.Certified != nil
	if p.isReference() && !asks {
		return nil
	}
	reply, err := p.around.Record(ctx, inputs)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	file, err := p.carry(ctx, arm.TheRecording, reply.RecordingLength)
	if err != nil {
		return err
	}
	defer p.memory.put(file) // it is decoded at once
	region, data := file.of(reply.RecordingLength)
	if asks {
		if err := p.certified(ctx, digest.Bytes(data)); err != nil {
			return err
		}
	}
	if p.isReference() {
		return nil
	}
	weights, err := p.carry(ctx, arm.TheWeights, reply.WeightsLength)
	if err != nil {
		return err
	}
	request := arm.LoadRequest{Recording: region, Device: p.Cell.Device, Arm: p.options.Arm}
	request.Weights, _ = p.keep(weights, reply.WeightsLength).of(reply.WeightsLength)
	if p.recordings > 0 {
		request.Options = []recording.Setting{{Key: "add", Value: "on"}}
	}
	if _, err := p.arm.Load(ctx, request); err != nil {
		return err
	}
	p.recordings++
	return nil
}

// certified refuses to replay what is not certified, or has all steps run eagerly from now on.
func (p *Predictor) certified(ctx context.Context, recording string) error {
	why := p.options.Certified(ctx, p.Cell, recording)
	problems, known := diag.Of(why)
	switch {
	case why == nil || !known || len(problems) == 0:
		return why
	case p.options.Demand:
		return problems
	}
	p.warn("steps run eagerly: %v", problems[0])
	p.graph = false
	return nil
}

// keep holds weights for as long as the arm may read them, once where two recordings have the same.
func (p *Predictor) keep(weights place, length int64) place {
	_, data := weights.of(length)
	for _, kept := range p.weights {
		if kept.region.Length == weights.region.Length && bytes.Equal(kept.data[:length], data) {
			p.memory.put(weights)
			return kept
		}
	}
	p.weights = append(p.weights, weights)
	return weights
}

// carry copies a file that around made into the arm's memory.
func (p *Predictor) carry(ctx context.Context, what arm.What, length int64) (place, error) {
	from, err := p.places.take(ctx, length)
	if err != nil {
		return place{}, err
	}
	defer p.places.put(from)
	region, data := from.of(length)
	if err := p.around.Export(ctx, arm.ExportRequest{What: what, Region: region}); err != nil {
		return place{}, fmt.Errorf("export the %v: %w", what, err)
	}
	to, err := p.memory.take(ctx, length)
	if err != nil {
		return place{}, err
	}
	copy(to.data, data)
	return to, nil
}

func specs(b arm.Bank) []tensor.Spec {
	all := make([]tensor.Spec, len(b))
	for i, t := range b {
		all[i] = t.Spec
	}
	return all
}

func keyOf(b arm.Bank) string { return fmt.Sprint(specs(b)) }
