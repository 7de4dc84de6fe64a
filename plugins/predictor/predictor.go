package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/replay"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/devices"
	"samebits/native/engine"
	"samebits/native/plan"
	"samebits/native/predict"
	"samebits/plugins/internal/nativearm"
)

// predictor is the native engine as an arm: native-eager or native-graph.
type predictor struct {
	serve.Unimplemented

	device  device.Device
	model   *predict.Predictor
	asked   map[*predict.Shape]bool // captured by a Prepare of their own alone, and replayed whenever there is a graph
	inputs  []bank
	outputs []bank
	pins    nativearm.Pins
	around  nativearm.Around
	stats   arm.Stats
}

func (p *predictor) Describe(context.Context) (arm.Description, error) {
	d := arm.Description{Plugin: "predictor", Version: version(), Arms: []string{arm.NativeEager, arm.NativeGraph},
		Devices: devices.Usable()}
	if p.device != nil {
		for _, s := range p.device.Environment() {
			d.Environment = append(d.Environment, recording.Setting{Key: s.Key, Value: s.Value})
		}
	}
	return d, nil
}

// Load takes a recording with its weights, or, with the option add=on, one more beside those at hand: of another shape, or
// of other keys.
func (p *predictor) Load(_ context.Context, memory *serve.Memory, request arm.LoadRequest) (arm.LoadReply, error) {
	if request.Arm != arm.NativeEager && request.Arm != arm.NativeGraph {
		return arm.LoadReply{}, diag.New("UNKNOWN_ARM", "arm", "the predictor is no %q; it is %s and %s",
			request.Arm, arm.NativeEager, arm.NativeGraph)
	}
	add := slices.Contains(request.Options, recording.Setting{Key: "add", Value: "on"})
	if add && p.model == nil {
		return arm.LoadReply{}, fmt.Errorf("a further recording before the first: %w", arm.ErrWrongOrder)
	}
	asked := slices.Contains(request.Options, recording.Setting{Key: "graph", Value: "asked"})
	options, err := nativearm.PlanOptions(slices.DeleteFunc(slices.Clone(request.Options),
		func(s recording.Setting) bool { return s.Key == "add" || asked && s.Key == "graph" }))
	if err != nil {
		return arm.LoadReply{}, err
	}
	opened := p.openAhead(request.Device)
	r, weights, err := nativearm.Decode(memory, request)
	failed := opened()
	if err != nil {
		return arm.LoadReply{}, err
	}
	if r.Header.Mode != "predict" {
		return arm.LoadReply{}, diag.New("WRONG_MODE", "header.mode", "the predictor runs recordings of mode predict, this one is %q", r.Header.Mode)
	}
	if add && p.device.Name() != request.Device {
		return arm.LoadReply{}, diag.New("WRONG_DEVICE", "device", "the first recording is on %s, not on %s", p.device.Name(), request.Device)
	}
	if failed != nil {
		return arm.LoadReply{}, failed
	}
	if !add {
		if err := p.open(request.Device); err != nil {
			return arm.LoadReply{}, err
		}
		p.drop()
		p.stats = arm.Stats{}
	}
	if err := p.add(r, weights, options); err != nil {
		return arm.LoadReply{}, nativearm.MemoryError(err)
	}
	p.inputs, p.outputs, p.model.Graphs.Mode = nil, nil, replay.Off
	shapes := p.model.Shapes()
	model := shapes[len(shapes)-1]
	if asked {
		p.asked[model] = true
	}
	return arm.LoadReply{
		Inputs: model.Inputs, Outputs: model.Outputs, RecordingDigest: r.Digest,
		ArenaBytes: model.Plan().ArenaBytes, PeakBytes: model.PeakBytes(), Launches: model.LaunchList(),
	}, nil
}

// add loads a recording beside those at hand, if there are any.
func (p *predictor) add(r *recording.Recording, weights engine.Weights, o plan.Options) (err error) {
	options := predict.Options{Plan: o, KeepWeights: true}
	if p.model != nil {
		_, err = p.model.Add(r, weights, options)
		return err
	}
	p.asked = map[*predict.Shape]bool{}
	p.model, err = predict.Open(p.device, r, weights, options)
	return err
}

// openAhead opens the first device beside other work, and gives what waits for it. A device that is at hand stays as it is.
func (p *predictor) openAhead(name string) (wait func() error) {
	if p.device != nil {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- p.open(name) }()
	return func() error { return <-done }
}

