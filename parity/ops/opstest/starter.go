package opstest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"samebits/bridge/arm"
	"samebits/bridge/digest"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/suite"
)

// Starter is a suite.Starter of engines, in this process.
type Starter struct {
	Faults       Fault // of native
	PyTorch      Fault // of the reference
	Doubles      Fault // of the reference in double precision
	Alive        int
	Natives      int // started so far
	Missing      error
	Refused      map[string]string // by PyTorch
	Devices      map[string]string // where each arm was told to run
	largest, all int
}

// Largest gives the most operations that one recording had, and how many recordings were loaded by native.
func (s *Starter) Largest() (operations, recordings int) { return s.largest, s.all }

// noting guards Devices: both sides load at once.
var noting sync.Mutex

func (s *Starter) ran(name, device string) {
	noting.Lock()
	defer noting.Unlock()
	if s.Devices == nil {
		s.Devices = map[string]string{}
	}
	s.Devices[name] = device
}

// Reference implements suite.Starter.
func (s *Starter) Reference(context.Context) (suite.Arm, error) {
	f := s.PyTorch
	f.Refuse = s.Refused
	s.Alive++
	return &fakeArm{starter: s, engine: Engine{Fault: f}, kind: "reference"}, nil
}

// Native implements suite.Starter.
func (s *Starter) Native(_ context.Context, reference []recording.Setting) (suite.Arm, error) {
	if s.Missing != nil {
		return nil, s.Missing
	}
	if len(reference) == 0 {
		return nil, errors.New("native was not told of the reference's environment")
	}
	s.Alive++
	s.Natives++
	return &fakeArm{starter: s, engine: Engine{Fault: s.Faults}, kind: "native"}, nil
}

// NativeTrainer implements suite.Starter.
func (s *Starter) NativeTrainer(context.Context, []recording.Setting) (suite.Arm, error) {
	return nil, errors.New("operations are not trained")
}

// fakeArm is an engine as an arm.
type fakeArm struct {
	suite.Arm // what is not overridden is not called
	starter   *Starter
	engine    Engine
	kind      string
	memory    []byte
	banks     arm.PrepareRequest
	dead      error
	stopped   bool
}

func (a *fakeArm) Describe(context.Context) (arm.Description, error) {
	return arm.Description{Plugin: a.kind, Environment: []recording.Setting{{Key: "torch", Value: "2.11"}, {Key: "side", Value: a.kind}}}, nil
}

// most is how much memory a process has.
const most = 16 << 20

func (a *fakeArm) Alloc(_ context.Context, n int64) (arm.Region, []byte, error) {
	at := (len(a.memory) + arm.Alignment - 1) / arm.Alignment * arm.Alignment
	if cap(a.memory) == 0 {
		a.memory = make([]byte, 0, most) // never moves
	}
	if at+int(n) > most {
		return arm.Region{}, nil, errors.New("the fake's memory is full")
	}
	a.memory = a.memory[:at+int(n)]
	return arm.Region{Offset: int64(at), Length: n}, a.memory[at : at+int(n) : at+int(n)], nil
}

func (a *fakeArm) at(r arm.Region) []byte { return a.memory[r.Offset : r.Offset+r.Length] }

func (a *fakeArm) Load(_ context.Context, r arm.LoadRequest) (arm.LoadReply, error) {
	if a.dead != nil {
		return arm.LoadReply{}, a.dead
	}
	a.starter.ran(r.Arm, r.Device)
	a.engine.Double = r.Arm == arm.ReferenceFP64
	if a.engine.Double {
		a.engine.Fault = a.starter.Doubles
	}
	if err := a.engine.Load(a.at(r.Recording), a.at(r.Weights)); err != nil {
		return arm.LoadReply{}, err
	}
	if a.kind == "native" {
		a.starter.largest = max(a.starter.largest, len(a.engine.r.Operations))
		a.starter.all++
	}
	return arm.LoadReply{Inputs: a.engine.Inputs(), Outputs: a.engine.Outputs()}, nil
}

func (a *fakeArm) Prepare(_ context.Context, r arm.PrepareRequest) (arm.PrepareReply, error) {
	a.banks = r
	for i, want := range [][]tensor.Spec{a.engine.Inputs(), a.engine.Outputs()} {
		bank := []arm.Bank{r.Inputs[0], r.Outputs[0]}[i]
		for j := range bank {
			if bank[j].Region.Length != want[j].Bytes() || bank[j].Region.Offset%arm.Alignment != 0 {
				return arm.PrepareReply{}, fmt.Errorf("%v lies at %v", want[j], bank[j].Region)
			}
		}
	}
	return arm.PrepareReply{}, nil
}

func (a *fakeArm) Process(context.Context, arm.ProcessRequest) (arm.ProcessReply, error) {
	return arm.ProcessReply{}, arm.ErrUnimplemented
}

func (a *fakeArm) Situate(context.Context, arm.SituateRequest) (arm.SituateReply, error) {
	return arm.SituateReply{}, arm.ErrUnimplemented
}
func (a *fakeArm) Disturb(context.Context, arm.DisturbRequest) error { return nil }

func (a *fakeArm) Step(context.Context, int, int) error {
	var both [2][][]byte
	for i, bank := range []arm.Bank{a.banks.Inputs[0], a.banks.Outputs[0]} {
		for _, placed := range bank {
			both[i] = append(both[i], a.at(placed.Region))
		}
	}
	err := a.engine.Step(both[0], both[1])
	var gone *host.Error
	if errors.As(err, &gone) {
		a.dead = err
	}
	return err
}

// Trace runs a step and digests what each operation gives first.
func (a *fakeArm) Trace(_ context.Context, r arm.TraceRequest) (arm.TraceReply, error) {
	var inputs [][]byte
	for _, placed := range a.banks.Inputs[r.InputBank] {
		inputs = append(inputs, a.at(placed.Region))
	}
	var reply arm.TraceReply
	err := a.engine.Trace(inputs, func(operation int, spec tensor.Spec, data []byte) {
		reply.Operations = append(reply.Operations, arm.OperationTrace{Operation: operation, Digests: []string{digest.Tensor(spec, data)}})
		if r.Want != nil && r.Want.Operation == operation {
			copy(a.at(r.Want.Region), data)
		}
	})
	return reply, err
}

func (a *fakeArm) Stop() {
	if !a.stopped {
		a.stopped = true
		a.starter.Alive--
	}
}
