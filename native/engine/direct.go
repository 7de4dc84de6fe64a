package engine

import (
	"fmt"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/native/device"
)

// Place is where an input or output lies on the device for as long as the model lives. It is empty, with address 0, if
// nothing reads the input.
type Place struct {
	Address uintptr
	Strides []int64 // in elements
	Bytes   int64   // from the first element to the end of the last, with whatever lies between
}

// InputPlace is where input i lies. It keeps its content unless an operation of the step writes to it.
func (m *Model) InputPlace(i int) Place { return m.place(m.recording.Inputs[i].Value) }

// OutputPlace is where output i lies. The next step overwrites it.
func (m *Model) OutputPlace(i int) Place { return m.place(m.recording.Outputs[i].Value) }

func (m *Model) place(value int) Place {
	v := &m.recording.Values[value]
	p := Place{Strides: v.Strides, Bytes: spanBytes(v)}
	if memory, at := m.locate(v); memory != nil && p.Bytes > 0 {
		p.Address = memory.Address() + uintptr(at)
	}
	return p
}

func spanBytes(v *recording.Value) int64 {
	if v.Numel() == 0 {
		return 0
	}
	last := int64(0)
	for d, size := range v.Sizes {
		last += (size - 1) * v.Strides[d]
	}
	return (last + 1) * v.DType.Size()
}

// WriteInputAt copies InputPlace(i).Bytes from an address of the model's own device to input i, in order with what the
// model launches, without waiting. The elements lie there as they do in the input's place. A key of the recording cannot
// lie on the device: the host looks at it.
func (m *Model) WriteInputAt(i int, from uintptr) error {
	if m.IsKey(i) {
		return diag.New("KEY_ON_DEVICE", "inputs/"+m.Inputs[i].Name, "the host must see what it holds: hand it over in host memory")
	}
	return m.copyDirect("input "+m.Inputs[i].Name, m.InputPlace(i), from, true)
}

// ReadOutputAt copies OutputPlace(i).Bytes from output i to an address of the model's own device, in order with what the
// model launches, without waiting.
func (m *Model) ReadOutputAt(i int, to uintptr) error {
	return m.copyDirect("output "+m.Outputs[i].Name, m.OutputPlace(i), to, false)
}

func (m *Model) copyDirect(what string, p Place, other uintptr, in bool) error {
	direct, err := m.direct()
	if err != nil || p.Address == 0 || p.Address == other {
		return err
	}
	to, from := other, p.Address
	if in {
		to, from = from, to
	}
	if err := direct.CopyAsync(to, from, p.Bytes); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// After makes the model's next launches and copies wait for what was launched on a stream of the caller's.
func (m *Model) After(stream uintptr) error {
	direct, err := m.direct()
	if err != nil {
		return err
	}
	return direct.After(stream)
}

// Before makes a stream of the caller's wait for what the model has launched.
func (m *Model) Before(stream uintptr) error {
	direct, err := m.direct()
	if err != nil {
		return err
	}
	return direct.Before(stream)
}

func (m *Model) direct() (device.Direct, error) {
	direct, ok := m.program.(device.Direct)
	if !ok {
		return nil, fmt.Errorf("device %s has no memory that a caller could share", m.device.Name())
	}
	return direct, nil
}
