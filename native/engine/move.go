package engine

import (
	"errors"
	"fmt"

	"samebits/native/device"
)

// held are the addresses that a prepared step holds, in its launch list, in the plans of libraries and in its graph.
type held struct{ fixed, arena, state uintptr }

func (m *Model) addresses() held {
	at := func(memory device.Memory) uintptr {
		if memory == nil {
			return 0
		}
		return memory.Address()
	}
	h := held{fixed: at(m.fixed), arena: at(m.arena)}
	if m.state != nil {
		h.state = at(m.state.memory)
	}
	return h
}

// Captured reports whether there is a graph that may be replayed: none that holds addresses of memory that moved.
func (m *Model) Captured() bool { return m.nodes > 0 && m.addresses() == m.held }

// Invalidations counts graphs that were dropped because memory had moved.
func (m *Model) Invalidations() int64 { return m.invalidations }

// current prepares the step anew if memory lies elsewhere than when it was prepared, whoever moved it. A graph is dropped then.
func (m *Model) current() error {
	if m.addresses() == m.held {
		return nil
	}
	if err := m.Wait(); err != nil {
		return err
	}
	restore, err := m.keepContents(func(int) bool { return true })
	if err != nil {
		return err
	}
	options := m.deviceOptions()
	options.Place = m.placeAgain
	program, err := m.device.Prepare(m.plan.Step, m.resolve, options)
	if err != nil {
		return fmt.Errorf("prepare the step at other addresses: %w", err)
	}
	if m.nodes > 0 {
		m.invalidations++
	}
	closed := m.program.Close()
	m.program, m.nodes = program, 0
	if err := errors.Join(closed, restore()); err != nil {
		return err
	}
	if m.placed != nil {
		if err := m.placed(m); err != nil {
			return err
		}
	}
	m.held = m.addresses() // only now: no step may run with half of it
	return nil
}

// placeAgain gives the step the places that it had. A command that wants more workspace than then gets its own.
func (m *Model) placeAgain(workspaces []int64) (device.Placement, error) {
	for i, bytes := range workspaces {
		if i >= len(m.workspaces) || bytes > m.workspaces[i] {
			return device.Placement{Schedule: m.placement.Schedule}, nil
		}
	}
	return m.placement, nil
}

// keepContents saves what the next step reads, and what a device may overwrite while it prepares one: the state, and inputs that
// fit.
func (m *Model) keepContents(fit func(storage int) bool) (restore func() error, err error) {
	type part struct {
		memory device.Memory
		at     int64
		data   []byte
	}
	var parts []part
	if m.state != nil {
		parts = append(parts, part{m.state.memory, 0, make([]byte, m.state.memory.Bytes())})
	}
	for _, n := range m.recording.Inputs {
		v := &m.recording.Values[n.Value]
		if memory, at := m.locate(v); memory != nil && spanBytes(v) > 0 && fit(v.Storage) {
			parts = append(parts, part{memory, at, make([]byte, spanBytes(v))})
		}
	}
	for _, p := range parts {
		if err := p.memory.Read(p.at, p.data); err != nil {
			return nil, err
		}
	}
	return func() error {
		for _, p := range parts {
			if err := p.memory.Write(p.at, p.data); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// Move gives weights, constants and whatever was computed from them other memory with the same content; a State has a Move of
// its own. The old memory stays until the next Move, filled with bytes 0xff. Steps find out by themselves.
func (m *Model) Move() error {
	if err := m.Wait(); err != nil {
		return err
	}
	return relocate(m.device, &m.fixed, &m.retired)
}

// Move gives the state other memory with the same content. All launched work must be done. Models that use the state find out
// by themselves.
func (s *State) Move(dev device.Device) error { return relocate(dev, &s.memory, &s.retired) }

// relocate moves a block. The one that was left before is freed.
func relocate(dev device.Device, memory, retired *device.Memory) error {
	old := *memory
	fresh, err := dev.Alloc(old.Bytes())
	if err != nil {
		return fmt.Errorf("memory to move to: %w", err)
	}
	if err := copyBlock(fresh, old); err != nil {
		return errors.Join(err, fresh.Free())
	}
	*memory = fresh
	if *retired != nil {
		err = (*retired).Free()
	}
	*retired = old
	return errors.Join(err, old.Fill(0, old.Bytes(), 0xFF))
}

// copyBlock goes through the host: it is seldom asked for.
func copyBlock(to, from device.Memory) error {
	buffer := make([]byte, min(from.Bytes(), 16<<20))
	for at := int64(0); at < from.Bytes(); at += int64(len(buffer)) {
		part := buffer[:min(int64(len(buffer)), from.Bytes()-at)]
		if err := from.Read(at, part); err != nil {
			return err
		}
		if err := to.Write(at, part); err != nil {
			return err
		}
	}
	return nil
}

// Nodes counts the nodes of the captured graph by kind; nil: there is none.
func (m *Model) Nodes() map[string]int64 {
	if !m.Captured() {
		return nil
	}
	return m.program.Nodes()
}

// HasStreams reports whether SwitchStream does something here.
func (m *Model) HasStreams() bool {
	_, ok := m.program.(device.Switcher)
	return ok
}

// SwitchStream goes on on another stream, behind what was launched, without waiting.
func (m *Model) SwitchStream() error {
	if switcher, ok := m.program.(device.Switcher); ok {
		return switcher.SwitchStream()
	}
	return nil
}

// BreakCapture makes the next Capture fail in its midst, for tests. It reports whether the device can do that.
func (m *Model) BreakCapture() bool {
	breaker, ok := m.program.(device.Breaker)
	if ok {
		breaker.BreakCapture()
	}
	return ok
}

// keepPlacement notes what current needs to prepare the step at the same places again.
func (m *Model) keepPlacement(workspaces []int64, placement device.Placement) {
	m.workspaces, m.placement = append([]int64(nil), workspaces...), placement
}
