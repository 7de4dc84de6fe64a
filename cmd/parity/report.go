package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"samebits/bridge/atomicfile"
	"samebits/parity/result"
	"samebits/parity/shell"
	"samebits/parity/verifypage"
)

type reportFlags struct {
	output       string
	certificates string
	trust        []string
}

func (a *app) report() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report DIR|RESULT.json...",
		Short: "Make one HTML page of results",
		Long: `report reads results that verify --output wrote, folders of them, or JSON lines of verify --jsonl, and makes one page of them: the
matrix, and of each cell its gates with reasons and figures, what differs, times, memory, when which process ran, digests,
environment, and the commands that show it again. The page is one file that loads nothing and can be read without scripts.

A cell is called certified where a certificate is for the environment, the engine and the recording that its result names.

Exit status: 0 if the page was made, whatever it says; 2 if there is no result; 3 if a file cannot
be read or written.`,
		Example: `  parity report results -o results.html
  parity report goldens/results -o page.html
  parity report results/detect-yolo9-t-640-b1-predict-bf16-cuda.json nightly.jsonl -o page.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.runReport(f, args) },
	}
	c.Flags().StringVarP(&f.output, "output", "o", "", "file for the page (default: stdout, if that is no terminal)")
	c.Flags().StringVar(&f.certificates, "certificates", "", "folder of certificates (default: $"+certificatesVariable+", goldens/certificates)")
	c.Flags().StringSliceVar(&f.trust, "trust", nil, "files of trusted keys (default: those of parity keys)")
	return c
}

func (a *app) runReport(f reportFlags, names []string) error {
	if f.output == "" && a.shown {
		return usagef("name a file by -o FILE: a page is for a browser, not for a terminal")
	}
	if err := checkFile("-o", f.output); err != nil {
		return err
	}
	var results []result.Result
	var wrong []error
	for _, name := range names {
		read, err := readResults(name)
		results, wrong = append(results, read...), append(wrong, err)
	}
	lacks := errors.Join(wrong...)
	if lacks != nil && len(results) == 0 {
		return lacks
	}
	if len(results) == 0 {
		return usagef("there is no result in %s", strings.Join(names, ", "))
	}
	flag, err := a.flagsOf(f.certificates, f.trust)
	if err != nil {
		return err
	}
	words := []string{"parity", "report"}
	for _, name := range names {
		words = append(words, shell.Quote(name))
	}
	if f.output != "" {
		words = append(words, "-o", shell.Quote(f.output))
	}
	o := verifypage.Options{Command: strings.Join(words, " "), Flag: flag}
	if err := writePage(a.out, f.output, results, o); err != nil {
		return err
	}
	if lacks != nil {
		return fmt.Errorf("the page lacks what cannot be read: %w", lacks)
	}
	return nil
}

// writePage writes a page to a file; no name: to out.
func writePage(out io.Writer, path string, results []result.Result, o verifypage.Options) error {
	if path == "" {
		return verifypage.Write(out, results, o)
	}
	return atomicfile.Write(path, func(w io.Writer) error { return verifypage.Write(w, results, o) })
}

// readResults reads a result, JSON lines of results, or a folder of results.
func readResults(name string) ([]result.Result, error) {
	switch {
	case isFolder(name):
		kept, err := result.ReadFolder(name)
		results := make([]result.Result, len(kept))
		for i, k := range kept {
			results[i] = k.Result
		}
		return results, err
	case filepath.Ext(name) == ".jsonl":
		return result.ReadLines(name)
	}
	r, err := result.Read(name)
	if err != nil {
		return nil, err
	}
	return []result.Result{r}, nil
}

// flagsOf looks through the certificates of a folder.
func (a *app) flagsOf(folder string, trust []string) (func(result.Result) *verifypage.Flag, error) {
	if folder == "" {
		folder = certificateFolder()
	}
	files := a.certificatesIn(folder)
	keys, err := trusted(trust)
	if err != nil {
		return nil, usageError{err}
	}
	return verifypage.Flags(files, keys), nil
}
