package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"samebits/bridge/atomicfile"
	"samebits/parity/ci"
	"samebits/parity/result"
)

// ciFlags name files for programs of continuous integration.
type ciFlags struct{ junit, sarif, jsonl string }

func (f *ciFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.junit, "junit", "", "file for JUnit XML: a suite a cell, a case a gate")
	c.Flags().StringVar(&f.sarif, "sarif", "", "file for SARIF 2.1.0: a rule a reason, a result for each gate that failed")
	c.Flags().StringVar(&f.jsonl, "jsonl", "", "file for JSON lines: one result a line, as each cell finishes")
}

// lines opens the file of JSON lines. Without one it gives a writer of nothing.
func (f *ciFlags) lines() (io.WriteCloser, error) {
	if f.jsonl == "" {
		return nowhere{io.Discard}, nil
	}
	file, err := os.Create(f.jsonl)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return file, nil
}

type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// write writes the files that hold all results.
func (f *ciFlags) write(results []result.Result) error {
	var wrong []error
	for _, file := range []struct {
		path string
		fill func(io.Writer) error
	}{
		{f.junit, func(w io.Writer) error { return ci.JUnit(w, results) }},
		{f.sarif, func(w io.Writer) error { return ci.SARIF(w, results, versionText()) }},
	} {
		if file.path != "" {
			wrong = append(wrong, atomicfile.Write(file.path, file.fill))
		}
	}
	return errors.Join(wrong...)
}
