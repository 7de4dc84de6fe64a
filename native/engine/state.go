package engine

import (
	"errors"
	"fmt"

	"samebits/bridge/diag"
	"samebits/native/device"
	"samebits/native/plan"
)

// State is device memory that outlives steps and is shared by models: parameters, buffers, momentum, averages. Its layout
// is complete once the first model that uses it was loaded.
type State struct {
	Layout  plan.State
	memory  device.Memory
	retired device.Memory // what Move left
}

// ensure takes memory for the layout at its first use; later models must fit into it.
func (s *State) ensure(dev device.Device) error {
	if s.memory == nil {
		var err error
		if s.memory, err = dev.Alloc(max(s.Layout.Bytes, plan.Alignment)); err != nil {
			return fmt.Errorf("memory for state: %w", err)
		}
		return nil
	}
	if s.Layout.Bytes > s.memory.Bytes() {
		return diag.New("STATE_SIZE", "storages", "this recording has parameters or buffers that the first one had not")
	}
	return nil
}

// Bytes is the size of the state's memory.
func (s *State) Bytes() int64 {
	if s.memory == nil {
		return 0
	}
	return s.memory.Bytes()
}

// Read copies the content of a name. All launched work must be done.
func (s *State) Read(name string, data []byte) error {
	offset, err := s.find(name, data)
	if err != nil || len(data) == 0 {
		return err
	}
	return s.memory.Read(offset, data)
}

// Write sets the content of a name. All launched work must be done.
func (s *State) Write(name string, data []byte) error {
	offset, err := s.find(name, data)
	if err != nil || len(data) == 0 {
		return err
	}
	return s.memory.Write(offset, data)
}

func (s *State) find(name string, data []byte) (int64, error) {
	offset, bytes, ok := s.Layout.Find(name)
	if !ok {
		return 0, fmt.Errorf("the state has no %q", name)
	}
	if int64(len(data)) != bytes {
		return 0, fmt.Errorf("state %s: %d bytes, want %d", name, len(data), bytes)
	}
	return offset, nil
}

// CopyFrom takes over another state's content where the names are the same.
func (s *State) CopyFrom(other *State) error {
	for _, name := range s.Layout.Names() {
		_, bytes, _ := s.Layout.Find(name)
		if _, have, ok := other.Layout.Find(name); !ok || have != bytes {
			continue
		}
		data := make([]byte, bytes)
		if err := other.Read(name, data); err != nil {
			return err
		}
		if err := s.Write(name, data); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the state's memory. No model that uses it may be open.
func (s *State) Close() error {
	if s.memory == nil {
		return nil
	}
	err := s.memory.Free()
	if s.retired != nil {
		err = errors.Join(err, s.retired.Free())
	}
	s.memory, s.retired = nil, nil
	return err
}
