package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/parity/certificate"
	"samebits/parity/gate"
	"samebits/parity/predict"
	"samebits/parity/suite"
)

// chooseArm gives what decides on the arm once the cell is known: a graph only where the cell has its flag here.
func (a *app) chooseArm(f *predictFlags, b backend) func(context.Context, suite.Cell) (predict.Choice, error) {
	graph, eager := arm.NativeGraph, arm.NativeEager
	if strings.HasPrefix(f.arm, "reference-") {
		graph, eager = arm.ReferenceGraph, arm.ReferenceEager
	}
	return func(ctx context.Context, cell suite.Cell) (predict.Choice, error) {
		if f.graph == "false" || f.arm == eager {
			return predict.Choice{Arm: eager}, nil
		}
		why, err := a.whyNoGraph(ctx, f, b, cell)
		switch {
		case err != nil:
			return predict.Choice{}, err
		case why.Reason == "":
			return predict.Choice{Arm: graph, OnlyCell: true, OrEagerly: f.graph == "auto"}, nil
		case f.graph == "true":
			why.Summary = fmt.Sprintf("%v has no SUPPORTS_CUDA_GRAPH here: %s", cell, why.Summary)
			return predict.Choice{}, diag.Problems{why}
		}
		fmt.Fprintf(a.err, "steps run eagerly, for %v has no SUPPORTS_CUDA_GRAPH here: %v\n", cell, why)
		return predict.Choice{Arm: eager}, nil
	}
}

// whyNoGraph says why a cell has no flag here; nothing if it has.
func (a *app) whyNoGraph(ctx context.Context, f *predictFlags, b backend, cell suite.Cell) (diag.Problem, error) {
	if !cell.OnGPU() {
		return diag.Problem{Reason: certificate.NoGPU, Summary: "only a GPU has graphs with a certificate"}, nil
	}
	folder := f.certificates
	if folder == "" {
		folder = certificateFolder()
	}
	files, err := certificate.ReadFolder(folder)
	if err != nil {
		return diag.Problem{}, err
	}
	q := certificate.Question{Now: time.Now()}
	if q.Trust, err = trusted(f.trust); err != nil {
		return diag.Problem{}, usageError{err}
	}
	if q.Here, err = hereOn(ctx, b, cell.Device, cell.Profile); err != nil {
		return diag.Problem{}, err
	}
	asked := certificate.Cell{Family: cell.Family, Size: cell.Size, Task: cell.Task, ImgSize: cell.ImgSize, Batch: max(cell.Batch, 1),
		Mode: gate.Predict, Precision: cell.Precision}
	flags, _ := certificate.Flags(files, []certificate.Cell{asked}, q)
	for _, flag := range flags {
		if flag.Cell != asked {
			continue
		}
		if flag.Supports {
			return diag.Problem{}, nil
		}
		return diag.Problem{Reason: flag.Reason, Summary: strings.TrimPrefix(strings.Join(flag.Why, "; "), flag.Reason+": "), Path: flag.File}, nil
	}
	return diag.Problem{Reason: certificate.None, Summary: "nobody certified it"}, nil
}
