package reduce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/compare"
	"samebits/parity/gate"
	"samebits/parity/suite"
)

// job is a recording with the bytes that a step of it gets.
type job struct {
	file    []byte
	weights []byte // safetensors
	inputs  [][]byte
	specs   []tensor.Spec // of inputs
}

// newJob gives a recording the contents of its storages.
func newJob(r *recording.Recording, content func(storage int) []byte) (*job, error) {
	j := &job{}
	var weights []safetensors.Tensor
	for i := range r.Storages {
		if s := &r.Storages[i]; s.Role.Weight() {
			v := covering(r, i)
			weights = append(weights, safetensors.Tensor{Spec: spec(s.Name, &v), Data: content(i)})
		}
	}
	for _, n := range r.Inputs {
		v := &r.Values[n.Value]
		j.specs = append(j.specs, spec(n.Name, v))
		j.inputs = append(j.inputs, content(v.Storage))
	}
	var err error
	if j.weights, err = safetensors.Encode(weights, nil); err != nil {
		return nil, err
	}
	j.file, err = recording.Encode(r)
	return j, err
}

// tensors gives everything that a job is given, for a file.
func (j *job) tensors() ([]safetensors.Tensor, error) {
	file, err := safetensors.Decode(j.weights)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(file.Tensors)
	for i, s := range j.specs {
		all = append(all, safetensors.Tensor{Spec: s, Data: j.inputs[i]})
	}
	return all, nil
}

// side is a process that runs recordings.
type side struct {
	name, device string
	start        func(ctx context.Context) (suite.Arm, error)

	arm         suite.Arm
	room        arm.Room
	environment []recording.Setting
	outputs     [][]byte
	specs       []tensor.Spec // of outputs
}

func (s *side) stop() {
	if s.arm != nil {
		s.arm.Stop()
		s.arm, s.room = nil, arm.Room{}
	}
}

// load hands a job over. From here on the arm steps and traces.
func (s *side) load(ctx context.Context, j *job) (err error) {
	if s.arm == nil {
		if s.arm, err = s.start(ctx); err != nil {
			return err
		}
		d, err := s.arm.Describe(ctx)
		if err != nil {
			return err
		}
		s.environment = d.Environment
	}
	room := int64(len(j.file)+len(j.weights)) + 2*arm.Alignment
	for _, in := range j.inputs {
		room += int64(len(in)) + arm.Alignment
	}
	r, err := recording.Decode(j.file)
	if err != nil {
		return err
	}
	for _, n := range r.Outputs {
		room += r.Values[n.Value].Numel()*8 + arm.Alignment
	}
	if s.room.Bytes() < room {
		at, memory, err := s.arm.Alloc(ctx, room)
		if err != nil {
			return err
		}
		s.room = arm.NewRoom(at, memory)
	}
	s.room.Empty()
	file, weights := s.room.Hold(j.file), s.room.Hold(j.weights)
	loaded, err := s.arm.Load(ctx, arm.LoadRequest{Recording: file, Weights: weights, Device: s.device, Arm: s.name})
	if err != nil {
		return err
	}
	if len(loaded.Inputs) != len(j.inputs) {
		return fmt.Errorf("%s: it takes %d tensors instead of %d", s.name, len(loaded.Inputs), len(j.inputs))
	}
	inputs, given := s.room.Bank(j.specs)
	for i := range given {
		copy(given[i], j.inputs[i])
	}
	var outputs arm.Bank
	s.specs = loaded.Outputs
	outputs, s.outputs = s.room.Bank(loaded.Outputs)
	_, err = s.arm.Prepare(ctx, arm.PrepareRequest{Inputs: []arm.Bank{inputs}, Outputs: []arm.Bank{outputs}})
	return err
}

// run loads a job and runs one step of it.
func (s *side) run(ctx context.Context, j *job) (gate.Outputs, error) {
	if err := s.load(ctx, j); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	for _, data := range s.outputs {
		for i := range data {
			data[i] = gate.Poison
		}
	}
	if err := s.arm.Step(ctx, 0, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	outputs := make(gate.Outputs, len(s.specs))
	for i, spec := range s.specs {
		outputs[i] = gate.NewOutput(spec, slices.Clone(s.outputs[i]))
	}
	return outputs, nil
}

// Finder runs cases on both sides.
type Finder struct {
	Start  suite.Starter
	Device string // cuda:N, host
	// Progress is told of each test; it may be nil.
	Progress func(text string)

	reference, native, double *side
}

func (f *Finder) open() {
	onGPU := f.Device != suite.HostDevice
	device := "cpu"
	if onGPU {
		device = f.Device
	}
	f.reference = &side{name: arm.ReferenceEager, device: device, start: f.Start.Reference}
	f.native = &side{name: arm.NativeEager, device: f.Device, start: func(ctx context.Context) (suite.Arm, error) {
		return f.Start.Native(ctx, f.reference.environment)
	}}
	f.double = &side{name: arm.ReferenceFP64, device: device, start: f.Start.Reference}
}

// close ends all processes.
func (f *Finder) close() {
	for _, s := range []*side{f.reference, f.native, f.double} {
		s.stop()
	}
}

func (f *Finder) say(format string, args ...any) {
	if f.Progress != nil {
		f.Progress(fmt.Sprintf(format, args...))
	}
}

// both is what the two sides gave for one part.
type both struct {
	reference, native gate.Outputs
	differs           bool
	detail            string
}

// test runs a job on both sides. On a GPU any other bit is a difference; on the host, what the gate NATIVE does not allow.
func (f *Finder) test(ctx context.Context, j *job) (b both, err error) {
	if b.reference, err = f.reference.run(ctx, j); err != nil {
		return b, err
	}
	if b.native, err = f.native.run(ctx, j); err != nil {
		return b, err
	}
	if len(b.reference) != len(b.native) {
		return b, fmt.Errorf("PyTorch gives %d outputs, native %d", len(b.reference), len(b.native))
	}
	if f.Device != suite.HostDevice {
		for i := range b.reference {
			if !b.differs && !bytes.Equal(b.reference[i].Data, b.native[i].Data) {
				b.differs = true
				figures, err := compare.Bits(b.reference[i].DType, b.reference[i].Data, b.native[i].Data)
				if err != nil {
					return b, err
				}
				b.detail = b.reference[i].Name + ": " + figures.String()
			}
		}
		return b, nil
	}
	exact, err := f.double.run(ctx, j)
	if err != nil {
		return b, err
	}
	const name = "given"
	finding, err := gate.JudgeRounding(gate.Run{name: exact}, gate.Run{name: b.reference}, gate.Run{name: b.native}, []string{name})
	b.differs, b.detail = finding.Outcome == gate.Failed, finding.Detail
	return b, err
}

// tolerable reports whether a part that fails may be passed over: plugins may refuse what is cut otherwise than families are.
// A process that died is started anew.
func (f *Finder) tolerable(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	var gone *host.Error
	if errors.As(err, &gone) {
		f.close()
		return gone.Reason != host.ReasonMissing
	}
	_, refused := diag.Of(err)
	return refused
}
