package main

import (
	"context"
	"time"

	"samebits/bridge/certificate"
	"samebits/parity/suite"
)

// certified gives what decides whether a graph may be replayed here: by the certificates that the flags name.
func (a *app) certified(f *predictFlags, b backend) func(context.Context, suite.Cell, string) error {
	return func(ctx context.Context, cell suite.Cell, recording string) error {
		files, err := certificate.Find(f.certificates)
		if err != nil {
			return err
		}
		trust, err := trusted(f.trust)
		if err != nil {
			return usageError{err}
		}
		asked := certificate.Asked{Profile: cell.Profile, Recording: recording, Device: cell.Device,
			Cell: certificate.Cell{Family: cell.Family, Size: cell.Size, Task: cell.Task, ImgSize: cell.ImgSize, Batch: cell.Batch,
				Mode: certificate.Predict, Precision: cell.Precision}}
		if cell.OnGPU() {
			asked.Environment, _ = environmentOn(ctx, b, cell.Device) // without one nothing is certified
		}
		return certificate.Decide(asked, files, trust, time.Now()).Err()
	}
}
