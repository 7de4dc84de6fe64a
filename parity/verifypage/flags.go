package verifypage

import (
	"slices"
	"time"

	"samebits/bridge/certificate"
	"samebits/parity/result"
)

// Flag is what a certificate says of a cell: in the environment of its result it has SUPPORTS_CUDA_GRAPH.
type Flag struct {
	Until   string // a day
	Signers []string
}

// Flags looks through certificates. One counts for a result if somebody trusted signed it, it was good when it was made, and
// it is for the cell, the environment, the engine and the recording that the result names. How long it is good for is on
// the page, for a page does not know the day on which it is read.
func Flags(files []certificate.File, trust certificate.Trust) func(result.Result) *Flag {
	type good struct {
		data []byte
		*certificate.Certificate
	}
	by := map[certificate.Cell][]good{}
	for _, file := range files {
		if c, err := certificate.CheckWhenMade(file.Data, trust); err == nil {
			by[c.Predicate.Cell] = append(by[c.Predicate.Cell], good{file.Data, c})
		}
	}
	return func(r result.Result) *Flag {
		cell := certificate.Cell{Family: r.Family, Size: r.Size, Task: r.Task, ImgSize: r.ImgSize, Batch: r.Batch, Mode: r.Mode, Precision: r.Precision}
		here := &certificate.Here{Key: certificate.KeyOf(r.Environment, r.Digests.Recording), Profile: r.Profile}
		for _, g := range by[cell] {
			if _, err := certificate.Check(g.data, certificate.Question{Now: g.Predicate.Created, Trust: trust, Here: here}); err != nil {
				continue
			}
			f := &Flag{Until: g.Predicate.Expires.UTC().Format(time.DateOnly)}
			for _, s := range g.Signers {
				f.Signers = append(f.Signers, s.Name)
			}
			slices.Sort(f.Signers)
			return f
		}
		return nil
	}
}
