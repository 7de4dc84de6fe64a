package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"samebits/parity/hazard"
	"samebits/parity/result"
)

type selftestFlags struct {
	cases, sections []string
	device, output  string
	json, resume    bool
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

Lines come in the order of the table, each as soon as those before it are there; --output is written anew whenever a case is
finished. An interrupted run says what is finished and what is not, and --resume goes on: cases stay out that are finished in
--output, by the same programs on the same kind of machine. What broke is tried again.

Exit status: 0 if every fault was found and every twin certified, 1 if not, 2 if called wrongly, 3 if interrupted.`,
		Example: `  parity selftest
  parity selftest --case C16 --case C97
  parity selftest --section A --device host --json
  parity selftest --device cuda:0 --output seen.jsonl --resume
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
	c.Flags().BoolVar(&f.resume, "resume", false, "leave out cases that are finished in --output already")
	c.Flags().IntVar(&f.jobs, "jobs", 0, "families in work at the same time (default: by cores)")
	return c
}

func (a *app) runSelftest(ctx context.Context, f *selftestFlags) error {
	chosen, unknown := hazard.Choose(f.cases, f.sections)
	switch {
	case len(unknown) > 0:
		return usagef("there is no case or section %s; docs/selftest.md lists them", strings.Join(unknown, ", "))
	case f.resume && f.output == "":
		return usagef("--resume needs --output, where the finished cases are")
	}
	if err := checkBounds(bounded{"jobs", f.jobs, 1, mostJobs, false}); err != nil {
		return err
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
	t, err := newTrials(b, chosen, of.device)
	if err != nil {
		return err
	}
	t.file = f.output
	if f.resume {
		if err := a.resumeTrials(ctx, b, t); err != nil {
			return err
		}
	}
	if a.terminal && !a.plugins.verbose {
		t.progress = a.err
	}
	table := newTrialTable(a.out, t)
	t.report = table.row
	if f.json {
		t.report = func(o *trialOutcome) error { return sayTrialJSON(a.out, o) }
	} else if err := table.head(); err != nil {
		return err
	}
	if err := t.run(ctx, b, f.jobs); err != nil {
		return err
	}
	if !f.json {
		if err := table.end(); err != nil {
			return err
		}
	}
	return a.trialStatus(t)
}

// resumeTrials takes what is finished in the file of an earlier run, if the same programs made it.
func (a *app) resumeTrials(ctx context.Context, b backend, t *trials) error {
	device, err := namedDevice(ctx, b, t.device)
	if err != nil {
		return err
	}
	info, err := b.Inspect(ctx)
	if err != nil {
		return err
	}
	if why := t.resume(hereOn(device, info, &t.suite)); why != "" {
		fmt.Fprintf(a.err, "not reused: %s\n", why)
	}
	finished, faults := t.count()
	fmt.Fprintf(a.err, "%d of %d faults are finished already\n", finished, faults)
	return nil
}

// trialStatus ends the command.
func (a *app) trialStatus(t *trials) error {
	if finished, faults := t.count(); finished < faults {
		fmt.Fprintf(a.err, "interrupted; %d of %d faults are finished\n", finished, faults)
		return statusError(result.ExitInfrastructure)
	}
	for _, o := range t.outcomes {
		if !o.ok() {
			return statusError(result.ExitDiffers)
		}
	}
	return nil
}
