package plan

import (
	"fmt"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/native/device"
)

// State lays out named memory that outlives a step and is shared by several plans: parameters, buffers, momentum. It
// grows by Add before any device memory is taken for it.
type State struct {
	Bytes int64
	at    map[string]place
	names []string
}

type place struct{ offset, bytes int64 }

// Add gives a name its place. Adding a name again is fine if it has the same size.
func (s *State) Add(name string, bytes int64) (offset int64, err error) {
	if have, ok := s.at[name]; ok {
		if have.bytes != bytes {
			return 0, diag.New("STATE_SIZE", name, "%d bytes, but %d in what was loaded first", bytes, have.bytes)
		}
		return have.offset, nil
	}
	if s.at == nil {
		s.at = map[string]place{}
	}
	offset = align(s.Bytes)
	s.at[name] = place{offset, bytes}
	s.names = append(s.names, name)
	s.Bytes = offset + bytes
	return offset, nil
}

// Find gives a name's place.
func (s *State) Find(name string) (offset, bytes int64, ok bool) {
	p, ok := s.at[name]
	return p.offset, p.bytes, ok
}

// Names lists all names in the order in which they were added.
func (s *State) Names() []string { return s.names }

// Tail lets an optimizer append commands to a step.
type Tail struct{ p *planner }

// Emit appends a command.
func (t *Tail) Emit(c device.Command) { t.p.plan.Step = append(t.p.plan.Step, c) }

// Named is the memory of a name in the state.
func (t *Tail) Named(name string) (device.Pointer, error) {
	offset, bytes, ok := t.p.options.State.Find(name)
	if !ok {
		return device.Pointer{}, fmt.Errorf("the state has no %q", name)
	}
	at := t.p.add(bytes, Shared)
	t.p.plan.Storages[at.Storage].Offset = offset
	return at, nil
}

// Table is memory that the caller fills once addresses are known and that nothing overwrites.
func (t *Tail) Table(bytes int64) device.Pointer { return t.p.add(bytes, Fixed) }

// Output is the memory of one of the recording's outputs.
func (t *Tail) Output(name string) (at device.Pointer, ok bool) {
	r := t.p.plan.Recording
	for _, o := range r.Outputs {
		if o.Name == name {
			v := &r.Values[o.Value]
			return device.Pointer{Storage: v.Storage, Offset: v.Offset * v.DType.Size()}, true
		}
	}
	return device.Pointer{}, false
}

// share puts parameters and buffers into the state.
func (p *planner) share(problems *diag.Problems) {
	state := p.options.State
	if state == nil {
		return
	}
	for i, s := range p.plan.Recording.Storages {
		if !stateful(s.Role) {
			continue
		}
		prefix := "param."
		if s.Role == recording.Buffer {
			prefix = "buffer."
		}
		offset, err := state.Add(prefix+s.Name, s.Bytes)
		if err != nil {
			addProblem(problems, fmt.Sprintf("storages[%d]", i), err)
			continue
		}
		p.plan.Storages[i].Area, p.plan.Storages[i].Offset = Shared, offset
	}
}

// tail appends the optimizer's commands. They follow everything: on the first lane, after the ends of all lanes.
func (p *planner) tail() error {
	p.plan.Tail = len(p.plan.Step)
	p.current = len(p.plan.Recording.Operations)
	if p.options.Tail == nil {
		return nil
	}
	if p.options.State == nil {
		return fmt.Errorf("a tail needs a state")
	}
	return p.options.Tail(&Tail{p})
}
