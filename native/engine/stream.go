package engine

import (
	"samebits/bridge/recording"
	"samebits/native/device"
)

// Feed is WriteInput for the steps that are launched after it, in order with those before. Where the device can, it does
// not wait: the data must stay as it is until Wait. A key of the recording must hold what it was recorded with.
func (m *Model) Feed(i int, data []byte) error {
	if err := m.recording.CheckKey(m.Inputs[i], data); err != nil {
		return err
	}
	v := &m.recording.Values[m.recording.Inputs[i].Value]
	transfers, memory, at := m.streamed(v)
	if transfers == nil || !v.Contiguous() || int64(len(data)) != v.Numel()*v.DType.Size() {
		if err := m.Wait(); err != nil { // what runs may still read the input
			return err
		}
		return m.WriteInput(i, data)
	}
	return transfers.WriteAsync(memory, at, data)
}

// Fetch is ReadOutput of the step that was launched last. Where the device can, it does not wait: the data must not be
// read until Wait.
func (m *Model) Fetch(i int, data []byte) error {
	v := &m.recording.Values[m.recording.Outputs[i].Value]
	transfers, memory, at := m.streamed(v)
	switch {
	case transfers == nil || int64(len(data)) != v.Numel()*v.DType.Size():
		if err := m.Wait(); err != nil {
			return err
		}
		return m.ReadOutput(i, data)
	case !v.Contiguous():
		return m.fetchGathered(i, v, transfers, memory, at, data)
	}
	return transfers.ReadAsync(memory, at, data)
}

// streamed gives what copies a value on the program's stream, and its place; nil if nothing does. The other way knows what
// to say then.
func (m *Model) streamed(v *recording.Value) (device.Transfers, device.Memory, int64) {
	transfers, ok := m.program.(device.Transfers)
	memory, at := m.locate(v)
	if !ok || memory == nil || v.Numel() == 0 {
		return nil, nil, 0
	}
	return transfers, memory, at
}

// FeedState is State.Write for the steps that are launched after it, as Feed is for inputs.
func (m *Model) FeedState(name string, data []byte) error {
	at, err := m.state.find(name, data)
	if err != nil {
		return err
	}
	if transfers, ok := m.program.(device.Transfers); ok {
		return transfers.WriteAsync(m.state.memory, at, data)
	}
	if err := m.Wait(); err != nil {
		return err
	}
	return m.state.memory.Write(at, data)
}

// FetchState is State.Read after the step that was launched last, as Fetch is for outputs.
func (m *Model) FetchState(name string, data []byte) error {
	at, err := m.state.find(name, data)
	if err != nil {
		return err
	}
	if transfers, ok := m.program.(device.Transfers); ok {
		return transfers.ReadAsync(m.state.memory, at, data)
	}
	if err := m.Wait(); err != nil {
		return err
	}
	return m.state.memory.Read(at, data)
}
