package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/suite"
)

func (a *app) trace() *cobra.Command {
	var f cellFlags
	var probe string
	var step int
	c := &cobra.Command{
		Use:   "trace FAMILY",
		Short: "Find the first operation whose result differs between eager PyTorch and the native engine",
		Long: `trace runs one step in eager PyTorch and in the native engine, one operation after the other, compares the digest of
every result, and prints the first operation that differs as JSON: what it is, where it comes from, both sides' digests of
its operands and results, and how far the results are apart. verify prints the command that asks for it.

Exit status: 0 all operations agree, 1 one differs; else as of verify.`,
		Example: `  parity trace yolo9 --size t --imgsz 640 --precision bf16 --device cuda:0 --probe photo
  parity trace resnet --mode train --imgsz 224 --batch 16 --device cuda:0 --step 7`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTrace(cmd.Context(), &f, args, probe, step) },
	}
	f.add(c)
	c.Flags().StringVar(&probe, "probe", "noise", "noise, twin or photo")
	c.Flags().IntVar(&step, "step", 1, "train: which step of the run")
	return c
}

func (a *app) runTrace(ctx context.Context, f *cellFlags, families []string, probe string, step int) error {
	if f.given("step") && !slices.Contains(f.training.modes, gate.Train) {
		return usagef("--step is of --mode train")
	}
	b, cell, err := a.oneCell(ctx, f, families)
	if err != nil {
		return err
	}
	if err := findNative(b, cell.Trains()); err != nil {
		return err
	}
	s := &suite.Suite{Start: b, Timing: suite.DefaultTiming()}
	var culprit *suite.Culprit
	if cell.Trains() {
		culprit, err = s.TraceStep(ctx, cell, step)
	} else {
		culprit, err = s.Trace(ctx, cell, probe)
	}
	if err != nil {
		return err
	}
	if culprit == nil {
		fmt.Fprintln(a.out, "all operations give the same bits")
		return nil
	}
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(culprit); err != nil {
		return err
	}
	return statusError(result.ExitDiffers)
}
