package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/devices"
	"samebits/native/engine"
	"samebits/native/plan"
	"samebits/plugins/internal/nativearm"
)

// predictor is the native engine as an arm: native-eager or native-graph.
type predictor struct {
	serve.Unimplemented

	device    device.Device
	recording *recording.Recording
	weights   engine.Weights
	options   plan.Options
	model     *engine.Model
	graph     bool
	inputs    [][][]byte // bank, tensor
	outputs   [][][]byte
	pins      nativearm.Pins
	stats     arm.Stats
}

func (p *predictor) Describe(context.Context) (arm.Description, error) {
	d := arm.Description{Plugin: "predictor", Version: version(), Arms: []string{arm.NativeEager, arm.NativeGraph}}
	for _, found := range devices.List() {
		if found.Problem == "" {
			d.Devices = append(d.Devices, found.Name)
		}
	}
	if p.device != nil {
		for _, s := range p.device.Environment() {
			d.Environment = append(d.Environment, recording.Setting{Key: s.Key, Value: s.Value})
		}
	}
	return d, nil
}

func (p *predictor) Load(_ context.Context, memory *serve.Memory, request arm.LoadRequest) (arm.LoadReply, error) {
	if request.Arm != arm.NativeEager && request.Arm != arm.NativeGraph {
		return arm.LoadReply{}, diag.New("UNKNOWN_ARM", "arm", "the predictor is no %q; it is %s and %s",
			request.Arm, arm.NativeEager, arm.NativeGraph)
	}
	options, err := nativearm.PlanOptions(request.Options)
	if err != nil {
		return arm.LoadReply{}, err
	}
	r, weights, err := nativearm.Decode(memory, request)
	if err != nil {
		return arm.LoadReply{}, err
	}
	if r.Header.Mode != "predict" {
		return arm.LoadReply{}, diag.New("WRONG_MODE", "header.mode", "the predictor runs recordings of mode predict, this one is %q", r.Header.Mode)
	}
	if err := p.open(request.Device); err != nil {
		return arm.LoadReply{}, err
	}
	p.drop()
	model, err := engine.Load(p.device, r, weights, engine.Options{Plan: options})
	if err != nil {
		return arm.LoadReply{}, nativearm.MemoryError(err)
	}
	p.model, p.recording, p.weights, p.options = model, r, weights, options
	p.stats = arm.Stats{}
	return arm.LoadReply{
		Inputs: model.Inputs, Outputs: model.Outputs, RecordingDigest: r.Digest,
		ArenaBytes: model.Plan().ArenaBytes, PeakBytes: model.PeakBytes(),
	}, nil
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
		p.model = nil
	}
	p.inputs, p.outputs, p.graph = nil, nil, false
}

func (p *predictor) Prepare(_ context.Context, memory *serve.Memory, request arm.PrepareRequest) (arm.PrepareReply, error) {
	if p.model == nil {
		return arm.PrepareReply{}, fmt.Errorf("prepare before load: %w", arm.ErrWrongOrder)
	}
	inputs, err := nativearm.Resolve(memory, "inputs", request.Inputs, p.model.Inputs)
	if err != nil {
		return arm.PrepareReply{}, err
	}
	outputs, err := nativearm.Resolve(memory, "outputs", request.Outputs, p.model.Outputs)
	if err != nil {
		return arm.PrepareReply{}, err
	}
	p.inputs, p.outputs = inputs, outputs
	p.pins.Add(p.device, memory)
	reply := arm.PrepareReply{PeakBytes: p.model.PeakBytes()}
	if request.CUDAGraph {
		if len(inputs) > 0 {
			if err := p.write(0); err != nil { // warm up with real data
				return arm.PrepareReply{}, err
			}
			if err := p.model.Wait(); err != nil {
				return arm.PrepareReply{}, err
			}
		}
		if !p.graph {
			p.stats.Captures++
		}
		nodes, err := p.model.Capture()
		if err != nil {
			return arm.PrepareReply{}, nativearm.MemoryError(err)
		}
		reply.Captured, reply.Nodes = true, int64(nodes)
	}
	p.graph = request.CUDAGraph
	p.stats.PeakBytes = max(p.stats.PeakBytes, p.device.Peak())
	return reply, nil
}

// write hands a bank's inputs to the steps that follow. Their bytes must stay until Wait.
func (p *predictor) write(bank int) error {
	for i, data := range p.inputs[bank] {
		if err := p.model.Feed(i, data); err != nil {
			return err
		}
	}
	return nil
}

// launch runs one step the way that Prepare fixed, without waiting.
func (p *predictor) launch() error {
	p.stats.Launches += int64(p.model.Launches())
	if p.graph {
		p.stats.Replays++
		return p.model.Replay()
	}
	p.stats.EagerSteps++
	return p.model.Run()
}

func (p *predictor) Step(input, output int) error {
	waits := p.device.Waits()
	err := p.submit(input, output)
	p.stats.Synchronisations += p.device.Waits() - waits
	if waited := p.model.Wait(); err == nil { // in any case: the banks are the host's again
		err = waited
	}
	return err
}

// submit launches a step with its copies, to end with Wait.
func (p *predictor) submit(input, output int) error {
	if err := p.write(input); err != nil {
		return err
	}
	if err := p.launch(); err != nil {
		return err
	}
	for i, data := range p.outputs[output] {
		if err := p.model.Fetch(i, data); err != nil {
			return err
		}
	}
	return nil
}

// Disturb poisons what a step must write itself, and takes and frees memory of many sizes.
func (p *predictor) Disturb(_ context.Context, request arm.DisturbRequest) error {
	if p.model == nil {
		return fmt.Errorf("disturb before load: %w", arm.ErrWrongOrder)
	}
	if request.PoisonOutputs {
		if err := p.model.Poison(); err != nil {
			return err
		}
	}
	if request.Churn {
		return nativearm.Churn(p.device)
	}
	return nil
}

func (p *predictor) Trace(_ context.Context, memory *serve.Memory, request arm.TraceRequest) (reply arm.TraceReply, err error) {
	if p.model == nil || request.InputBank < 0 || request.InputBank >= len(p.inputs) {
		return reply, fmt.Errorf("trace before load and prepare, or of no input bank: %w", arm.ErrWrongOrder)
	}
	model, err := engine.Load(p.device, p.recording, p.weights, engine.Options{Plan: plan.Options{KeepAll: true}})
	if err != nil {
		return reply, nativearm.MemoryError(err)
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	for i, data := range p.inputs[request.InputBank] {
		if err := model.WriteInput(i, data); err != nil {
			return reply, err
		}
	}
	reply.Operations = make([]arm.OperationTrace, len(p.recording.Operations))
	for i := range reply.Operations {
		results := recording.Values(p.recording.Operations[i].Results, nil)
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
	if err := p.write(request.InputBank); err != nil {
		return reply, err
	}
	reply.Milliseconds = make([]float64, 0, max(request.Iterations, 0))
	for i := range request.Warmup + request.Iterations {
		start := time.Now()
		if err := p.launch(); err != nil {
			return reply, err
		}
		if err := p.model.Wait(); err != nil {
			return reply, err
		}
		if i >= request.Warmup {
			reply.Milliseconds = append(reply.Milliseconds, float64(time.Since(start))/float64(time.Millisecond))
		}
	}
	return reply, nil
}

func (p *predictor) Stats(context.Context) (arm.Stats, error) {
	if p.device != nil {
		p.stats.PeakBytes = max(p.stats.PeakBytes, p.device.Peak())
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
