package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/replay"
	"samebits/bridge/serve"
	"samebits/bridge/tensor/safetensors"
	"samebits/native/device"
	"samebits/native/devices"
	"samebits/native/engine"
	"samebits/native/train"
	"samebits/plugins/internal/nativearm"
)

// trainer is the native engine as an arm in mode train.
type trainer struct {
	serve.Unimplemented

	device  device.Device
	pins    nativearm.Pins
	trainer *train.Trainer
	inputs  []inputBank
	outputs []outputBank
	graphs  replay.Graphs
	graph   map[*train.Shape]*replay.Graph
	around  nativearm.Around
	hyper   train.Hyper // of the latest step: its slices are used again
	stats   arm.Stats
}

func (t *trainer) Describe(context.Context) (arm.Description, error) {
	d := arm.Description{Plugin: "trainer", Version: version(), Arms: []string{arm.NativeEager, arm.NativeGraph},
		Devices: devices.Usable()}
	if t.device != nil {
		for _, s := range t.device.Environment() {
			d.Environment = append(d.Environment, recording.Setting{Key: s.Key, Value: s.Value})
		}
	}
	return d, nil
}

// Load takes a training recording with its weights, or, with the option add=on, a recording of another shape for the run
// at hand.
func (t *trainer) Load(_ context.Context, memory *serve.Memory, request arm.LoadRequest) (arm.LoadReply, error) {
	if request.Arm != arm.NativeEager && request.Arm != arm.NativeGraph {
		return arm.LoadReply{}, diag.New("UNKNOWN_ARM", "arm", "the trainer is no %q; it is %s and %s",
			request.Arm, arm.NativeEager, arm.NativeGraph)
	}
	add := slices.Contains(request.Options, recording.Setting{Key: "add", Value: "on"})
	if add && t.trainer == nil {
		return arm.LoadReply{}, fmt.Errorf("a further recording before the first: %w", arm.ErrWrongOrder)
	}
	options, err := nativearm.PlanOptions(slices.DeleteFunc(slices.Clone(request.Options),
		func(s recording.Setting) bool { return s.Key == "add" }))
	if err != nil {
		return arm.LoadReply{}, err
	}
	if options.KeepAll {
		return arm.LoadReply{}, diag.New("UNKNOWN_OPTION", "options", "keep=all is the predictor's; the trainer traces without it")
	}
	r, weights, err := nativearm.Decode(memory, request)
	if err != nil {
		return arm.LoadReply{}, err
	}
	t.inputs, t.outputs, t.graphs.Mode = nil, nil, replay.Off
	if !add {
		if err := t.reopen(request.Device); err != nil {
			return arm.LoadReply{}, err
		}
		if t.trainer, err = train.Open(t.device, r, weights, train.Options{Plan: options}); err != nil {
			return arm.LoadReply{}, nativearm.MemoryError(err)
		}
		t.stats, t.around, t.graphs = arm.Stats{}, nativearm.Around{}, replay.Graphs{Mode: replay.Off}
		t.graph = map[*train.Shape]*replay.Graph{}
	} else if _, err := t.trainer.Add(r); err != nil {
		return arm.LoadReply{}, nativearm.MemoryError(err)
	}
	shapes := t.trainer.Shapes()
	newest := shapes[len(shapes)-1]
	t.graph[newest] = t.graphs.Add(newest, replay.ShapeOf(newest.Inputs(), t.device.Name()))
	if err := t.restore(memory, request.Checkpoint); err != nil {
		return arm.LoadReply{}, err
	}
	return t.loaded(r)
}

func (t *trainer) loaded(r *recording.Recording) (arm.LoadReply, error) {
	shapes := t.trainer.Shapes()
	newest := shapes[len(shapes)-1]
	length, err := t.trainer.CheckpointBytes()
	if err != nil {
		return arm.LoadReply{}, err
	}
	return arm.LoadReply{
		Inputs:           append(slices.Clone(newest.Inputs()), hyperSpecs(t.trainer.Groups())...),
		Outputs:          append(slices.Clone(newest.Outputs()), t.trainer.State()...),
		RecordingDigest:  r.Digest,
		ArenaBytes:       newest.Model().Plan().ArenaBytes,
		PeakBytes:        newest.Model().PeakBytes(),
		CheckpointLength: length,
		Launches:         newest.Model().LaunchList(),
	}, nil
}

