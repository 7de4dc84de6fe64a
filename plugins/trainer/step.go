package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/replay"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
	"samebits/native/engine"
	"samebits/native/train"
	"samebits/plugins/internal/nativearm"
)

// inputBank is a shape's inputs and the hyperparameters, at their places in shared memory.
type inputBank struct {
	shape    *train.Shape
	tensors  [][]byte
	lr       []byte
	decay    []byte
	momentum []byte
	average  []byte
}

// outputBank lists what a step shall copy out: outputs of the recording and state, by name.
type outputBank []wanted

type wanted struct {
	name   string
	output int // index into the shape's outputs, or -1 for state
	data   []byte
}

// hyperSpecs are the inputs that follow a recording's own.
func hyperSpecs(groups int) []tensor.Spec {
	of := func(name string, n int) tensor.Spec {
		return tensor.Spec{Name: "hyper." + name, DType: tensor.Float64, Sizes: []int64{int64(n)}}
	}
	return []tensor.Spec{of("lr", groups), of("weight_decay", groups), of("momentum", 1), of("ema_decay", 1)}
}

func (t *trainer) Prepare(_ context.Context, memory *serve.Memory, request arm.PrepareRequest) (arm.PrepareReply, error) {
	if t.trainer == nil {
		return arm.PrepareReply{}, fmt.Errorf("prepare before load: %w", arm.ErrWrongOrder)
	}
	inputs := make([]inputBank, len(request.Inputs))
	for i, bank := range request.Inputs {
		var err error
		if inputs[i], err = t.inputBank(memory, i, bank); err != nil {
			return arm.PrepareReply{}, err
		}
	}
	outputs := make([]outputBank, len(request.Outputs))
	for i, bank := range request.Outputs {
		var err error
		if outputs[i], err = t.outputBank(memory, i, bank); err != nil {
			return arm.PrepareReply{}, err
		}
	}
	t.pins.Add(t.device, memory)
	t.inputs, t.outputs, t.graphs.Mode = inputs, outputs, replay.Off
	reply := arm.PrepareReply{}
	if request.CUDAGraph {
		if err := t.capture(); err != nil {
			return arm.PrepareReply{}, nativearm.MemoryError(err)
		}
		t.graphs.Mode = replay.On
		reply.Captured, reply.Nodes = true, int64(t.graphs.Info().Nodes)
	}
	reply.PeakBytes = t.device.Peak()
	return reply, nil
}

// capture captures the step at every shape that a bank has, warmed up with that bank's own data.
func (t *trainer) capture() error {
	for i, bank := range t.inputs {
		if bank.shape.Captured() || t.graphs.Count() >= replay.MaxGraphs {
			continue
		}
		if err := t.write(i); err != nil {
			return err
		}
		if err := t.graph[bank.shape].Capture(); err != nil {
			return err
		}
	}
	return nil
}

// inputBank finds the recording that takes a bank's inputs, by their sizes.
func (t *trainer) inputBank(memory *serve.Memory, index int, bank arm.Bank) (inputBank, error) {
	var last error
	for _, shape := range t.trainer.Shapes() {
		specs := append(slices.Clone(shape.Inputs()), hyperSpecs(t.trainer.Groups())...)
		found, err := nativearm.Resolve(memory, "inputs", []arm.Bank{bank}, specs)
		if err != nil {
			last = err
			continue
		}
		all, n := found[0], len(shape.Inputs())
		return inputBank{shape: shape, tensors: all[:n], lr: all[n], decay: all[n+1], momentum: all[n+2], average: all[n+3]}, nil
	}
	return inputBank{}, fmt.Errorf("inputs[%d]: %w", index, last)
}

