package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"samebits/bridge/atomicfile"
	"samebits/parity/matrix"
	"samebits/parity/report"
	"samebits/parity/result"
)

// matrixFormats are the ways to write a table, by the end of the file's name.
var matrixFormats = map[string]func(io.Writer, matrix.Table) error{
	".md":  report.MatrixMarkdown,
	".txt": report.MatrixText,
	".json": func(w io.Writer, t matrix.Table) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(t)
	},
}

func writeMatrix(path string, t matrix.Table) error {
	return atomicfile.Write(path, func(w io.Writer) error { return matrixFormats[filepath.Ext(path)](w, t) })
}

func (a *app) matrix() *cobra.Command {
	var output string
	var asJSON bool
	c := &cobra.Command{
		Use:   "matrix DIR",
		Short: "Make the table of all results in a folder",
		Long: `matrix reads the results that verify --output wrote to DIR and makes one table of them: a row for each family, task and
size, a column for each precision. It says nothing of cells that have no result there.

Exit status: 0 if the table was made, whatever it says; 2 if there is no result; 3 if a file cannot be read or written.`,
		Example: `  parity matrix results
  parity matrix goldens/results -o goldens/MATRIX.md
  parity matrix results --json | jq '.totals'`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.runMatrix(args[0], output, asJSON) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "file for the table: .md, .json or .txt (default: text on stdout)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) runMatrix(dir, output string, asJSON bool) error {
	if output != "" && matrixFormats[filepath.Ext(output)] == nil {
		return usagef("-o %s: the table is written as .md, .json or .txt", output)
	}
	if err := checkFile("-o", output); err != nil {
		return err
	}
	kept, wrong := result.ReadFolder(dir)
	if wrong != nil && len(kept) == 0 {
		return wrong
	}
	if len(kept) == 0 {
		return usagef("there is no result in %s", dir)
	}
	results := make([]result.Result, len(kept))
	for i, k := range kept {
		results[i] = k.Result
	}
	t := matrix.NewTable(results)
	format := ".txt"
	if asJSON {
		format = ".json"
	}
	write := func() error { return matrixFormats[format](a.out, t) }
	if output != "" {
		write = func() error { return writeMatrix(output, t) }
	}
	if err := write(); err != nil {
		return err
	}
	if wrong != nil {
		return fmt.Errorf("the table lacks what cannot be read: %w", wrong)
	}
	return nil
}
