package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"samebits/parity/gate"
	"samebits/parity/report"
	"samebits/parity/result"
	"samebits/parity/suite"
)

type verifyFlags struct {
	cellFlags
	json         bool
	keep, output string
}

func (a *app) verify() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify FAMILY...",
		Short: "Verify families: run all arms and compare their bits",
		Long: `verify records one step of each family in eager PyTorch, runs every arm in a fresh process on three inputs (noise, its
scaled and shifted twin, and a photograph), and judges the gates that docs/gates.md explains. For each family and precision
it prints one verdict:

  exact        all arms give the same bits on a GPU
  consistent   on the host: native's graph gives native's eager bits, and native's error against double precision is at most
               four times PyTorch's own; only a GPU can prove a family exact
  differs      an arm gives other bits; the first operation that differs is named, with the command that shows it again
  eager-noise  eager PyTorch does not reproduce itself, so no arm is blamed
  refused      the cell cannot be judged, for the reason given
  broken       a plugin is missing, crashed or hung, or the run was interrupted

With --mode train it records forward, loss and backward of a training step, and runs every arm through a training run with
SGD, momentum and a moving average of weights, with another batch at every step. After each step loss, gradients,
parameters, buffers, momentum and average must have the same bits. The run is stopped and resumed from a checkpoint, its
hyperparameters are changed from step to step, and a short batch is put among full ones.

Results that are finished stay, also if the run is interrupted.`,
		Example: `  parity verify resnet yolo9
  parity verify resnet --size 18 --imgsz 640 --precision fp32,bf16 --device cuda:0
  parity verify yolo9 --size t --imgsz 320 --batch 4 --json --output results
  parity verify resnet --mode train --imgsz 224 --batch 16 --steps 20 --precision fp32,bf16
  parity verify yolo9 --keep evidence      # recording, weights, inputs and outputs; b3sum of each gives its digest`,
		Args:              cobra.MinimumNArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runVerify(cmd.Context(), &f, args) },
		ValidArgsFunction: a.completeFamilies,
	}
	f.add(c)
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object a cell (docs/results.md), and nothing else on stdout")
	c.Flags().StringVar(&f.keep, "keep", "", "folder for the recording, weights, inputs and outputs of every cell")
	c.Flags().StringVar(&f.output, "output", "", "folder for one JSON file a finished cell")
	return c
}

func (a *app) runVerify(ctx context.Context, f *verifyFlags, families []string) error {
	b, err := a.start()
	if err != nil {
		return err
	}
	if _, err := f.cells(families); err != nil { // before anything starts
		return err
	}
	why, err := f.chooseDevice(ctx, b)
	if err != nil {
		return err
	}
	if why != "" {
		fmt.Fprintf(a.err, "%s; verifying on the device host (see parity doctor)\n", why)
	}
	cells, err := f.cells(families)
	if err != nil {
		return err
	}
	for _, dir := range []string{f.output, f.keep} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return usagef("%w", err)
		}
	}
	s := &suite.Suite{Start: b, Timing: suite.DefaultTiming(), Keep: f.keep}
	build := b.EngineBuild
	if f.training.mode == gate.Train {
		build = b.TrainerBuild
	}
	if s.EngineBuild, err = build(); err != nil {
		return err
	}
	progress := report.NewProgress(a.err, a.terminal && !a.plugins.verbose, len(cells))
	s.Progress = progress.Show
	var results []result.Result
	for i, cell := range cells {
		r := s.Verify(ctx, cell)
		progress.Done()
		results = append(results, r)
		if err := a.say(f, r); err != nil {
			return err
		}
		if ctx.Err() != nil {
			fmt.Fprintf(a.err, "interrupted; %d of %d cells are finished\n", i, len(cells))
			break
		}
	}
	if status := result.Exit(results); status != result.ExitExact {
		return statusError(status)
	}
	return nil
}

// say prints a result, and keeps it if it says something of its cell.
func (a *app) say(f *verifyFlags, r result.Result) error {
	if f.output != "" && r.Judged() {
		path, err := r.Keep(f.output)
		if err != nil {
			return err
		}
		if !f.json {
			defer fmt.Fprintf(a.out, "  kept as %s\n", path)
		}
	}
	if f.json {
		e := json.NewEncoder(a.out)
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	return report.Result(a.out, r)
}

// completeFamilies gives the families' names to a shell.
func (a *app) completeFamilies(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	b, err := a.start()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	entries, err := b.Families(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, e := range entries {
		if len(names) == 0 || names[len(names)-1] != e.Family {
			names = append(names, e.Family)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
