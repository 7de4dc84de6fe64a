// Package suitetest has arms that need no GPU and no Python: a tiny model, right or with one chosen fault.
package suitetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/probe"
)

// The fake family: features = relu(images), logits = features * weight, in single precision. Every arm computes the same
// unless it has a fault.
const elements = 3 * 8 * 8

var weight = tensor.Spec{Name: "weight", DType: tensor.Float32, Sizes: []int64{1, 3, 8, 8}}

type fakeArm struct {
	Faults
	starter *Starter
	kind    string
	process int
	stopped bool

	calls     sync.Mutex // one at a time, as a plugin does
	memory    []byte
	family    string
	task      string
	name      string // of the arm
	double    bool
	onGPU     bool
	precision string
	banks     arm.PrepareRequest
	stats     arm.Stats
	steps     int
	traces    int
	recorded  []byte
	weights   []float32
	captured  []float32 // the inputs of the first replay
	keys      []int64   // of what was loaded or captured
	poisoned  bool
	churned   bool
	between   between
	underWay  map[string]*prediction
}

func (a *fakeArm) Stop() {
	if !a.stopped {
		a.stopped = true
		a.starter.stopped()
	}
}

func (a *fakeArm) Alloc(_ context.Context, n int64) (arm.Region, []byte, error) {
	a.calls.Lock()
	defer a.calls.Unlock()
	const size = 1 << 22
	if a.memory == nil {
		a.memory = make([]byte, 0, size) // never moves
	}
	at := (len(a.memory) + arm.Alignment - 1) / arm.Alignment * arm.Alignment
	if at+int(n) > size {
		return arm.Region{}, nil, errors.New("the fake's memory is full")
	}
	a.memory = a.memory[:at+int(n)]
	return arm.Region{Offset: int64(at), Length: n}, a.memory[at : at+int(n) : at+int(n)], nil
}

func (a *fakeArm) AllocBank(ctx context.Context, specs []tensor.Spec) (bank arm.Bank, all [][]byte, err error) {
	for _, spec := range specs {
		region, data, err := a.Alloc(ctx, spec.Bytes())
		if err != nil {
			return nil, nil, err
		}
		bank, all = append(bank, arm.Placed{Spec: spec, Region: region}), append(all, data)
	}
	return bank, all, nil
}

func (a *fakeArm) at(r arm.Region) []byte { return a.memory[r.Offset : r.Offset+r.Length] }

func (a *fakeArm) Describe(context.Context) (arm.Description, error) {
	return arm.Description{Plugin: a.kind, Version: "1.0", Devices: []string{"cpu"}, Environment: append([]recording.Setting{
		{Key: "cudnn", Value: "9.19"}, {Key: a.kind + "_only", Value: "yes"}, {Key: "side", Value: a.kind},
		{Key: "cuda.path", Value: "/usr/lib/libcuda.so.1"}, {Key: "cudnn.path", Value: "/srv/site-packages/nvidia/cudnn/lib/libcudnn.so.9"}}, a.starter.Environment...)}, nil
}

func (a *fakeArm) Build(_ context.Context, r arm.BuildRequest) (arm.BuildReply, error) {
	a.name, a.double, a.onGPU, a.precision = r.Arm, r.Precision == "fp64", r.Device != "cpu", r.Precision
	if strings.HasSuffix(r.WeightsFile, "torn") {
		return arm.BuildReply{}, diag.New("BAD_WEIGHTS_FILE", "weights_file", "it is torn")
	}
	if a.family, a.task = r.Family, r.Task; a.task == "" {
		a.task = "classify"
	}
	a.weights = make([]float32, elements)
	for i := range a.weights {
		a.weights[i] = 0.3 + float32(i%7)/10
	}
	return a.furtherBuild(arm.BuildReply{Inputs: []tensor.Spec{images()}, WeightsLength: int64(len(a.file())), Task: a.task, Size: "s", ImgSize: 8}), nil
}

