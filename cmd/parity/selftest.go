package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"samebits/bridge/atomicfile"
	"samebits/parity/gate"
	"samebits/parity/hazard"
	"samebits/parity/launch"
	"samebits/parity/matrix"
	"samebits/parity/result"
	"samebits/parity/suite"
)

type selftestFlags struct {
	cases, sections []string
	device, output  string
	json            bool
	jobs            int
}

func (a *app) selftest() *cobra.Command {
	var f selftestFlags
	c := &cobra.Command{
		Use:   "selftest",
		Short: "Try the suite on faults that are known, beside healthy twins",
		Long: `selftest verifies small families that were made with one fault each, of the kinds that public reports of captured graphs
tell of, and beside each its twin without the fault. The suite must refuse every fault for the right reason, and certify
every twin: exact on a GPU, consistent on the host. docs/selftest.md has the table of cases, and says of those that are not
planted why.

Some faults are those of real graphs: they need a GPU, and are left out on the host.

Exit status: 0 if every fault was found and every twin certified, 1 if not, 2 if called wrongly.`,
		Example: `  parity selftest
  parity selftest --case C16 --case C97
  parity selftest --section A --device host --json
  parity verify c16-switched-branch           # one of them like any other family
  parity verify c16-switched-branch@twin`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSelftest(cmd.Context(), &f) },
	}
	c.Flags().StringSliceVar(&f.cases, "case", nil, "cases by their ids, as C16 (default: all)")
	c.Flags().StringSliceVar(&f.sections, "section", nil, "cases of a section, A to F")
	c.Flags().StringVar(&f.device, "device", "auto", "cuda:N, host, or auto: the first GPU if there is one")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object a case, and nothing else on stdout")
	c.Flags().StringVar(&f.output, "output", "", "file for what was seen: a line for the environment, then a line a fault")
	c.Flags().IntVar(&f.jobs, "jobs", 0, "families in work at the same time (default: by cores)")
	return c
}

func (a *app) runSelftest(ctx context.Context, f *selftestFlags) error {
	chosen, unknown := hazard.Choose(f.cases, f.sections)
	if len(unknown) > 0 {
		return usagef("there is no case or section %s; docs/selftest.md lists them", strings.Join(unknown, ", "))
	}
	if f.jobs < 0 {
		return usagef("--jobs is a positive number")
	}
	if err := checkFile("--output", f.output); err != nil {
		return err
	}
	b, err := a.start()
	if err != nil {
		return err
	}
	defer b.Close()
	of := cellFlags{device: f.device}
	why, err := of.chooseDevice(ctx, b)
	if err != nil {
		return err
	}
	if why != "" {
		fmt.Fprintf(a.err, "%s; on the device host (see parity doctor)\n", why)
	}
	t := newTrials(chosen, of.device)
	t.report = func(*trialOutcome) error { return nil }
	if f.json {
		t.report = func(o *trialOutcome) error { return sayTrialJSON(a.out, o) }
	}
	if a.terminal && !a.plugins.verbose {
		t.progress = a.err
	}
	if err := t.run(ctx, b, f.jobs); err != nil {
		return err
	}
	wrong := 0
	for _, o := range t.outcomes {
		if !o.ok() {
			wrong++
		}
	}
	if !f.json {
		if err := t.write(a.out); err != nil {
			return err
		}
	}
	if f.output != "" {
		if err := atomicfile.Write(f.output, t.keep); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return statusError(result.ExitDiffers)
	}
	return nil
}

// trialOutcome is a planted family with its twin, or a case that is left out.
type trialOutcome struct {
	of      hazard.Case
	plant   *hazard.Plant // nil: there is none
	onGPU   bool
	skipped bool // it needs a GPU, and there is none

	faulty, twin *result.Result // nil: it is not there yet
}

func (o *trialOutcome) done() bool {
	return o.plant == nil || o.skipped || o.faulty != nil && o.twin != nil
}

