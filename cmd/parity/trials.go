package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

	"samebits/parity/gate"
	"samebits/parity/hazard"
	"samebits/parity/launch"
	"samebits/parity/matrix"
	"samebits/parity/result"
	"samebits/parity/suite"
)

// trialOutcome is a planted family with its twin, or a case that is left out.
type trialOutcome struct {
	of      hazard.Case
	plant   *hazard.Plant // nil: there is none
	onGPU   bool
	skipped bool // it needs a GPU, and there is none

	faulty, twin *result.Result // nil: it is not there yet
}

// runs reports whether there is something to verify.
func (o *trialOutcome) runs() bool { return o.plant != nil && !o.skipped }

func (o *trialOutcome) done() bool { return !o.runs() || o.faulty != nil && o.twin != nil }

func (o *trialOutcome) found() bool { return o.plant.Found(*o.faulty, o.onGPU) }

func (o *trialOutcome) healthy() bool { return hazard.Healthy(*o.twin, o.onGPU) }

func (o *trialOutcome) ok() bool { return !o.runs() || o.done() && o.found() && o.healthy() }

// cells are those of the family with the fault, and of its twin.
func (o *trialOutcome) cells(device string) (faulty, twin suite.Cell) {
	precision := o.plant.Precision
	if precision == "" {
		precision = "fp32"
	}
	faulty = suite.Cell{Family: o.plant.Family, Task: hazard.Task, Precision: precision, Profile: "exact-1", Device: device, Mode: gate.Predict}
	twin = faulty
	twin.Family = o.plant.Twin()
	return faulty, twin
}

// trials are the planted families of some cases, on one device.
type trials struct {
	device   string
	suite    suite.Suite
	outcomes []*trialOutcome
	report   func(*trialOutcome) error
	progress io.Writer // nil: nobody looks

	file   string              // for what was seen; empty: for nobody
	before seen                // what it has of an earlier run
	listed map[string]seenLine // of it, the lines of families, whether they are asked for now or not

	mu       sync.Mutex
	reported int
}

// forks is a backend whose processes may all be forks of one: that all of a verification share nothing is no matter here, and
// importing PyTorch again would take most of the time.
type forks struct{ suite.Starter }

func newTrials(b backend, cases []hazard.Case, device string) (*trials, error) {
	engine, err := b.EngineBuild()
	if err != nil {
		return nil, err
	}
	programs, err := programsOf(b)
	if err != nil {
		return nil, err
	}
	t := &trials{device: device}
	t.suite = suite.Suite{Start: forks{b}, Timing: suite.Timing{Min: 1, Max: 1}, EngineBuild: engine, Programs: programs}
	onGPU := device != suite.HostDevice
	for _, c := range cases {
		if c.LeftOut != "" {
			t.outcomes = append(t.outcomes, &trialOutcome{of: c})
		}
		for i := range c.Plants {
			p := &c.Plants[i]
			t.outcomes = append(t.outcomes, &trialOutcome{of: c, plant: p, onGPU: onGPU, skipped: p.NeedsGPU && !onGPU})
		}
	}
	return t, nil
}

// count gives the number of faults that are to be found, and how many are through.
func (t *trials) count() (finished, faults int) {
	for _, o := range t.outcomes {
		if !o.runs() {
			continue
		}
		faults++
		if o.done() {
			finished++
		}
	}
	return finished, faults
}

// run verifies what is not finished. Cases are reported in the order of the table, each as soon as those before it are there; where
// the context ends, those that are not finished among them at the end.
func (t *trials) run(ctx context.Context, b backend, jobs int) error {
	if jobs == 0 {
		jobs = max(runtime.NumCPU(), 1)
		if t.device != suite.HostDevice {
			jobs = min(max(jobs/2, 1), 8)
		}
	}
	b.Tune(launch.Tuning{Threads: 1, Fork: true, Warn: func(error) {}})
	type half struct { // of an outcome
		cell   suite.Cell
		of     *trialOutcome
		result **result.Result
	}
	var todo []half
	for _, o := range t.outcomes {
		if o.done() {
			continue
		}
		faulty, twin := o.cells(t.device)
		todo = append(todo, half{faulty, o, &o.faulty}, half{twin, o, &o.twin})
	}
	verified := 0
	verify := func(ctx context.Context, number int) result.Result { return t.suite.Verify(ctx, todo[number].cell) }
	done := func(number int, r result.Result) error {
		if r.Reason == suite.Interrupted {
			return nil
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		h := todo[number]
		*h.result = &r
		if h.of.done() {
			t.hide()
			if err := t.keep(); err != nil {
				return err
			}
			if err := t.reportReady(); err != nil {
				return err
			}
		}
		verified++
		if t.progress != nil {
			fmt.Fprintf(t.progress, "\r%d of %d", verified, len(todo))
		}
		return nil
	}
	if err := t.reportReady(); err != nil {
		return err
	}
	err := matrix.Run(ctx, len(todo), jobs, verify, done)
	t.hide()
	if err != nil {
		return err
	}
	if finished, faults := t.count(); finished == faults {
		err = t.keep() // also where nothing was to do
	}
	for ; err == nil && t.reported < len(t.outcomes); t.reported++ {
		err = t.report(t.outcomes[t.reported])
	}
	return err
}

// hide takes the progress from the terminal's line.
func (t *trials) hide() {
	if t.progress != nil {
		fmt.Fprint(t.progress, "\r\x1b[K")
	}
}

func (t *trials) reportReady() error {
	for t.reported < len(t.outcomes) && t.outcomes[t.reported].done() {
		t.reported++
		if err := t.report(t.outcomes[t.reported-1]); err != nil {
			return err
		}
	}
	return nil
}
