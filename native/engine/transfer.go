package engine

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// WriteInput copies the contiguous elements of input i to the device. A key of the recording must hold what it was
// recorded with.
func (m *Model) WriteInput(i int, data []byte) error {
	if want := m.Inputs[i].Bytes(); int64(len(data)) != want {
		return fmt.Errorf("input %s: %d bytes, want %d", m.Inputs[i].Name, len(data), want)
	}
	if err := m.recording.CheckKey(m.Inputs[i], data); err != nil {
		return err
	}
	v := &m.recording.Values[m.recording.Inputs[i].Value]
	if !v.Contiguous() {
		return m.scatter(v, data)
	}
	memory, at := m.locate(v)
	if memory == nil || len(data) == 0 {
		return nil // nothing reads it
	}
	return memory.Write(at, data)
}

// ZeroInput gives input i zeros, where they lie.
func (m *Model) ZeroInput(i int) error {
	v := &m.recording.Values[m.recording.Inputs[i].Value]
	memory, at := m.locate(v)
	bytes := spanBytes(v)
	if memory == nil || bytes == 0 {
		return nil // nothing reads it
	}
	return memory.Fill(at, bytes, 0)
}

// Accepts reports whether the recording holds for what its keys hold in data, the contents of all inputs.
func (m *Model) Accepts(data [][]byte) error {
	for i, spec := range m.Inputs {
		if err := m.recording.CheckKey(spec, data[i]); err != nil {
			return err
		}
	}
	return nil
}

// Holds is Accepts for who asks of several recordings: it does not say why not.
func (m *Model) Holds(data [][]byte) bool {
	for i, spec := range m.Inputs {
		if !m.recording.HoldsFor(spec, data[i]) {
			return false
		}
	}
	return true
}

// IsKey reports whether input i is a key: it is looked at on the host, and no operation reads it.
func (m *Model) IsKey(i int) bool {
	_, is := m.recording.Key(m.Inputs[i].Name)
	return is
}

// ReadOutput copies the elements of output i to data in logical order.
func (m *Model) ReadOutput(i int, data []byte) error {
	return m.readValue(m.recording.Outputs[i].Value, data)
}

// ReadValue is ReadOutput for any value of a model that keeps all (plan.Options.KeepAll).
func (m *Model) readValue(index int, data []byte) error {
	v := &m.recording.Values[index]
	memory, at := m.locate(v)
	if memory == nil {
		return fmt.Errorf("value %d is nowhere: nothing needs it", index)
	}
	if want := v.Numel() * v.DType.Size(); int64(len(data)) != want {
		return fmt.Errorf("value %d: %d bytes, want %d", index, len(data), want)
	}
	if len(data) == 0 {
		return nil
	}
	if v.Contiguous() {
		return memory.Read(at, data)
	}
	span := m.span(v)
	if err := memory.Read(at, span); err != nil {
		return err
	}
	walk(v, func(logical, physical int64) {
		size := v.DType.Size()
		copy(data[logical*size:][:size], span[physical*size:])
	})
	return nil
}

// scatter writes contiguous elements to an input whose strides are not.
func (m *Model) scatter(v *recording.Value, data []byte) error {
	memory, at := m.locate(v)
	if memory == nil || len(data) == 0 {
		return nil
	}
	span := m.span(v)
	if err := memory.Read(at, span); err != nil { // keep what lies between the elements
		return err
	}
	walk(v, func(logical, physical int64) {
		size := v.DType.Size()
		copy(span[physical*size:][:size], data[logical*size:])
	})
	return memory.Write(at, span)
}

// locate gives the memory and the offset of a value's first element, or nil if its storage has no place.
func (m *Model) locate(v *recording.Value) (device.Memory, int64) {
	area, at, _ := m.plan.Slot(device.Pointer{Storage: v.Storage, Offset: v.Offset * v.DType.Size()})
	return m.memory(area), at
}

// span is a buffer for all bytes from a value's first to its last element.
func (m *Model) span(v *recording.Value) []byte {
	need := spanBytes(v)
	if int64(cap(m.staging)) < need {
		m.staging = make([]byte, need)
	}
	return m.staging[:need]
}

// walk calls f for every element: its number in row-major order, and its distance from the first element.
func walk(v *recording.Value, f func(logical, physical int64)) {
	index := make([]int64, len(v.Sizes))
	physical := int64(0)
	for logical := range tensor.Numel(v.Sizes) {
		f(logical, physical)
		for d := len(index) - 1; d >= 0; d-- {
			index[d]++
			physical += v.Strides[d]
			if index[d] < v.Sizes[d] {
				break
			}
			physical -= index[d] * v.Strides[d]
			index[d] = 0
		}
	}
}