// open opens the device, or keeps it if it is the one at hand.
func (p *predictor) open(name string) error {
	if p.device != nil && p.device.Name() == name {
		return nil
	}
	p.drop()
	if p.device != nil {
		if err := p.release(); err != nil {
			return err
		}
	}
	d, err := devices.Open(name)
	if err != nil {
		return err
	}
	p.device = d
	return nil
}

// release gives the device back, which is done even if memory cannot be unpinned: a lost device refuses that.
func (p *predictor) release() error {
	unpinned := p.pins.Release()
	if err := p.device.Close(); err != nil {
		return errors.Join(err, unpinned)
	}
	p.device = nil
	return nil
}

func (p *predictor) drop() {
	if p.model != nil {
		_ = p.model.Close() // the memory of a lost device is gone anyway
	}
	p.model, p.inputs, p.outputs, p.around = nil, nil, nil, nativearm.Around{}
}

func (p *predictor) Prepare(_ context.Context, memory *serve.Memory, request arm.PrepareRequest) (arm.PrepareReply, error) {
	if p.model == nil {
		return arm.PrepareReply{}, fmt.Errorf("prepare before load: %w", arm.ErrWrongOrder)
	}
	inputs, err := p.resolve(memory, "inputs", request.Inputs, func(l *predict.Shape) []tensor.Spec { return l.Inputs })
	if err != nil {
		return arm.PrepareReply{}, err
	}
	outputs, err := p.resolve(memory, "outputs", request.Outputs, func(l *predict.Shape) []tensor.Spec { return l.Outputs })
	if err != nil {
		return arm.PrepareReply{}, err
	}
	p.inputs, p.outputs = inputs, outputs
	p.pins.Add(p.device, memory)
	reply := arm.PrepareReply{PeakBytes: p.model.PeakBytes()}
	p.model.Graphs.Mode = replay.Off
	if request.CUDAGraph {
		if err := p.capture(); err != nil {
			return arm.PrepareReply{}, err
		}
		if len(p.asked) == 0 {
			p.model.Graphs.Mode = replay.On
		}
		reply.Captured, reply.Nodes = true, int64(p.model.Graphs.Info().Nodes)
	}
	p.stats.PeakBytes = max(p.stats.PeakBytes, p.device.Peak())
	return reply, nil
}

// launch runs one step the way that Prepare fixed, without waiting.
func (p *predictor) launch(l *predict.Shape) error {
	p.stats.Launches += int64(l.Launches())
	if p.asked[l] {
		return l.Graph.Launch()
	}
	return l.Graph.LaunchAs(p.model.Graphs.Mode)
}

func (p *predictor) Step(input, output int) error {
	l, err := p.choose(input)
	if err != nil {
		return err
	}
	end, err := p.around.Step(p.device)
	if err != nil {
		return err
	}
	defer end()
	waits := p.device.Waits()
	err = p.submit(l, input, output)
	p.stats.Synchronisations += p.device.Waits() - waits
	if waited := l.Wait(); err == nil { // in any case: the banks are the host's again
		err = waited
	}
	return err
}

// submit launches a step with its copies, to end with Wait.
func (p *predictor) submit(l *predict.Shape, input, output int) error {
	to := p.outputs[output]
	if !slices.Contains(to.fits, l) {
		return diag.New("WRONG_BANK", fmt.Sprintf("outputs[%d]", output), "it has the outputs of another recording than the inputs")
	}
	if err := write(l, p.inputs[input]); err != nil {
		return err
	}
	if p.around.Switches() { // one step more, which is in flight when the stream changes
		if err := p.repeat(l); err != nil {
			return err
		}
		if err := p.around.Switch(l.Model); err != nil {
			return err
		}
	}
	if err := p.launch(l); err != nil {
		return err
	}
	for i, data := range to.data {
		if err := l.Fetch(i, data); err != nil {
			return err
		}
	}
	return nil
}

// repeat runs a step that nobody counts.
func (p *predictor) repeat(l *predict.Shape) error {
	if (p.model.Graphs.Mode == replay.On || p.asked[l]) && l.Captured() {
		return l.Replay()
	}
	return l.Run()
}

// Disturb poisons what a step must write itself, and takes and frees memory of many sizes.
func (p *predictor) Disturb(_ context.Context, request arm.DisturbRequest) error {
	if p.model == nil {
		return fmt.Errorf("disturb before load: %w", arm.ErrWrongOrder)
	}
	for _, l := range p.model.Shapes() {
		if request.PoisonOutputs {
			if err := l.Poison(); err != nil {
				return err
			}
		}
	}
	if request.Churn {
		return nativearm.Churn(p.device)
	}
	return nil
}