func images() tensor.Spec {
	return tensor.Spec{Name: "images", DType: tensor.Float32, Sizes: []int64{1, 3, 8, 8}}
}

// file is the weights file.
func (a *fakeArm) file() []byte {
	file, err := safetensors.Encode([]safetensors.Tensor{{Spec: weight, Data: floats(a.weights)}}, nil)
	if err != nil {
		panic(err)
	}
	return file
}

func floats(values []float32) []byte {
	var b []byte
	for _, x := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func parse(b []byte) []float32 {
	values := make([]float32, len(b)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values
}

func (a *fakeArm) Record(_ context.Context, inputs arm.Bank) (arm.RecordReply, error) {
	a.calls.Lock()
	defer a.calls.Unlock()
	a.steps++
	alpha := int64(1)
	if a.ScalarFromStep {
		alpha = int64(a.steps)
	}
	if a.OwnScalar {
		alpha = int64(a.process)
	}
	if x := parse(a.at(inputs[0].Region)); a.BranchOnInput && x[0] > 0.55 {
		alpha = 2
	}
	r := fakeRecording(alpha)
	if a.onGPU {
		r.Header.DeviceType = "cuda"
	}
	r.Header.Family, r.Header.Task, r.Header.Precision = a.family, a.task, a.precision
	a.addKey(r)
	if a.OtherPrecision {
		r.Header.Precision = "fp16"
	}
	var err error
	if a.recorded, err = recording.Encode(r); err != nil {
		return arm.RecordReply{}, err
	}
	return arm.RecordReply{RecordingLength: int64(len(a.recorded)), WeightsLength: int64(len(a.file())), Outputs: a.specs()}, nil
}

func fakeRecording(alpha int64) *recording.Recording {
	sizes, strides := []int64{1, 3, 8, 8}, []int64{192, 64, 8, 1}
	value := func(storage int) recording.Value {
		return recording.Value{Storage: storage, DType: tensor.Float32, Sizes: sizes, Strides: strides, Alignment: 512}
	}
	storage := func(role recording.Role, name string) recording.Storage {
		return recording.Storage{Bytes: 4 * elements, Role: role, Name: name, DType: tensor.Float32}
	}
	of := func(name string, value int) recording.Argument {
		return recording.Argument{Name: name, Kind: recording.ValueOf, Value: value}
	}
	return &recording.Recording{
		Header: recording.Header{Family: "fake", Size: "s", Task: "classify", Mode: "predict", Precision: "fp32", Profile: "exact-1",
			DeviceType: "cpu", ImgSize: 8, Batch: 1},
		Storages: []recording.Storage{storage(recording.Input, "images"), storage(recording.Parameter, "weight"),
			storage(recording.Output, ""), storage(recording.Output, "")},
		Values: []recording.Value{value(0), value(1), value(2), value(3)},
		Operations: []recording.Operation{
			{Name: "aten::relu", Arguments: []recording.Argument{of("self", 0)}, Results: []recording.Argument{of("", 2)}, Module: "stem"},
			{Name: "aten::mul.Tensor", Arguments: []recording.Argument{of("self", 2), of("other", 1), {Name: "alpha", Kind: recording.Integer, Int: alpha}},
				Results: []recording.Argument{of("", 3)}, Module: "head", Source: "fake.py:7"},
		},
		Inputs:  []recording.Named{{Name: "images", Value: 0}},
		Outputs: []recording.Named{{Name: "features", Value: 2}, {Name: "logits", Value: 3}},
	}
}

func (a *fakeArm) Export(_ context.Context, r arm.ExportRequest) error {
	a.calls.Lock()
	defer a.calls.Unlock()
	switch r.What {
	case arm.TheRecording:
		copy(a.at(r.Region), a.recorded)
	case arm.TheWeights:
		copy(a.at(r.Region), a.file())
	}
	return nil
}

func (a *fakeArm) Load(_ context.Context, r arm.LoadRequest) (arm.LoadReply, error) {
	if a.kind == "native" {
		a.name, a.onGPU = r.Arm, r.Device != "host"
		if a.Refuses != nil {
			return arm.LoadReply{}, a.Refuses
		}
		r, err := recording.Decode(a.at(r.Recording))
		if err != nil {
			return arm.LoadReply{}, err
		}
		a.family = r.Header.Family
		switch a.family {
		case a.CrashesOn:
			return arm.LoadReply{}, errors.New("there is no space left on the device")
		case a.PanicsOn:
			panic("index out of range")
		}
	}
	file, err := safetensors.Decode(a.at(r.Weights))
	if err != nil {
		return arm.LoadReply{}, err
	}
	w, ok := file.Get("weight")
	if !ok {
		return arm.LoadReply{}, errors.New("no weight")
	}
	a.weights = parse(w.Data)
	if a.OwnWeights && a.name == arm.ReferenceEager {
		a.weights[5] += float32(a.process)
	}
	a.between.loaded = slices.Clone(a.weights)
	reply := arm.LoadReply{Inputs: []tensor.Spec{images()}, Outputs: a.specs()}
	if a.kind == "native" {
		reply.RecordingDigest = digest.Bytes(a.at(r.Recording))
		if a.OtherRecording {
			reply.RecordingDigest = strings.Repeat("ab", 32)
		}
		reply.Launches = arm.LaunchList{Kinds: []string{"kernel relu", "library convolution"}, Kind: []uint8{1, 0, 1}, Lane: []uint8{0, 1, 0}}
	}
	return a.furtherLoad(reply, len(r.Options) > 0), nil
}

func (a *fakeArm) specs() []tensor.Spec {
	d := tensor.Float32
	if a.double {
		d = tensor.Float64
	}
	sizes := []int64{1, 3, 8, 8}
	if a.OtherShape && a.kind == "native" {
		sizes = []int64{3, 64}
	}
	return []tensor.Spec{{Name: "features", DType: d, Sizes: sizes}, {Name: "logits", DType: d, Sizes: sizes}}
}

func (a *fakeArm) Prepare(_ context.Context, r arm.PrepareRequest) (arm.PrepareReply, error) {
	if err := a.PrepareFails[a.name]; err != nil {
		return arm.PrepareReply{}, err
	}
	a.banks = r
	if !r.CUDAGraph || a.NotCaptured {
		return arm.PrepareReply{}, nil
	}
	graphs := a.countGraphs()
	a.capture()
	a.stats.Captures += graphs - 1
	return arm.PrepareReply{Captured: true, Nodes: 2}, nil
}

// compute runs the model. traced is false for what a fused step alone gets wrong.
func (a *fakeArm) compute(x []float32, traced bool) (features, logits []float32) {
	weights := a.read(a.between.graph)
	if a.InputIgnored {
		x = make([]float32, len(x))
	}
	for i := range x {
		features = append(features, max(x[i], 0))
		logits = append(logits, features[i]*weights[i])
	}
	if a.kind == "native" && a.Native != nil && (!traced || a.NativeTrace) {
		a.Native(logits)
	}
	if a.name == arm.ReferenceCompile && a.Compiled != nil {
		a.Compiled(logits)
	}
	return features, logits
}

func (a *fakeArm) Step(_ context.Context, input, output int) error {
	if a.kind == "native" && a.Crash != nil {
		return a.Crash
	}
	a.steps++
	x := parse(a.at(a.banks.Inputs[input][0].Region))
	graph := a.banks.CUDAGraph
	if a.name == arm.ReferenceWhole || a.name == arm.ReferenceRest {
		return a.stepOverSeam(x, input, output)
	}
	key, err := a.choose(input)
	if err != nil {
		return err
	}
	if graph && key.stranger {
		graph = false
		a.stats.EagerSteps++
		a.stats.Fallbacks++
	}
	if a.between.failed && a.Dies && a.between.now == arm.FailsCapture {
		return errDead
	}
	if graph && !a.NotCaptured {
		graph = a.replaying()
	}
	if graph {
		a.countReplay()
		if a.captured == nil {
			a.captured = x
		}
		if a.Stale {
			x = a.captured
		}
	}
	features, logits := a.compute(x, false)
	a.spoil(logits, graph)
	if a.Jumps && a.name == arm.ReferenceEager {
		if of := a.banks.Inputs[input][0]; !probed(of.Spec, a.at(of.Region)) {
			ULPs(1 << 12)(logits)
		}
	}
	for i := range logits {
		logits[i] += key.shift
	}
	switch {
	case a.Noise && !graph && a.kind == "reference" && !a.double:
		logits[5] += float32(a.process)
	case a.GraphsProcess && a.name == arm.ReferenceGraph:
		logits[5]++
	case a.StateMoves && !graph:
		logits[5] += float32(a.steps)
	case graph && a.ReadsPoison && a.poisoned:
		logits[0] = float32(math.NaN())
	case graph && a.ReadsChurn && a.churned:
		logits[0] += 1
	}
	if graph && a.NotWritten {
		return nil
	}
	a.write(output, features, logits)
	if graph && a.LeavesBankBehind {
		for bank := range a.banks.Outputs {
			a.write(bank, features, logits)
		}
	}
	return nil
}

func (a *fakeArm) countReplay() {
	a.between.replays++
	switch {
	case a.RunsEagerly:
		a.stats.EagerSteps++
	case a.FallsBack:
		a.stats.Fallbacks++
		a.stats.FallbackReason = "capture failed"
		a.stats.EagerSteps++
	default:
		a.stats.Replays++
	}
	if a.Waits {
		a.stats.Synchronisations++
	}
	if a.CapturesAgain {
		a.stats.Captures++
	}
	if !a.LaunchesNothing {
		a.stats.Launches += 2
	}
}

func (a *fakeArm) write(bank int, outputs ...[]float32) {
	for i, values := range outputs {
		data := floats(values)
		if a.double {
			data = nil
			for _, x := range values {
				data = binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(x)))
			}
		}
		copy(a.at(a.banks.Outputs[bank][i].Region), data)
	}
}

