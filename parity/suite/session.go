package suite

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/gate"
)

// outputBanks is how many banks a session writes in turn: two, so that a result can be held while another is made.
const outputBanks = 2

// session is an arm that is ready to step: its process, and the banks it knows.
type session struct {
	arm      Arm
	name     string // of the arm
	probes   []string
	inputs   []arm.Bank
	specs    []tensor.Spec        // of inputs
	given    [][][]byte           // the bytes of inputs
	keys     *recording.Recording // says what inputs hold that are keys; nil: none is
	made     []tensor.Spec        // inputs that a segment makes
	outputs  []tensor.Spec
	data     [outputBanks][][]byte
	request  arm.PrepareRequest // that prepared is the reply to
	prepared arm.PrepareReply
	arena    int64 // of a native arm
}

// ready places one bank of inputs for each probe and the banks of outputs, and prepares the arm.
func (s *session) ready(ctx context.Context, inputs, outputs []tensor.Spec, seed uint64, graph bool) error {
	if err := s.place(ctx, inputs, seed); err != nil {
		return err
	}
	s.outputs = outputs
	request := arm.PrepareRequest{Inputs: s.inputs, CUDAGraph: graph}
	for i := range s.data {
		bank, data, err := s.arm.AllocBank(ctx, outputs)
		if err != nil {
			return err
		}
		request.Outputs = append(request.Outputs, bank)
		s.data[i] = data
	}
	var err error
	s.request = request
	s.prepared, err = s.arm.Prepare(ctx, request)
	return err
}

// eagerly steps once through all probes without a graph, in a process that has one, and captures again.
func (s *session) eagerly(ctx context.Context) (gate.Run, error) {
	request := s.request
	request.CUDAGraph = false
	if _, err := s.arm.Prepare(ctx, request); err != nil {
		return nil, err
	}
	run, err := s.all(ctx)
	if err == nil {
		s.prepared, err = s.arm.Prepare(ctx, s.request)
	}
	return run, err
}

// place fills one bank of inputs for each probe.
func (s *session) place(ctx context.Context, inputs []tensor.Spec, seed uint64) error {
	s.specs = inputs
	for _, name := range s.probes {
		bank, data, err := s.arm.AllocBank(ctx, inputs)
		if err != nil {
			return err
		}
		for i, spec := range inputs {
			if err := s.fill(name, spec, seed, data[i]); err != nil {
				return err
			}
		}
		s.inputs, s.given = append(s.inputs, bank), append(s.given, data)
	}
	return nil
}

func (s *session) bankOf(probe string) int { return slices.Index(s.probes, probe) }

// step poisons an output bank, runs one step into it and copies out what it left there.
func (s *session) step(ctx context.Context, probe string, bank int) (gate.Outputs, error) {
	return s.stepLike(ctx, probe, bank, nil)
}

// stepLike is step for who expects something: what is like that is neither copied nor digested.
func (s *session) stepLike(ctx context.Context, probe string, bank int, like gate.Outputs) (gate.Outputs, error) {
	for _, data := range s.data[bank] {
		poison(data)
	}
	if err := s.arm.Step(ctx, s.bankOf(probe), bank); err != nil {
		return nil, fmt.Errorf("%s, probe %s: %w", s.name, probe, err)
	}
	return s.read(bank, like), nil
}

// read copies out what a bank holds now, but for what is like something that is there already.
func (s *session) read(bank int, like gate.Outputs) gate.Outputs {
	outputs := make(gate.Outputs, len(s.outputs))
	for i, spec := range s.outputs {
		if i < len(like) && same(like[i], spec, s.data[bank][i]) {
			outputs[i] = like[i]
			continue
		}
		outputs[i] = gate.NewOutput(spec, slices.Clone(s.data[bank][i]))
	}
	return outputs
}

// all steps once through all probes.
func (s *session) all(ctx context.Context) (gate.Run, error) {
	run := gate.Run{}
	for i, name := range s.probes {
		outputs, err := s.step(ctx, name, i%outputBanks)
		if err != nil {
			return nil, err
		}
		run[name] = outputs
	}
	return run, nil
}

func same(o gate.Output, spec tensor.Spec, data []byte) bool {
	return o.Name == spec.Name && o.DType == spec.DType && slices.Equal(o.Sizes, spec.Sizes) && bytes.Equal(o.Data, data)
}

func poison(data []byte) {
	if len(data) == 0 {
		return
	}
	data[0] = gate.Poison
	for n := 1; n < len(data); n *= 2 { // far faster than byte by byte
		copy(data[n:], data[:n])
	}
}

// rotation is an order in which each of at least three probes comes once a round, never twice in a row, and with returns
// to a probe right after another: A B C B A C A B C.
func rotation(probes []string, rounds int) []string {
	var order []string
	for i := range rounds {
		round := slices.Clone(probes)
		if i%2 == 1 {
			round[0], round[1] = round[1], round[0]
		}
		order = append(order, round...)
	}
	return order
}