// Situate does what may happen between steps.
func (p *predictor) Situate(_ context.Context, request arm.SituateRequest) (arm.SituateReply, error) {
	if p.model == nil {
		return arm.SituateReply{}, fmt.Errorf("situate before load: %w", arm.ErrWrongOrder)
	}
	reply, err := p.around.Situate(nativearm.Situated{
		Device: p.device, Graphs: &p.model.Graphs, Models: p.model.Models(), Capture: p.captureIfWanted, Move: p.model.Move, Scale: p.scale, Eager: p.eager,
	}, request.Situation)
	return reply, nativearm.MemoryError(err)
}

func (p *predictor) captureIfWanted() error {
	if p.model.Graphs.Mode == replay.Off && len(p.asked) == 0 {
		return nil
	}
	return p.capture()
}

func (p *predictor) scale(up bool) error {
	for _, l := range p.model.Shapes() {
		if err := l.Rescale(up); err != nil {
			return err
		}
	}
	return nil
}

// eager runs a step of each recording with the graph switched off.
func (p *predictor) eager() error {
	for _, l := range p.model.Shapes() {
		if err := p.fill(l); err != nil {
			return err
		}
		p.stats.Launches += int64(l.Launches())
		if err := l.Graph.LaunchAs(replay.Off); err != nil {
			return err
		}
		if err := l.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (p *predictor) Trace(_ context.Context, memory *serve.Memory, request arm.TraceRequest) (reply arm.TraceReply, err error) {
	if p.model == nil || request.InputBank < 0 || request.InputBank >= len(p.inputs) {
		return reply, fmt.Errorf("trace before load and prepare, or of no input bank: %w", arm.ErrWrongOrder)
	}
	l, err := p.choose(request.InputBank)
	if err != nil {
		return reply, err
	}
	model, err := engine.Load(p.device, l.Recording, l.Weight, engine.Options{Plan: plan.Options{KeepAll: true}})
	if err != nil {
		return reply, nativearm.MemoryError(err)
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	for i, data := range p.inputs[request.InputBank].data {
		if err := model.WriteInput(i, data); err != nil {
			return reply, err
		}
	}
	reply.Operations = make([]arm.OperationTrace, len(l.Recording.Operations))
	for i := range reply.Operations {
		results := recording.Values(l.Recording.Operations[i].Results, nil)
		reply.Operations[i] = arm.OperationTrace{Operation: i, Digests: make([]string, len(results))}
	}
	err = model.Trace(func(at engine.Result, spec tensor.Spec, data []byte) error {
		reply.Operations[at.Operation].Digests[at.Result] = digest.Tensor(spec, data)
		if w := request.Want; w != nil && w.Operation == at.Operation && w.Result == at.Result {
			reply.Wanted = spec
			return nativearm.CopyOut(memory, w.Region, data)
		}
		return nil
	})
	return reply, err
}

func (p *predictor) Measure(_ context.Context, request arm.MeasureRequest) (reply arm.MeasureReply, err error) {
	if p.model == nil || request.InputBank < 0 || request.InputBank >= len(p.inputs) {
		return reply, fmt.Errorf("measure before load and prepare, or of no input bank: %w", arm.ErrWrongOrder)
	}
	l, err := p.choose(request.InputBank)
	if err != nil {
		return reply, err
	}
	if err := write(l, p.inputs[request.InputBank]); err != nil {
		return reply, err
	}
	reply.Milliseconds = make([]float64, 0, max(request.Iterations, 0))
	for i := range request.Warmup + request.Iterations {
		start := time.Now()
		if err := p.launch(l); err != nil {
			return reply, err
		}
		if err := l.Wait(); err != nil {
			return reply, err
		}
		if i >= request.Warmup {
			reply.Milliseconds = append(reply.Milliseconds, float64(time.Since(start))/float64(time.Millisecond))
		}
	}
	return reply, nil
}

func (p *predictor) Stats(context.Context) (arm.Stats, error) {
	if p.model != nil {
		nativearm.Count(&p.stats, &p.model.Graphs, p.model.Models(), p.device)
	}
	return p.stats, nil
}

// Close implements serve.Closer.
func (p *predictor) Close() error {
	p.drop()
	if p.device == nil {
		return nil
	}
	return p.release()
}