func (t *trainer) outputBank(memory *serve.Memory, index int, bank arm.Bank) (outputBank, error) {
	outputs, state := t.trainer.Shapes()[0].Outputs(), t.trainer.State()
	named := func(name string) func(tensor.Spec) bool { return func(s tensor.Spec) bool { return s.Name == name } }
	var problems diag.Problems
	var out outputBank
	for _, placed := range bank {
		path := fmt.Sprintf("outputs[%d].%s", index, placed.Name)
		w := wanted{name: placed.Name, output: slices.IndexFunc(outputs, named(placed.Name))}
		var want tensor.Spec
		if w.output >= 0 {
			want = outputs[w.output]
		} else if i := slices.IndexFunc(state, named(placed.Name)); i >= 0 {
			want = state[i]
		} else {
			problems.Add("WRONG_BANK", path, "the trainer has no such output")
			continue
		}
		if placed.DType != want.DType || !slices.Equal(placed.Sizes, want.Sizes) {
			problems.Add("WRONG_TENSOR", path, "%s%v, the recording has %s%v", placed.DType, placed.Sizes, want.DType, want.Sizes)
			continue
		}
		var err error
		if w.data, err = memory.Tensor(placed); err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, problems.Err()
}

// write hands a bank's inputs and hyperparameters to its shape.
func (t *trainer) write(index int) error {
	bank := &t.inputs[index]
	for i, data := range bank.tensors {
		if err := bank.shape.Feed(i, data); err != nil {
			return err
		}
	}
	h := &t.hyper
	h.LR, h.WeightDecay = float64s(h.LR[:0], bank.lr), float64s(h.WeightDecay[:0], bank.decay)
	h.Momentum, h.EMADecay = float64At(bank.momentum), float64At(bank.average)
	return bank.shape.SetHyper(*h)
}

func float64s(out []float64, data []byte) []float64 {
	for ; len(data) >= 8; data = data[8:] {
		out = append(out, float64At(data))
	}
	return out
}

func float64At(data []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(data)) }

// launch runs one step the way that Prepare fixed, without waiting.
func (t *trainer) launch(shape *train.Shape) error {
	t.stats.Launches += int64(shape.Model().Launches())
	mode := t.graphs.Mode
	if t.around.Eager() {
		mode = replay.Off
	}
	return t.graph[shape].LaunchAs(mode)
}

func (t *trainer) Step(input, output int) error {
	end, err := t.around.Step(t.device)
	if err != nil {
		return err
	}
	defer end()
	waits := t.device.Waits()
	shape := t.inputs[input].shape
	err = t.submit(shape, input, output)
	t.stats.Synchronisations += t.device.Waits() - waits
	if waited := shape.Wait(); err == nil { // the only one of a step, in any case: the banks are the host's again
		err = waited
	}
	return err
}

// submit launches a step with its copies, to end with Wait.
func (t *trainer) submit(shape *train.Shape, input, output int) error {
	if err := t.write(input); err != nil {
		return err
	}
	if err := t.around.Switch(shape.Model()); err != nil { // the inputs are on their way on the old stream
		return err
	}
	if err := t.launch(shape); err != nil {
		return err
	}
	for _, w := range t.outputs[output] {
		var err error
		if w.output >= 0 {
			err = shape.Fetch(w.output, w.data)
		} else {
			err = shape.FetchState(w.name, w.data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// Trace runs forward, loss and backward on a copy of the state.
func (t *trainer) Trace(_ context.Context, memory *serve.Memory, request arm.TraceRequest) (reply arm.TraceReply, err error) {
	if t.trainer == nil || request.InputBank < 0 || request.InputBank >= len(t.inputs) {
		return reply, fmt.Errorf("trace before load and prepare, or of no input bank: %w", arm.ErrWrongOrder)
	}
	bank := t.inputs[request.InputBank]
	r := bank.shape.Recording()
	reply.Operations = make([]arm.OperationTrace, len(r.Operations))
	for i := range reply.Operations {
		results := recording.Values(r.Operations[i].Results, nil)
		reply.Operations[i] = arm.OperationTrace{Operation: i, Digests: make([]string, len(results))}
	}
	err = bank.shape.Trace(bank.tensors, func(at engine.Result, spec tensor.Spec, data []byte) error {
		reply.Operations[at.Operation].Digests[at.Result] = digest.Tensor(spec, data)
		if w := request.Want; w != nil && w.Operation == at.Operation && w.Result == at.Result {
			reply.Wanted = spec
			return nativearm.CopyOut(memory, w.Region, data)
		}
		return nil
	})
	return reply, nativearm.MemoryError(err)
}

// Measure times steps. They train: the state moves on.
func (t *trainer) Measure(_ context.Context, request arm.MeasureRequest) (reply arm.MeasureReply, err error) {
	if t.trainer == nil || request.InputBank < 0 || request.InputBank >= len(t.inputs) {
		return reply, fmt.Errorf("measure before load and prepare, or of no input bank: %w", arm.ErrWrongOrder)
	}
	if err := t.write(request.InputBank); err != nil {
		return reply, err
	}
	shape := t.inputs[request.InputBank].shape
	reply.Milliseconds = make([]float64, 0, max(request.Iterations, 0))
	for i := range request.Warmup + request.Iterations {
		start := time.Now()
		if err := t.launch(shape); err != nil {
			return reply, err
		}
		if err := shape.Wait(); err != nil {
			return reply, err
		}
		if i >= request.Warmup {
			reply.Milliseconds = append(reply.Milliseconds, float64(time.Since(start))/float64(time.Millisecond))
		}
	}
	return reply, nil
}
