package samebits

import "fmt"

// step is the argument of Predict.
type step struct {
	Inputs   []int64 `json:"inputs"`    // addresses, in the model's order
	Outputs  []int64 `json:"outputs"`   // addresses; none with View
	OnDevice bool    `json:"on_device"` // addresses are the device's, laid out as in the model; else the host's, contiguous
	Stream   int64   `json:"stream"`    // the caller's, with OnDevice
	View     bool    `json:"view"`      // leave outputs where they are
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
			if len(s.Inputs) != len(m.Inputs) || (!s.View && len(s.Outputs) != len(m.Outputs)) {
				return as(codeInternal, fmt.Errorf("%d inputs and %d outputs for a model with %d and %d", len(s.Inputs), len(s.Outputs), len(m.Inputs), len(m.Outputs)))
			}
			var out stepped
			var err error
			if s.OnDevice {
				out.Warning, err = m.stepOnDevice(&s)
			} else {
				out.Warning, err = m.stepOnHost(&s, j)
			}
			if err != nil {
				return as(codeDevice, err)
			}
			if s.View {
				out.View = o.view()
				for i := range m.Outputs {
					out.Addresses = append(out.Addresses, int64(m.OutputPlace(i).Address))
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

// stepOnHost runs a step from host memory to host memory.
func (m *model) stepOnHost(s *step, j *job) (warning string, err error) {
	if err := m.settle(); err != nil {
		return "", err
	}
	err = onHost(m, j, transfers{
		feed: func() error {
			for i, address := range s.Inputs {
				if address == int64(m.InputPlace(i).Address) {
					continue // it was written in place
				}
				if err := m.Feed(i, at(address, m.Inputs[i].Bytes())); err != nil {
					return err
				}
			}
			m.written = true
			return nil
		},
		launch: func() (err error) {
			warning, err = m.graph.launch(m)
			return err
		},
		fetch: func() error {
			for i, address := range s.Outputs {
				if err := m.Fetch(i, at(address, m.Outputs[i].Bytes())); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return warning, err
}

// stepOnDevice launches a step between arrays of the model's own device, behind what is on the caller's stream.
func (m *model) stepOnDevice(s *step) (warning string, err error) {
	m.launched = true
	err = onDevice(m, uintptr(s.Stream), transfers{
		feed: func() error {
			for i, address := range s.Inputs {
				if err := m.WriteInputAt(i, uintptr(address)); err != nil {
					return err
				}
			}
			m.written = true
			return nil
		},
		launch: func() (err error) {
			warning, err = m.graph.launch(m)
			return err
		},
		fetch: func() error {
			for i, address := range s.Outputs {
				if err := m.ReadOutputAt(i, uintptr(address)); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return warning, err
}

// ViewInputs gives the addresses at which a caller may write inputs in place: a job that gives a stepped.
func ViewInputs(ticket, number int64) (result string, err error) {
	defer finish(&err)
	return run(ticket, func(*job) (result string, err error) {
		err = use(number, func(o *object, m *model) error {
			out := stepped{View: o.view()}
			for i := range m.Inputs {
				out.Addresses = append(out.Addresses, int64(m.InputPlace(i).Address))
			}
			result = asJSON(out)
			return nil
		})
		return result, err
	})
}