func (o *trialOutcome) found() bool { return o.plant.Found(*o.faulty, o.onGPU) }

func (o *trialOutcome) healthy() bool { return hazard.Healthy(*o.twin, o.onGPU) }

func (o *trialOutcome) ok() bool {
	return o.plant == nil || o.skipped || o.done() && o.found() && o.healthy()
}

// trials are the planted families of some cases, on one device.
type trials struct {
	device   string
	outcomes []*trialOutcome
	cells    []suite.Cell
	targets  []func(*result.Result) // where the result of each cell goes
	report   func(*trialOutcome) error
	progress io.Writer // nil: nobody looks

	mu       sync.Mutex
	finished int
	reported int
}

func newTrials(cases []hazard.Case, device string) *trials {
	t := &trials{device: device}
	onGPU := device != suite.HostDevice
	for _, c := range cases {
		if c.LeftOut != "" {
			t.outcomes = append(t.outcomes, &trialOutcome{of: c})
		}
		for i := range c.Plants {
			p := &c.Plants[i]
			o := &trialOutcome{of: c, plant: p, onGPU: onGPU, skipped: p.NeedsGPU && !onGPU}
			t.outcomes = append(t.outcomes, o)
			if o.skipped {
				continue
			}
			precision := p.Precision
			if precision == "" {
				precision = "fp32"
			}
			cell := suite.Cell{Family: p.Family, Task: hazard.Task, Precision: precision, Profile: "exact-1", Device: device, Mode: gate.Predict}
			t.add(cell, func(r *result.Result) { o.faulty = r })
			cell.Family = p.Twin()
			t.add(cell, func(r *result.Result) { o.twin = r })
		}
	}
	return t
}

func (t *trials) add(cell suite.Cell, target func(*result.Result)) {
	t.cells, t.targets = append(t.cells, cell), append(t.targets, target)
}

// forks is a backend whose processes may all be forks of one: that all of a verification share nothing is no matter here, and
// importing PyTorch again would take most of the time.
type forks struct{ suite.Starter }

