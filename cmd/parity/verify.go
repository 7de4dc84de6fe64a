package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"samebits/parity/launch"
	"samebits/parity/report"
	"samebits/parity/result"
)

type verifyFlags struct {
	cellFlags
	json         bool
	keep, output string

	all     bool
	groups  []string
	jobs    int
	resume  bool
	exactly bool // cells are asked for with all that the table knows of them
	matrix  []string
	calls   string
	ci      ciFlags
	gates   []string // judged alone
	html    string
	repeat  int
}

func (a *app) verify() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify FAMILY...|--all",
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

A FAMILY may be a pattern (yolo*, or with the task segment/*), which stands for all cells of the parity list that match;
--all stands for the whole list, --task for those of some tasks. Several cells are prepared at the same time (--jobs), but
while an arm is measured nobody else uses the device. Each finished cell is printed as a whole and, with --output, written
at once; --resume leaves out what is finished there already by the same programs on the same kind of machine. A cell that
breaks does not stop the others, and none is tried again by itself. In the end comes a table of all cells, which --matrix
writes to files, too.

--gate judges some gates of mode predict alone: only the arms start that they need, nothing is measured, and the verdict is

  passed       the gates that were asked for hold; nothing is said of the others, and nothing can be certified

--repeat N verifies one cell N times, each time in fresh processes, measures no times, and ends in a table: what verdict each
repetition has, and what of verdict, gates and digests is otherwise than in the first. Any difference gives a status that is
not 0. With --output each repetition has a folder of its own; --resume takes those that are finished there, runs the others,
and compares all. An interrupted run compares what is finished.

Results that are finished stay, also if the run is interrupted.`,
		Example: `  parity verify resnet yolo9
  parity verify resnet --size 18 --imgsz 640 --precision fp32,bf16 --device cuda:0
  parity verify yolo9 --size t --imgsz 320 --batch 4 --json --output results
  parity verify resnet --mode train --imgsz 224 --batch 16 --steps 20 --precision fp32,bf16
  parity verify --all --precision fp32,bf16 --output results --resume --matrix MATRIX.md
  parity verify 'yolo*' 'segment/*' --imgsz native --batch 3
  parity verify --all --task classify --junit parity.xml --sarif parity.sarif --jsonl parity.jsonl
  parity verify --all --precision fp32,bf16 --output results --html results.html
  parity verify yolo9 --gate STREAM,MOVE   # these gates alone
  parity verify yolo9 --size t --precision bf16 --repeat 100 --device cuda:0 --output repetitions --resume
  parity verify yolo9 --keep evidence      # recording, weights, inputs and outputs; b3sum of each gives its digest`,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runVerify(cmd.Context(), &f, args) },
		ValidArgsFunction: a.completeFamilies,
	}
	f.add(c)
	c.Flags().Lookup("imgsz").Usage = "height and width of the images; list: as the parity list has it; native: what the family was made for\n(default: native, of --all and patterns list)"
	c.Flags().Lookup("task").Usage = "tasks, as detect or classify (default: the family's first, of --all and patterns all)"
	c.Flags().Lookup("mode").Usage = "predict: one step of inference; train: a training run; or both"
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object a cell (docs/results.md), and nothing else on stdout")
	c.Flags().StringVar(&f.keep, "keep", "", "folder for the recording, weights, inputs and outputs of every cell")
	c.Flags().StringVar(&f.output, "output", "", "folder for one JSON file a finished cell")
	c.Flags().BoolVar(&f.all, "all", false, "verify all cells of the parity list")
	c.Flags().StringSliceVar(&f.groups, "group", []string{launch.Matrix}, "of --all and patterns: groups of the reference plugin's table")
	c.Flags().IntVar(&f.jobs, "jobs", 0, "cells in work at the same time (default: by cores and memory; on the host 1)")
	c.Flags().BoolVar(&f.resume, "resume", false, "leave out cells, or repetitions, that are finished in --output already")
	c.Flags().StringVar(&f.calls, "calls", "", "file for one JSON object a call on an arm: how long it waited for its turn and took")
	f.ci.add(c)
	f.addGates(c)
	c.Flags().StringVar(&f.html, "html", "", "file for one page of all results, to be read in a browser")
	c.Flags().IntVar(&f.repeat, "repeat", 1, "verify one cell so many times, and compare verdicts, gates and digests")
	c.Flags().StringSliceVar(&f.matrix, "matrix", nil, "file for the table of all cells: .md, .json or .txt")
	return c
}

func (a *app) runVerify(ctx context.Context, f *verifyFlags, families []string) error {
	if err := f.check(families); err != nil { // before anything starts
		return err
	}
	c, err := a.prepare(ctx, f, families, "verifying on the device host")
	if err != nil {
		return err
	}
	return c.run(ctx)
}

// prepare chooses device and cells, and makes the folders that results go to. onHost is what is said where there is no GPU.
func (a *app) prepare(ctx context.Context, f *verifyFlags, families []string, onHost string) (*campaign, error) {
	b, err := a.start()
	if err != nil {
		return nil, err
	}
	why, err := f.chooseDevice(ctx, b)
	if err != nil {
		return nil, err
	}
	if why != "" {
		fmt.Fprintf(a.err, "%s; %s (see parity doctor)\n", why, onHost)
	}
	cells, err := f.choose(ctx, b, families)
	if err != nil {
		return nil, err
	}
	if cells, err = f.repeated(cells); err != nil {
		return nil, err
	}
	if err := f.places(); err != nil {
		return nil, err
	}
	return &campaign{app: a, flags: f, backend: b, cells: cells, results: make([]*result.Result, len(cells))}, nil
}

// places makes the folders that results go to, and looks at those of files.
func (f *verifyFlags) places() error {
	wrong := []error{makeFolder("--output", f.output), makeFolder("--keep", f.keep), checkFile("--html", f.html), checkFile("--calls", f.calls),
		checkFile("--junit", f.ci.junit), checkFile("--sarif", f.ci.sarif), checkFile("--jsonl", f.ci.jsonl)}
	for _, path := range f.matrix {
		wrong = append(wrong, checkFile("--matrix", path))
	}
	return errors.Join(wrong...)
}

// say prints a result, and keeps it if it says something of its cell. One that cannot be kept is printed all the same.
func (a *app) say(f *verifyFlags, r result.Result) error {
	path, err := f.keepResult(r)
	if f.json {
		return errors.Join(err, a.sayJSON(r))
	}
	err = errors.Join(err, report.Result(a.out, r))
	if path != "" && err == nil {
		_, err = fmt.Fprintf(a.out, "  kept as %s\n", path)
	}
	return err
}

// keepResult writes a result to the output, if there is one and it says something of its cell, and gives the path.
func (f *verifyFlags) keepResult(r result.Result) (path string, err error) {
	if f.output == "" || !r.Judged() {
		return "", nil
	}
	return r.Keep(f.output)
}

func (a *app) sayJSON(r result.Result) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// sayReused prints a result that was finished before.
func (a *app) sayReused(f *verifyFlags, k *result.Kept) error {
	if f.json {
		return a.sayJSON(k.Result)
	}
	return report.Reused(a.out, k.Result, filepath.Join(f.output, k.File))
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
		if e.Group != launch.Planted && (len(names) == 0 || names[len(names)-1] != e.Family) {
			names = append(names, e.Family)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
