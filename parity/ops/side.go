package ops

import (
	"context"
	"fmt"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/suite"
)

// side is one process that runs batches: PyTorch or the native engine. It is started when it is needed, again after it died.
type side struct {
	name   string // of the arm
	device string
	start  func(ctx context.Context) (suite.Arm, error)
	option []recording.Setting

	arm  suite.Arm
	room arm.Room // taken once: a plugin pins it

	inputs, outputs [][]byte
	environment     []recording.Setting
	described       bool // after a load
}

// load hands a batch over and gives it banks. From here on Step runs it.
func (s *side) load(ctx context.Context, b *batch) error {
	s.room.Empty()
	file, weights := s.room.Hold(b.file), s.room.Hold(noWeights)
	loaded, err := s.arm.Load(ctx, arm.LoadRequest{Recording: file, Weights: weights, Device: s.device, Arm: s.name, Options: s.option})
	if err != nil {
		return err
	}
	if len(loaded.Outputs) != len(b.outputs) || len(loaded.Inputs) != len(b.inputs) {
		return fmt.Errorf("%s: it takes %d tensors and gives %d, the recording has %d and %d", s.name, len(loaded.Inputs), len(loaded.Outputs),
			len(b.inputs), len(b.outputs))
	}
	var inputs, outputs arm.Bank
	inputs, s.inputs = s.room.Bank(b.inputSpecs())
	outputs, s.outputs = s.room.Bank(loaded.Outputs)
	_, err = s.arm.Prepare(ctx, arm.PrepareRequest{Inputs: []arm.Bank{inputs}, Outputs: []arm.Bank{outputs}})
	if err != nil || s.described {
		return err
	}
	s.described = true
	return s.describe(ctx) // now that it has opened its device
}

func (s *side) describe(ctx context.Context) error {
	d, err := s.arm.Describe(ctx)
	s.environment = d.Environment
	return err
}

// noWeights is a safetensors file of nothing.
var noWeights = []byte{2, 0, 0, 0, 0, 0, 0, 0, '{', '}'}

// ensure starts the process if there is none, and takes the memory.
func (s *side) ensure(ctx context.Context, room int64) (err error) {
	if s.arm == nil {
		if s.arm, err = s.start(ctx); err != nil {
			return err
		}
		s.room = arm.Room{}
		if err := s.describe(ctx); err != nil {
			return err
		}
	}
	if s.room.Bytes() < room {
		at, memory, err := s.arm.Alloc(ctx, room)
		if err != nil {
			return err
		}
		s.room = arm.NewRoom(at, memory)
	}
	return nil
}

// step runs one step whose inputs lie ready. What it does not write shows: every byte of the outputs is poison before, another
// one on either side.
func (s *side) step(ctx context.Context, poison byte) error {
	parallel(len(s.outputs), func(i int) { spread(s.outputs[i], poison) })
	if err := s.arm.Disturb(ctx, arm.DisturbRequest{PoisonOutputs: true}); err != nil {
		return err
	}
	return s.arm.Step(ctx, 0, 0)
}

// spread fills memory with one byte, far faster than byte by byte.
func spread(data []byte, b byte) {
	if len(data) == 0 {
		return
	}
	data[0] = b
	for n := 1; n < len(data); n *= 2 {
		copy(data[n:], data[:n])
	}
}

// stop ends the process.
func (s *side) stop() {
	if s.arm != nil {
		s.arm.Stop()
		s.arm, s.room = nil, arm.Room{}
	}
}

// room is the shared memory that a batch takes at most on a side: outputs may be wider in double precision.
func (b *batch) room(double bool) int64 {
	n := int64(len(b.file)+len(noWeights)) + 2*arm.Alignment
	for _, in := range b.inputs {
		n += in.spec.Bytes() + arm.Alignment
	}
	for _, out := range b.outputs {
		wide := out.spec
		if double && wide.DType.Float() {
			wide.DType = tensor.Float64
		}
		n += wide.Bytes() + arm.Alignment
	}
	return n
}