func (t *trainer) restore(memory *serve.Memory, region arm.Region) error {
	if region.Length == 0 {
		return nil
	}
	raw, err := memory.Bytes(region)
	if err != nil {
		return err
	}
	file, err := safetensors.Decode(raw)
	if err != nil {
		return err
	}
	return t.trainer.Restore(file)
}

// reopen drops the run at hand and opens a device, or keeps the one that is open.
func (t *trainer) reopen(name string) error {
	if err := t.drop(); err != nil {
		return err
	}
	if t.device != nil && t.device.Name() == name {
		return nil
	}
	if t.device != nil {
		if err := errors.Join(t.pins.Release(), t.device.Close()); err != nil {
			return err
		}
		t.device = nil
	}
	d, err := devices.Open(name)
	if err != nil {
		return err
	}
	t.device = d
	return nil
}

func (t *trainer) drop() error {
	if t.trainer == nil {
		return nil
	}
	err := t.trainer.Close()
	t.trainer = nil
	return err
}

// Export gives the checkpoint.
func (t *trainer) Export(_ context.Context, memory *serve.Memory, request arm.ExportRequest) error {
	if t.trainer == nil {
		return fmt.Errorf("export before load: %w", arm.ErrWrongOrder)
	}
	if request.What != arm.TheCheckpoint {
		return diag.New("NOT_MADE_HERE", "what", "the trainer gives its checkpoint, not the %s", request.What)
	}
	data, err := t.trainer.Checkpoint()
	if err != nil {
		return err
	}
	to, err := memory.Bytes(request.Region)
	if err != nil {
		return err
	}
	if len(to) != len(data) {
		return diag.New("REGION", "region", "%d bytes for a checkpoint of %d", len(to), len(data))
	}
	copy(to, data)
	return nil
}

// Disturb poisons what a step must write itself, and takes and frees memory of many sizes. State is left alone.
func (t *trainer) Disturb(_ context.Context, request arm.DisturbRequest) error {
	if t.trainer == nil {
		return fmt.Errorf("disturb before load: %w", arm.ErrWrongOrder)
	}
	if request.PoisonOutputs {
		for _, s := range t.trainer.Shapes() {
			if err := s.Model().Poison(); err != nil {
				return err
			}
		}
	}
	if request.Churn {
		return nativearm.Churn(t.device)
	}
	return nil
}

// Situate does what may happen between steps. State moves with what happens: after an update it is that of an update.
func (t *trainer) Situate(_ context.Context, request arm.SituateRequest) (arm.SituateReply, error) {
	if t.trainer == nil {
		return arm.SituateReply{}, fmt.Errorf("situate before load: %w", arm.ErrWrongOrder)
	}
	reply, err := t.around.Situate(nativearm.Situated{
		Device: t.device, Graphs: &t.graphs, Models: t.models(), Capture: t.captureIfWanted, Move: t.trainer.Move, Scale: t.trainer.Rescale,
	}, request.Situation)
	return reply, nativearm.MemoryError(err)
}

func (t *trainer) models() []*engine.Model {
	var out []*engine.Model
	for _, s := range t.trainer.Shapes() {
		out = append(out, s.Model())
	}
	return out
}

func (t *trainer) captureIfWanted() error {
	if t.graphs.Mode == replay.Off {
		return nil
	}
	return t.capture()
}

func (t *trainer) Stats(context.Context) (arm.Stats, error) {
	if t.trainer != nil {
		nativearm.Count(&t.stats, &t.graphs, t.models(), t.device)
	}
	return t.stats, nil
}

// Close implements serve.Closer.
func (t *trainer) Close() error {
	err := t.drop()
	if t.device != nil {
		err = errors.Join(err, t.pins.Release(), t.device.Close())
	}
	return err
}
