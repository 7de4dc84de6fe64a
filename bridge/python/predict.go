package samebits

import (
	"fmt"

	"samebits/bridge/replay"
	"samebits/native/engine"
	"samebits/native/predict"
)

// step is the argument of Predict.
type step struct {
	Inputs   []int64 `json:"inputs"`    // addresses, in the model's order
	Outputs  []int64 `json:"outputs"`   // addresses; none with View
	OnDevice bool    `json:"on_device"` // addresses are the device's, laid out as in the model; else the host's, contiguous
	Stream   int64   `json:"stream"`    // the caller's, with OnDevice
	View     bool    `json:"view"`      // leave outputs where they are
	Shapes   []int   `json:"shapes"`    // numbers of the recordings that take such inputs
	Graph    string  `json:"graph"`     // off, on, auto; empty: as the model was loaded
}

// stepped is the result of Predict.
type stepped struct {
	View      int64   `json:"view"`      // for Release
	Addresses []int64 `json:"addresses"` // of outputs, with View
	Warning   string  `json:"warning"`
}

// Predict runs one step. Between host arrays it is a job that is over when the outputs are there. On the device it returns
// at once; what the caller launches next on its stream comes after the step.
func Predict(ticket, number int64, call string) (result string, err error) {
	defer finish(&err)
	var s step
	if err := fromJSON(call, &s); err != nil {
		return "", err
	}
	work := func(j *job) (result string, err error) {
		err = use(number, func(o *object, m *model) error {
			shape, launch, err := m.prepare(&s)
			if err != nil {
				return err
			}
			if !s.View && len(s.Outputs) != len(shape.Outputs) {
				return as(codeInternal, fmt.Errorf("%d outputs for a recording with %d", len(s.Outputs), len(shape.Outputs)))
			}
			if s.OnDevice {
				err = m.stepOnDevice(&s, shape, launch)
			} else {
				err = m.stepOnHost(&s, shape, launch, j)
			}
			if err != nil {
				return as(codeDevice, err)
			}
			out := stepped{Warning: m.graphs.warning()}
			if s.View {
				out.View = o.view()
				for i := range shape.Outputs {
					out.Addresses = append(out.Addresses, int64(shape.OutputPlace(i).Address))
				}
			}
			result = asJSON(out)
			return nil
		})
		return result, err
	}
	if s.OnDevice {
		return work(nil) // it waits for nothing
	}
	return runShort(ticket, number, work)
}

// prepare finds the recording of a step and how it is to run.
func (m *model) prepare(s *step) (shape *predict.Shape, launch func() error, err error) {
	if shape, err = m.choose(s.Shapes, s.Inputs, s.OnDevice); err != nil {
		return nil, nil, err
	}
	if s.Graph == "" {
		return shape, shape.Graph.Launch, nil
	}
	mode, err := replay.ParseMode(s.Graph)
	if err != nil {
		return nil, nil, as(codeInput, err)
	}
	if mode == replay.On && shape.Graph.Refusal != nil {
		return nil, nil, as(codeUncertified, shape.Graph.Refusal)
	}
	return shape, func() error { return shape.Graph.LaunchAs(mode) }, nil
}

// hosted is a recording's model for onHost and onDevice.
type hosted struct {
	*engine.Model
	host bool
}

func (h hosted) onHostDevice() bool { return h.host }

// stepOnHost runs a step from host memory to host memory.
func (m *model) stepOnHost(s *step, shape *predict.Shape, launch func() error, j *job) error {
	if err := m.settle(); err != nil {
		return err
	}
	return onHost(hosted{shape.Model, m.host}, j, transfers{
		feed: func() error {
			for i, address := range s.Inputs {
				if address == int64(shape.InputPlace(i).Address) {
					continue // it was written in place
				}
				if err := shape.Feed(i, at(address, shape.Inputs[i].Bytes())); err != nil {
					return err
				}
			}
			m.written[shape] = true
			return nil
		},
		launch: launch,
		fetch: func() error {
			for i, address := range s.Outputs {
				if err := shape.Fetch(i, at(address, shape.Outputs[i].Bytes())); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// stepOnDevice launches a step between arrays of the model's own device, behind what is on the caller's stream.
func (m *model) stepOnDevice(s *step, shape *predict.Shape, launch func() error) error {
	m.launched[shape] = true
	return onDevice(hosted{shape.Model, m.host}, uintptr(s.Stream), transfers{
		feed: func() error {
			for i, address := range s.Inputs {
				if err := shape.WriteInputAt(i, uintptr(address)); err != nil {
					return err
				}
			}
			m.written[shape] = true
			return nil
		},
		launch: launch,
		fetch: func() error {
			for i, address := range s.Outputs {
				if err := shape.ReadOutputAt(i, uintptr(address)); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// ViewInputs gives the addresses at which a caller may write a recording's inputs in place: a job that gives a stepped.
func ViewInputs(ticket, number, shape int64) (result string, err error) {
	defer finish(&err)
	return run(ticket, func(*job) (result string, err error) {
		err = use(number, func(o *object, m *model) error {
			if shape < 0 || shape >= int64(len(m.Shapes())) {
				return as(codeInternal, fmt.Errorf("no recording %d of %d", shape, len(m.Shapes())))
			}
			s := m.Shapes()[shape]
			if err := m.zeroInputs(s); err != nil {
				return as(codeDevice, err)
			}
			m.written[s] = true // by the caller, from now on
			out := stepped{View: o.view()}
			for i := range s.Inputs {
				out.Addresses = append(out.Addresses, int64(s.InputPlace(i).Address))
			}
			result = asJSON(out)
			return nil
		})
		return result, err
	})
}
