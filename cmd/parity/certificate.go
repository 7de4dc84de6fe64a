package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/parity/gate"
	"samebits/parity/result"
)

func (a *app) certificate() *cobra.Command {
	c := &cobra.Command{
		Use:   "certificate",
		Short: "Show and check certificates",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON bool
	show := &cobra.Command{
		Use:   "show FILE...",
		Short: "Show what certificates say, whoever signed them",
		Long: `show prints what certificates say. It checks nothing: that is parity certificate verify.

Exit status: 0 all were shown; 1 one says nothing that can be read; 2 called wrongly, or a file is missing.`,
		Example: `  parity certificate show yolo9.dsse.json
  parity certificate show --json goldens/certificates/*/*.dsse.json | jq -r '.predicate.cell.family'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error { return a.showCertificates(files, asJSON) },
	}
	show.Flags().BoolVar(&asJSON, "json", false, "print the statement of each, one JSON object a line")
	var f trustFlags
	verify := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check certificates, offline",
		Long: `verify checks that each file was signed by a key that is trusted, obeys the schema, contradicts itself nowhere, is not expired,
and was made in the environment at hand: the same GPU, driver, libraries, PyTorch, engine and profile. With --environment
RESULT.json it is held against the environment of that result, its recording included: for that neither GPU nor Python is
needed, nor for --environment none.

Exit status: 0 all are valid; 1 one is not, for the reasons given; 2 called wrongly, or a file is missing.`,
		Example: `  parity certificate verify goldens/certificates/detect/*.dsse.json
  parity certificate verify yolo9.dsse.json --environment goldens/results/detect-yolo9-t-640-b1-predict-fp32-cuda.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return a.verifyCertificates(cmd.Context(), files, f, asJSON)
		},
	}
	f.add(verify)
	verify.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a file")
	c.AddCommand(show, verify)
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
	return c
}

func (a *app) showCertificates(files []string, asJSON bool) error {
	torn := false
	for _, name := range files {
		f, err := certificate.ReadFile(name)
		if err != nil {
			return usageError{err}
		}
		s, err := certificate.Peek(f.Data)
		if err != nil {
			fmt.Fprintf(a.err, "%s: %v\n", name, err)
			torn = true
			continue
		}
		if asJSON {
			if err := a.line(s); err != nil {
				return err
			}
			continue
		}
		a.showStatement(name, s)
	}
	if torn {
		return statusError(result.ExitDiffers)
	}
	return nil
}

func (a *app) showStatement(name string, s certificate.Statement) {
	p := s.Predicate
	fmt.Fprintf(a.out, "%s (not checked; see parity certificate verify)\n", name)
	row := func(what, value string) { fmt.Fprintf(a.out, "  %-13s %s\n", what, value) }
	row("cell", p.Cell.String())
	row("arm", fmt.Sprintf("%s, as %s", p.Arm, strings.Join(p.Arms, ", ")))
	row("profile", p.Profile)
	row("environment", p.Key.Text())
	for _, subject := range s.Subject {
		row(subject.Name, "sha256 "+subject.Digest["sha256"])
	}
	for _, id := range gate.Of(p.Cell.Mode, p.Gates) {
		row(string(id), string(p.Gates[id].Outcome))
	}
	for _, arm := range []string{"reference-graph", "native-graph"} {
		r := p.Replays[arm]
		row("replays", fmt.Sprintf("%s: %d of %d nodes", arm, r.Replays, r.Nodes))
	}
	for _, arm := range p.Arms {
		row("median", fmt.Sprintf("%s: %.3f ms", arm, p.Timings[arm].MedianMS))
	}
	row("created", p.Created.String())
	row("expires", p.Expires.String())
	row("again", p.Reproduce)
}

// checked is what is said of a file with --json.
type checked struct {
	File     string            `json:"file"`
	Valid    bool              `json:"valid"`
	Cell     *certificate.Cell `json:"cell,omitempty"`
	Signers  []string          `json:"signers,omitempty"`
	Problems []result.Problem  `json:"problems,omitempty"`
}

func (a *app) verifyCertificates(ctx context.Context, names []string, f trustFlags, asJSON bool) error {
	var files []certificate.File
	said := map[string]error{}
	for _, name := range names {
		file, err := certificate.ReadFile(name)
		if _, known := diag.Of(err); known {
			said[name] = err
		} else if err != nil {
			return usageError{err}
		}
		files = append(files, certificate.File{Path: name, Data: file.Data})
	}
	q, err := a.question(ctx, f)
	if err != nil {
		return err
	}
	invalid := false
	for _, file := range files {
		line := checked{File: file.Path}
		c, err := certificate.Check(file.Data, q)
		if said[file.Path] != nil {
			c, err = nil, said[file.Path]
		}
		problems, known := diag.Of(err)
		if err != nil && !known {
			return err
		}
		line.Valid, line.Problems = err == nil, result.Problems(problems)
		invalid = invalid || err != nil
		if c != nil {
			line.Cell = &c.Predicate.Cell
			for _, s := range c.Signers {
				line.Signers = append(line.Signers, s.Name)
			}
		}
		if asJSON {
			if err := a.line(line); err != nil {
				return err
			}
			continue
		}
		if line.Valid {
			fmt.Fprintf(a.out, "%s: valid: %s, signed by %s, until %s\n", file.Path, c.Predicate.Cell, strings.Join(line.Signers, ", "),
				c.Predicate.Expires.Format("2006-01-02"))
			continue
		}
		fmt.Fprintf(a.out, "%s: not valid\n", file.Path)
		for _, p := range problems {
			fmt.Fprintf(a.out, "  %v\n", p)
		}
	}
	if q.Here != nil && q.Here.Problem != "" {
		fmt.Fprintln(a.err, "there is no GPU here to hold certificates against: --environment none checks all but the environment")
	}
	if invalid {
		return statusError(result.ExitDiffers)
	}
	return nil
}

// line prints one JSON object.
func (a *app) line(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// cellsOfTable gives every cell of the reference plugin's table that can be verified, in each mode and precision.
func (a *app) cellsOfTable(ctx context.Context, modes []string) ([]certificate.Cell, error) {
	b, err := a.start()
	if err != nil {
		return nil, err
	}
	defer b.Close()
	table, err := b.Families(ctx)
	if err != nil {
		return nil, err
	}
	var cells []certificate.Cell
	for _, e := range table {
		if e.Group == "beyond" {
			continue
		}
		for _, mode := range modes {
			precisions, batch := []string{"fp32", "bf16", "fp16"}, int64(1)
			if mode == gate.Train {
				precisions, batch = precisions[:2], 16
			}
			for _, p := range precisions {
				c := certificate.Cell{Family: e.Family, Size: e.Size, Task: e.Task, ImgSize: e.ImgSize, Batch: batch, Mode: mode, Precision: p}
				if !slices.Contains(cells, c) {
					cells = append(cells, c)
				}
			}
		}
	}
	return cells, nil
}

// underFolder gives a path as it is below a folder, if it is.
func underFolder(folder, path string) string {
	if below, err := filepath.Rel(folder, path); err == nil {
		return filepath.ToSlash(below)
	}
	return path
}
