package main

import (
	"context"
	"fmt"
	"strings"

	"samebits/bridge/certificate"
	"samebits/parity/suite"
)

// leaveCertified leaves out the cells of a campaign that are certified already: by certificates in a folder that are valid here and
// now, and were made by these very programs.
func (c *campaign) leaveCertified(ctx context.Context, folder string) error {
	files := c.app.certificatesIn(folder)
	q, err := c.app.question(ctx, trustFlags{environment: "here", profile: c.flags.profile})
	if err != nil {
		return err
	}
	programs, err := programsOf(c.backend)
	if err != nil {
		return err
	}
	type seeded struct {
		cell certificate.Cell
		seed uint64
	}
	valid := map[seeded]string{} // where the certificate lies
	for _, f := range files {
		made, err := certificate.Check(f.Data, q)
		if err != nil {
			fmt.Fprintf(c.app.err, "does not count: %s: %v\n", f.Path, strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		if name := otherProgram(made.Predicate, programs); name != "" {
			fmt.Fprintf(c.app.err, "does not count: %s: its %s is another\n", f.Path, name)
			continue
		}
		valid[seeded{made.Predicate.Cell, made.Predicate.Seed()}] = f.Path
	}
	var left []suite.Cell
	for _, cell := range c.cells {
		r := cell.Result()
		of := certificate.Cell{Family: r.Family, Size: r.Size, Task: r.Task, ImgSize: r.ImgSize, Batch: r.Batch, Mode: r.Mode, Precision: r.Precision}
		if path := valid[seeded{of, r.Seed}]; path != "" {
			fmt.Fprintf(c.app.out, "%s is certified already as %s\n", of, path)
			continue
		}
		left = append(left, cell)
	}
	fmt.Fprintf(c.app.err, "%d of %d cells are certified already\n", len(c.cells)-len(left), len(c.cells))
	c.cells, c.results = left, c.results[:len(left)]
	return nil
}

// otherProgram names what took part in a certificate's verification and is another here.
func otherProgram(p certificate.Predicate, programs map[string]string) string {
	for _, name := range []string{"parity_build", "reference_build"} {
		if p.Environment[name] != programs[name] {
			return name
		}
	}
	return ""
}
