// Command example is a whole plugin, to be copied: an arm that multiplies its input by a number.
//
// What an author does:
//
//  1. Embed serve.Unimplemented, so that the methods you leave out answer "not implemented".
//  2. Describe says what the plugin is, Load what a step takes and gives.
//  3. Prepare gets the banks: places in shared memory for inputs and outputs. Turn them into slices once; they stay valid.
//  4. Step reads one bank of inputs and writes one bank of outputs. It is the only method that must be quick.
//  5. main calls serve.Serve. Build it with "go build" and give its path to a host.
//
// All methods run on one thread, one after the other: there is nothing to lock. Bad input is refused with diag problems,
// each with a reason, a path and what to do; a panic reaches the host as an error. Print what you like: lines on standard
// output and error, and those of serve.Logger with their level, end up in the host's log.
package main

import (
	"context"
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
)

var (
	input  = tensor.Spec{Name: "images", DType: tensor.Float32, Sizes: []int64{1, 3, 8, 8}}
	output = tensor.Spec{Name: "output", DType: tensor.Float32, Sizes: []int64{1, 3, 8, 8}}
)

func main() { serve.Serve(&scaler{}) }

// scaler multiplies. Its option is scale=NUMBER; without it, it doubles.
type scaler struct {
	serve.Unimplemented

	factor          float32
	inputs, outputs [][]byte // a bank has one tensor here
	stats           serve.Stats
}

func (s *scaler) Describe(context.Context) (serve.Description, error) {
	return serve.Description{Plugin: "example", Version: "1", Arms: []string{arm.NativeEager}, Devices: []string{"host"}}, nil
}

func (s *scaler) Load(_ context.Context, _ *serve.Memory, request serve.LoadRequest) (serve.LoadReply, error) {
	var problems diag.Problems
	if request.Device != "host" {
		problems.Add("DEVICE", "device", "this plugin runs on host, not on %q", request.Device)
	}
	factor := 2.0
	for _, option := range request.Options {
		if option.Key != "scale" {
			problems.Add("OPTION", "options/"+option.Key, "unknown option; there is scale")
			continue
		}
		var err error
		if factor, err = strconv.ParseFloat(option.Value, 32); err != nil {
			problems.Add("OPTION", "options/scale", "%q is not a number", option.Value)
		}
	}
	if err := problems.Err(); err != nil {
		return serve.LoadReply{}, err
	}
	*s = scaler{factor: float32(factor)}
	return serve.LoadReply{Inputs: []tensor.Spec{input}, Outputs: []tensor.Spec{output}, ArenaBytes: input.Bytes()}, nil
}

func (s *scaler) Prepare(_ context.Context, memory *serve.Memory, request serve.PrepareRequest) (serve.PrepareReply, error) {
	if request.CUDAGraph {
		return serve.PrepareReply{}, diag.New("NO_GRAPH", "cuda_graph", "this plugin has no graphs")
	}
	var err error
	if s.inputs, err = slices(memory, request.Inputs, input); err != nil {
		return serve.PrepareReply{}, err
	}
	if s.outputs, err = slices(memory, request.Outputs, output); err != nil {
		return serve.PrepareReply{}, err
	}
	return serve.PrepareReply{PeakBytes: input.Bytes()}, nil
}

// slices finds the bytes of the one tensor that every bank has.
func slices(memory *serve.Memory, banks []serve.Bank, want tensor.Spec) ([][]byte, error) {
	var data [][]byte
	for _, bank := range banks {
		if len(bank) != 1 || bank[0].DType != want.DType || bank[0].Numel() != want.Numel() {
			return nil, diag.New("BANK", want.Name, "a bank holds one tensor %v%v", want.DType, want.Sizes)
		}
		bytes, err := memory.Tensor(bank[0])
		if err != nil {
			return nil, err
		}
		data = append(data, bytes)
	}
	return data, nil
}

func (s *scaler) Step(in, out int) error {
	s.stats.EagerSteps++
	s.stats.Launches++
	s.scale(s.outputs[out], s.inputs[in])
	return nil
}

func (s *scaler) scale(to, from []byte) {
	for i := 0; i < len(from); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(from[i:]))
		binary.LittleEndian.PutUint32(to[i:], math.Float32bits(x*s.factor))
	}
}

// Disturb poisons the plugin's own memory of results, if it has any: here a step writes to the bank at once. Banks are the
// host's, which may still hold there what an earlier step wrote.
func (s *scaler) Disturb(context.Context, serve.DisturbRequest) error { return nil }

// Trace gives the digest of the one operation's one result.
func (s *scaler) Trace(_ context.Context, memory *serve.Memory, request serve.TraceRequest) (serve.TraceReply, error) {
	result := make([]byte, output.Bytes())
	s.scale(result, s.inputs[request.InputBank])
	reply := serve.TraceReply{Operations: []serve.OperationTrace{{Operation: 0, Digests: []string{digest.Tensor(output, result)}}}}
	if want := request.Want; want != nil {
		if want.Operation != 0 || want.Result != 0 {
			return serve.TraceReply{}, diag.New("OPERATION", "", "there is no result %d of operation %d", want.Result, want.Operation)
		}
		place, err := memory.Tensor(serve.Placed{Spec: output, Region: want.Region})
		if err != nil {
			return serve.TraceReply{}, err
		}
		copy(place, result)
		reply.Wanted = output
	}
	return reply, nil
}

func (s *scaler) Measure(_ context.Context, request serve.MeasureRequest) (serve.MeasureReply, error) {
	result := make([]byte, output.Bytes())
	var reply serve.MeasureReply
	for i := range request.Warmup + request.Iterations {
		start := time.Now()
		s.scale(result, s.inputs[request.InputBank])
		if i >= request.Warmup {
			reply.Milliseconds = append(reply.Milliseconds, float64(time.Since(start).Nanoseconds())/1e6)
		}
	}
	return reply, nil
}

func (s *scaler) Stats(context.Context) (serve.Stats, error) { return s.stats, nil }
