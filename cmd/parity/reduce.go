package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"samebits/parity/gate"
	"samebits/parity/probe"
	"samebits/parity/reduce"
	"samebits/parity/result"
	"samebits/parity/suite"
)

// caseFlags choose what bisect and reduce look at.
type caseFlags struct {
	cellFlags
	probe, output string
	step          int
	json          bool
}

func (f *caseFlags) add(c *cobra.Command) {
	f.cellFlags.add(c)
	c.Flags().IntVar(&f.step, "step", 1, "train: which step of the run")
	c.Flags().StringVar(&f.probe, "probe", "noise", "of a family: noise, twin or photo")
	c.Flags().StringVarP(&f.output, "output", "o", "", "folder for the files")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object, and nothing else on stdout")
}

func (a *app) bisect() *cobra.Command {
	var f caseFlags
	c := &cobra.Command{
		Use:   "bisect FAMILY|FOLDER -o DIR",
		Short: "Keep the first operation whose result differs, with its operands and both results",
		Long: `bisect records one step of a family (or reads a folder that record, verify --keep or reduce wrote), runs it in eager PyTorch
and in the native engine operation by operation, and finds the first operation whose result has other bits. It writes to DIR

  recording.pb           this one operation as a recording of its own; recording.txt is the same to read
  inputs.safetensors     its operands, whole, with the bits that the reference had
  reference.safetensors  its result as PyTorch gave it in the whole step
  native.safetensors     its result as the native engine gave it there
  run.py                 the operation in plain PyTorch
  report.json            what it is, where it comes from, how far apart the results are as a histogram of ULP, and whether
                         it differs by itself, too

With --mode train it is a step of a training run, forward, loss and backward, from the state that eager PyTorch has before it.

On the device host nearly every sum has other bits than PyTorch's CPU code: there reduce says more.

Exit status: 0 all operations agree, 1 one differs.`,
		Example: `  parity bisect yolo9 --precision bf16 --device cuda:0 -o fault
  parity bisect evidence/detect-yolo9-t-640-b1-predict-fp32-cuda -o fault
  parity bisect resnet --mode train --imgsz 224 --batch 16 --step 7 --device cuda:0 -o fault`,
		Args:              cobra.ExactArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runBisect(cmd.Context(), &f, args) },
		ValidArgsFunction: a.completeFamilies,
	}
	f.add(c)
	return c
}

func (a *app) reduce() *cobra.Command {
	var f caseFlags
	c := &cobra.Command{
		Use:   "reduce FAMILY|FOLDER -o DIR",
		Short: "Find the smallest part of a step on which PyTorch and the native engine still differ",
		Long: `reduce records one step of a family (or reads a folder that record, verify --keep, bisect or reduce wrote) and takes operations
away as long as PyTorch and the native engine still differ on the rest. What the rest reads of them becomes an input, with
the bits that the reference had there. None of the operations that are left can go. It writes to DIR

  recording.pb           what is left, as a recording of its own; recording.txt is the same to read
  inputs.safetensors     all that it is given: inputs and weights
  reference.safetensors  what PyTorch gives
  native.safetensors     what the native engine gives
  run.py                 the same in plain PyTorch, without anything of ours: it prints digests and whose they are
  report.json            the operations with where they come from, and all digests

With --mode train it is a step of a training run, forward, loss and backward, from the state that eager PyTorch has before it.

On a GPU any other bit counts as a difference; on the device host an error against double precision of more than four times
PyTorch's own, as in the gate NATIVE.

Exit status: 0 nothing differs, 1 a part that differs was found.`,
		Example: `  parity reduce yolo9 --precision bf16 --device cuda:0 -o smallest
  parity reduce resnet --mode train --imgsz 224 --batch 16 --step 7 --device cuda:0 -o smallest
  parity reduce smallest -o again --device cuda:0
  python smallest/run.py cuda:0`,
		Args:              cobra.ExactArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runReduce(cmd.Context(), &f, args) },
		ValidArgsFunction: a.completeFamilies,
	}
	f.add(c)
	return c
}

// readCase gives what a folder or a family's recorded step holds.
func (a *app) readCase(ctx context.Context, f *caseFlags, args []string) (*reduce.Finder, *reduce.Case, error) {
	if f.output == "" {
		return nil, nil, usagef("name a folder by -o DIR")
	}
	folder := isFolder(args[0])
	if !folder && strings.ContainsRune(args[0], '/') {
		return nil, nil, usagef("there is no folder %s", args[0])
	}
	if err := checkNew("-o", f.output); err != nil {
		return nil, nil, err
	}
	if !slices.Contains(probe.Names(), f.probe) {
		return nil, nil, usagef("--probe %q; there are %s", f.probe, strings.Join(probe.Names(), ", "))
	}
	if f.given("step") && (folder || !slices.Contains(f.training.modes, gate.Train)) {
		return nil, nil, usagef("--step is of a family with --mode train")
	}
	names := args
	if folder {
		names = []string{"folder"} // for the flags' sake
	}
	b, cell, err := a.oneCell(ctx, &f.cellFlags, names)
	if err != nil {
		return nil, nil, err
	}
	if err := findNative(b, false); err != nil { // it loads whatever is recorded
		return nil, nil, err
	}
	finder := &reduce.Finder{Start: b, Device: f.device, Progress: func(text string) { fmt.Fprintln(a.err, text) }}
	if folder {
		c, err := reduce.ReadFolder(args[0])
		return finder, c, err
	}
	fmt.Fprintf(a.err, "recording %v\n", cell)
	if cell.Trains() {
		before, err := suite.RecordBefore(ctx, b, cell, f.step)
		if err != nil {
			return nil, nil, err
		}
		c, err := reduce.FromStep(before)
		return finder, c, err
	}
	recorded, err := suite.Record(ctx, b, cell)
	if err != nil {
		return nil, nil, err
	}
	c, err := reduce.FromRecorded(recorded, f.probe)
	return finder, c, err
}

func (a *app) runBisect(ctx context.Context, f *caseFlags, args []string) error {
	finder, c, err := a.readCase(ctx, f, args)
	if err != nil {
		return err
	}
	culprit, err := finder.Bisect(ctx, c)
	if err != nil {
		return err
	}
	if culprit == nil {
		return a.sayNothing(f, "all operations give the same bits")
	}
	if err := culprit.Write(f.output); err != nil {
		return err
	}
	if f.json {
		err = a.sayObject(culprit)
	} else {
		err = culprit.Text(a.out, f.output)
	}
	if err != nil {
		return err
	}
	return statusError(result.ExitDiffers)
}

func (a *app) runReduce(ctx context.Context, f *caseFlags, args []string) error {
	finder, c, err := a.readCase(ctx, f, args)
	if err != nil {
		return err
	}
	part, err := finder.Reduce(ctx, c)
	if errors.Is(err, reduce.ErrNothingDiffers) {
		return a.sayNothing(f, "both sides agree on the whole step: there is nothing to reduce")
	}
	if err != nil {
		return err
	}
	if err := part.Write(f.output); err != nil {
		return err
	}
	if f.json {
		report, err := part.Report()
		if err != nil {
			return err
		}
		err = a.sayObject(report)
		if err != nil {
			return err
		}
	} else if err := part.Text(a.out, f.output, finder.Device); err != nil {
		return err
	}
	return statusError(result.ExitDiffers)
}

func (a *app) sayNothing(f *caseFlags, text string) error {
	if f.json {
		text = "null"
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}
