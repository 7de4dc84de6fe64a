package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"samebits/parity/suite"
)

func (a *app) record() *cobra.Command {
	var f cellFlags
	var dir string
	c := &cobra.Command{
		Use:   "record FAMILY -o DIR",
		Short: "Record one eager step of a family",
		Long: `record builds a family with seeded, seasoned weights, runs one step of it in eager PyTorch, and writes to DIR

  recording.pb         the exact list of tensor operations, as protobuf; b3sum of it is its digest
  recording.txt        the same to read: one operation a line, with shapes and where it comes from
  weights.safetensors  every tensor that the step reads

Exit status: 0 it was recorded; 2 refused, or called wrongly; 3 something broke, a file could not be written, or interrupted.`,
		Example: `  parity record resnet -o resnet18
  parity record yolo9 --size t --imgsz 640 --precision bf16 --device cuda:0 -o yolo9t
  parity record resnet --mode train --imgsz 224 --batch 16 -o resnet18-train`,
		Args:              cobra.ExactArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runRecord(cmd.Context(), &f, args, dir) },
		ValidArgsFunction: a.completeFamilies,
	}
	f.add(c)
	c.Flags().StringVarP(&dir, "output", "o", "", "folder for the files")
	return c
}

func (a *app) runRecord(ctx context.Context, f *cellFlags, families []string, dir string) error {
	if dir == "" {
		return usagef("name a folder by -o DIR")
	}
	if err := checkNew("-o", dir); err != nil {
		return err
	}
	b, cells, err := a.oneCell(ctx, f, families)
	if err != nil {
		return err
	}
	recorded, err := suite.Record(ctx, b, cells)
	if err != nil {
		return err
	}
	if err := recorded.Write(dir); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s: %d operations, recording %s, in %s\n", recorded.Cell, len(recorded.Recording.Operations),
		recorded.Recording.Digest, dir)
	return nil
}

// findNative sees, before anything is recorded, that the native engine's plugin is there and is a program.
func findNative(b backend, trains bool) error {
	find := b.Predictor
	if trains {
		find = b.Trainer
	}
	_, err := find()
	return err
}

// oneCell starts the backend and gives the one cell that the flags describe.
func (a *app) oneCell(ctx context.Context, f *cellFlags, families []string) (backend, suite.Cell, error) {
	b, err := a.start()
	if err != nil {
		return nil, suite.Cell{}, err
	}
	for flag, values := range map[string][]string{"precision": f.precisions, "task": f.tasks, "mode": f.training.modes} {
		if len(values) > 1 {
			return nil, suite.Cell{}, usagef("--%s names %d of them; one is needed here", flag, len(values))
		}
	}
	if _, err := f.cells(families); err != nil {
		return nil, suite.Cell{}, err
	}
	why, err := f.chooseDevice(ctx, b)
	if err != nil {
		return nil, suite.Cell{}, err
	}
	if why != "" {
		fmt.Fprintf(a.err, "%s; using the CPU\n", why)
	}
	cells, err := f.cells(families)
	if err != nil {
		return nil, suite.Cell{}, err
	}
	return b, cells[0], nil
}