func (a *fakeArm) Disturb(_ context.Context, r arm.DisturbRequest) error {
	a.poisoned = a.poisoned || r.PoisonOutputs
	a.churned = a.churned || r.Churn
	return nil
}

func (a *fakeArm) Trace(_ context.Context, r arm.TraceRequest) (arm.TraceReply, error) {
	if a.TraceFails != nil {
		if err := a.TraceFails(); err != nil {
			return arm.TraceReply{}, err
		}
	}
	features, logits := a.compute(parse(a.at(a.banks.Inputs[r.InputBank][0].Region)), true)
	a.traces++
	switch {
	case a.NoiseEachTime && a.kind == "reference":
		logits[5] += float32(a.process * a.traces)
	case a.NoiseTrace && a.kind == "reference":
		logits[5] += float32(a.process)
	}
	results := [][]byte{floats(features), floats(logits)}
	var reply arm.TraceReply
	for i, data := range results {
		spec := tensor.Spec{DType: tensor.Float32, Sizes: []int64{1, 3, 8, 8}}
		reply.Operations = append(reply.Operations, arm.OperationTrace{Operation: i, Digests: []string{digest.Tensor(spec, data)}})
	}
	if r.Want != nil {
		copy(a.at(r.Want.Region), results[r.Want.Operation])
	}
	return reply, nil
}

func (a *fakeArm) Stats(context.Context) (arm.Stats, error) { return a.inBetween(a.counted()), nil }

// probed reports whether an input is that of a probe, with the seed 0.
func probed(spec tensor.Spec, data []byte) bool {
	like := make([]byte, len(data))
	return slices.ContainsFunc(probe.Names(), func(name string) bool {
		return probe.Fill(name, spec, 0, like) == nil && bytes.Equal(like, data)
	})
}

// ULPs adds n ULP to one logit.
func ULPs(n uint32) func([]float32) {
	return func(logits []float32) { logits[7] = math.Float32frombits(math.Float32bits(logits[7]) + n) }
}
