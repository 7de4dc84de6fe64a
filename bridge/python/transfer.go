package samebits

import "errors"

// transfers are the parts of a step: inputs to the device, the launch, outputs from it.
type transfers struct {
	feed, launch, fetch func() error
}

// engineModel is what a step needs of engine.Model.
type engineModel interface {
	Wait() error
	After(stream uintptr) error
	Before(stream uintptr) error
	onHostDevice() bool
}

// onHost runs a step between arrays of the host. It is over when it returns.
func onHost(m engineModel, j *job, t transfers) error {
	if m.onHostDevice() {
		// Steps may take long, and copies are done when they return: only these hold the caller's memory.
		if err := j.touch(t.feed); err != nil {
			return err
		}
		if err := errors.Join(t.launch(), m.Wait()); err != nil {
			return err
		}
		return j.touch(t.fetch)
	}
	// Copies may still be under way until Wait, and a step is short.
	return j.touch(func() error {
		err := t.feed()
		if err == nil {
			err = t.launch()
		}
		if err == nil {
			err = t.fetch()
		}
		return errors.Join(err, m.Wait())
	})
}

// onDevice runs a step between arrays of the model's own device, after what is on the caller's stream and before what comes
// there next. It waits for nothing, unless the step fails: the caller's memory is used no more then.
func onDevice(m engineModel, stream uintptr, t transfers) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Wait())
		}
	}()
	if err := m.After(stream); err != nil {
		return err
	}
	for _, part := range []func() error{t.feed, t.launch, t.fetch} {
		if err := part(); err != nil {
			return err
		}
	}
	return m.Before(stream)
}