// run verifies all of them. Cases are reported in the order of the table, each as soon as those before it are there.
func (t *trials) run(ctx context.Context, b backend, jobs int) error {
	if jobs == 0 {
		jobs = max(runtime.NumCPU(), 1)
		if t.device != suite.HostDevice {
			jobs = min(max(jobs/2, 1), 8)
		}
	}
	b.Tune(launch.Tuning{Threads: 1, Fork: true, Warn: func(error) {}})
	s := suite.Suite{Start: forks{b}, Timing: suite.Timing{Min: 1, Max: 1}}
	verify := func(ctx context.Context, number int) result.Result { return s.Verify(ctx, t.cells[number]) }
	done := func(number int, r result.Result) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.targets[number](&r)
		t.finished++
		if t.progress != nil {
			fmt.Fprintf(t.progress, "\r%d of %d", t.finished, len(t.cells))
		}
		return t.reportReady()
	}
	if err := t.reportReady(); err != nil {
		return err
	}
	err := matrix.Run(ctx, len(t.cells), jobs, verify, done)
	if t.progress != nil {
		fmt.Fprint(t.progress, "\r\x1b[K")
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
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

// trialLine is what --json prints of a case.
type trialLine struct {
	Case    string         `json:"case"`
	Section string         `json:"section"`
	Title   string         `json:"title"`
	Threads []string       `json:"threads"`
	Planted bool           `json:"planted"`
	Family  string         `json:"family,omitempty"`
	Verdict result.Verdict `json:"verdict"`
	Reason  gate.Reason    `json:"reason"`
	Wants   []gate.Reason  `json:"wants,omitempty"`
	Summary string         `json:"summary,omitempty"`
	Twin    result.Verdict `json:"twin,omitempty"`
	OK      bool           `json:"ok"`
	Skipped string         `json:"skipped,omitempty"` // why nothing ran
}

func sayTrialJSON(w io.Writer, o *trialOutcome) error {
	line := trialLine{Case: o.of.ID, Section: o.of.Section, Title: o.of.Title, Threads: o.of.URLs(), Planted: o.plant != nil, OK: o.ok(), Skipped: o.of.LeftOut}
	if o.plant != nil {
		line.Family, line.Wants = o.plant.Family, o.plant.Wants(o.onGPU)
	}
	switch {
	case o.skipped:
		line.Skipped = "it needs a GPU"
	case o.plant != nil:
		line.Verdict, line.Reason, line.Summary, line.Twin = o.faulty.Verdict, o.faulty.Reason, o.faulty.Summary, o.twin.Verdict
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(line)
}

// keep writes what was seen: where, and of each fault what the suite said.
func (t *trials) keep(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	environment := map[string]string{}
	for _, o := range t.outcomes {
		if o.twin == nil {
			continue
		}
		for key, value := range o.twin.Environment {
			if key != "gpu.uuid" && !strings.HasSuffix(key, ".path") {
				environment[key] = value
			}
		}
	}
	if err := e.Encode(map[string]any{"environment": environment}); err != nil {
		return err
	}
	for _, o := range t.outcomes {
		if o.plant == nil || o.skipped {
			continue
		}
		err := e.Encode(struct {
			Case    string         `json:"case"`
			Family  string         `json:"family"`
			Verdict result.Verdict `json:"verdict"`
			Reason  gate.Reason    `json:"reason"`
			Summary string         `json:"summary"`
			Twin    result.Verdict `json:"twin"`
			OK      bool           `json:"ok"`
		}{o.of.ID, o.plant.Family, o.faulty.Verdict, o.faulty.Reason, o.faulty.Summary, o.twin.Verdict, o.ok()})
		if err != nil {
			return err
		}
	}
	return nil
}

// write prints the table, what is wrong, and a summary.
func (t *trials) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CASE\tFAMILY\tVERDICT\tREASON\tTWIN\tOK")
	var ran, good, skipped int
	var left []string
	for _, o := range t.outcomes {
		switch {
		case o.plant == nil:
			left = append(left, fmt.Sprintf("%-5s %s", o.of.ID, o.of.LeftOut))
		case o.skipped:
			skipped++
			fmt.Fprintf(table, "%s\t%s\tneeds a GPU\t\t\t\n", o.of.ID, o.plant.Family)
		default:
			ran++
			word := "no"
			if o.ok() {
				word = "yes"
				good++
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", o.of.ID, o.plant.Family, o.faulty.Verdict, o.faulty.Reason, o.twin.Verdict, word)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(left) > 0 {
		fmt.Fprintf(w, "\nleft out:\n%s\n", strings.Join(left, "\n"))
	}
	for _, o := range t.outcomes {
		o.complain(w)
	}
	_, err := fmt.Fprintf(w, "\n%d of %d faults on %s were found, and their twins certified; %d faults need a GPU, %d cases are left out\n", good, ran, t.device, skipped, len(left))
	return err
}

// complain says what is wrong with one, and how to see it again.
func (o *trialOutcome) complain(w io.Writer) {
	if o.ok() {
		return
	}
	if !o.found() {
		fmt.Fprintf(w, "\n%s %s: not %s for %v\n  %s %s: %s\n  %s\n", o.of.ID, o.plant.Family, o.plant.Verdict, o.plant.Wants(o.onGPU),
			o.faulty.Verdict, o.faulty.Reason, o.faulty.Summary, o.faulty.Reproduce)
	}
	if !o.healthy() {
		fmt.Fprintf(w, "\n%s %s: not certified\n  %s %s: %s\n  %s\n", o.of.ID, o.plant.Twin(), o.twin.Verdict, o.twin.Reason, o.twin.Summary, o.twin.Reproduce)
	}
}
