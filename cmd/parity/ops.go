package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"samebits/bridge/recording"
	"samebits/bridge/wholefile"
	"samebits/parity/ops"
	"samebits/parity/report"
	"samebits/parity/shell"
	"samebits/parity/signature"
	"samebits/parity/suite"
	"samebits/parity/values"
)

type opsFlags struct {
	cellFlags
	json       bool
	filters    []string
	signatures []string
	values     []string
	limit      int
	memory     int64
}

func (a *app) ops() *cobra.Command {
	var f opsFlags
	c := &cobra.Command{
		Use:   "ops RECORDING|FOLDER|FAMILY...",
		Short: "Compare the native engine with PyTorch operation by operation",
		Long: `ops takes the distinct operations out of recordings (files, folders of them, or families that are recorded on the spot):
each combination of dtypes, sizes, strides, offsets, alignments, aliasing and attributes once. It runs each by itself in
eager PyTorch and in the native engine, and compares the bits of what they give, on three kinds of values:

  ordinary  magnitudes from 1/8 to 16, both signs
  edges     signed zeros, denormals, infinities, NaNs with payloads, ties of rounding, the largest magnitudes
  sparse    ordinary ones with an edge here and there, for what sums many elements

It prints a table, what failed first, and for each failure how far apart the bits are, the first element that differs
with both bit patterns, and the command that runs it alone. Views are not compared: they are geometry. On the device
host bits are demanded where no library and no libm takes part; the rest is held to an error against double precision, as
verify does. docs/ops.md says what each outcome means.

Exit status: 0 nothing differs; 1 a signature does; 2 the native engine refuses one, or the command was called wrongly; 3
something broke, or interrupted.`,
		Example: `  parity ops yolo9 --precision bf16
  parity ops recordings/ --device cuda:0 --filter 'aten::convolution*'
  parity ops resnet18/recording.pb --device host --limit 5
  parity ops recordings/ --signature 3f9a1c24be07 --values edges
  parity ops yolo9 --json | jq '.findings[] | select(.outcome == "differs")'`,
		Args:              cobra.MinimumNArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runOps(cmd.Context(), &f, args) },
		ValidArgsFunction: a.completeFamilies,
	}
	f.add(c)
	flags := c.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON object (docs/ops.md), and nothing else on stdout")
	flags.StringSliceVar(&f.filters, "filter", nil, "only operations whose name matches a pattern, as aten::conv* or *norm*; several by commas")
	flags.StringSliceVar(&f.signatures, "signature", nil, "only these signatures, by the first digits of their ids")
	flags.StringSliceVar(&f.values, "values", nil, "kinds of values: ordinary, edges, sparse (default: all)")
	flags.IntVar(&f.limit, "limit", 0, "compare at most so many signatures of each operation, the smallest (default: all)")
	flags.Int64Var(&f.memory, "memory", 0, "skip signatures whose tensors take more than so many MiB (default: 16384 on a GPU, 256 on the host)")
	return c
}

func (a *app) runOps(ctx context.Context, f *opsFlags, args []string) error {
	kinds, err := f.check()
	if err != nil {
		return err
	}
	b, err := a.start()
	if err != nil {
		return err
	}
	why, err := f.chooseDevice(ctx, b)
	if err != nil {
		return err
	}
	if why != "" {
		fmt.Fprintf(a.err, "%s; comparing on the device host (see parity doctor)\n", why)
	}
	if err := findNative(b, false); err != nil {
		return err
	}
	var set signature.Set
	for _, arg := range args {
		if err := a.gather(ctx, f, b, arg, &set); err != nil {
			return err
		}
	}
	chosen := f.choose(set.Operations())
	if len(chosen) == 0 {
		return usagef("nothing is left to compare: %d signatures were found, none passes --filter and --signature", len(set.Operations()))
	}
	progress := report.NewOpsProgress(a.err, a.terminal && !a.plugins.verbose)
	checker := &ops.Checker{Start: b, Device: f.device, Seed: f.seed, Kinds: kinds, MostBytes: f.memory << 20, Progress: progress.Show}
	found, err := checker.Check(ctx, chosen)
	progress.Done()
	for i := range found.Findings {
		found.Findings[i].Reproduce = f.reproduce(&found.Findings[i]) + a.plugins.given()
	}
	found.SumUp()
	if sayErr := a.sayOps(f, found); err == nil {
		err = sayErr
	}
	if err != nil {
		return err
	}
	if status := found.Exit(); status != 0 {
		return statusError(status)
	}
	return nil
}

// check reads the flags that nothing else checks.
func (f *opsFlags) check() ([]values.Kind, error) {
	if f.limit < 0 || f.memory < 0 {
		return nil, usagef("--limit and --memory are positive numbers")
	}
	for _, pattern := range f.filters {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, usagef("--filter %q: %w", pattern, err)
		}
	}
	var kinds []values.Kind
	for _, name := range f.values {
		kind, ok := values.Parse(name)
		if !ok {
			return nil, usagef("--values %q; there are ordinary, edges and sparse", name)
		}
		kinds = append(kinds, kind)
	}
	_, err := f.cells([]string{"none"}) // before anything starts
	return kinds, err
}

// gather adds the operations of what an argument names: a recording, a folder of them, or a family.
func (a *app) gather(ctx context.Context, f *opsFlags, b backend, arg string, set *signature.Set) error {
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return a.gatherFolder(arg, set)
	case err == nil:
		return addFile(arg, set, wholefile.Read)
	case strings.ContainsRune(arg, filepath.Separator) || filepath.Ext(arg) == ".pb":
		return usagef("%w", err)
	}
	cells, err := f.cells([]string{arg})
	if err != nil {
		return err
	}
	for _, cell := range cells {
		fmt.Fprintf(a.err, "recording %v\n", cell)
		recorded, err := suite.Record(ctx, b, cell)
		if err != nil {
			return err
		}
		if err := set.Add(recorded.Cell.Flags(), recorded.Recording); err != nil {
			return err
		}
	}
	return nil
}

// gatherFolder adds every file of recordings below a folder.
func (a *app) gatherFolder(dir string, set *signature.Set) error {
	found := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".pb" {
			return err
		}
		found++
		return addFile(path, set, wholefile.ReadRegular)
	})
	if err == nil && found == 0 {
		return usagef("there is no recording (*.pb) below %s", dir)
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return usagef("%w", err)
	}
	return err
}

func addFile(path string, set *signature.Set, read func(path string, limit int64) ([]byte, error)) error {
	data, err := read(path, recording.MaxBytes)
	if err != nil {
		return usagef("%w", err)
	}
	r, err := recording.Decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return set.Add(path, r)
}

// choose gives the operations that the flags ask for. --limit does not count what is not compared anyway.
func (f *opsFlags) choose(all []*signature.Operation) []*signature.Operation {
	var chosen []*signature.Operation
	taken := map[string]int{}
	for _, o := range all {
		if len(f.filters) > 0 && !slices.ContainsFunc(f.filters, func(pattern string) bool { return matches(pattern, o.Name) }) {
			continue
		}
		if len(f.signatures) > 0 && !slices.ContainsFunc(f.signatures, func(id string) bool { return strings.HasPrefix(o.ID, id) }) {
			continue
		}
		if o.Class == signature.Computes {
			if taken[o.Name]++; f.limit > 0 && taken[o.Name] > f.limit {
				continue
			}
		}
		chosen = append(chosen, o)
	}
	return chosen
}

// matches holds an operation's name to a pattern, with or without aten:: in front and an overload behind.
func matches(pattern, name string) bool {
	short := strings.TrimPrefix(name, "aten::")
	bare, _, _ := strings.Cut(short, ".")
	for _, form := range []string{name, short, bare} {
		if ok, _ := path.Match(pattern, form); ok { // the pattern was checked before
			return true
		}
	}
	return false
}

// reproduce is the command that compares one signature again, by itself.
func (f *opsFlags) reproduce(found *ops.Finding) string {
	source := found.Recordings[0]
	if _, err := os.Stat(source); err == nil {
		source = fmt.Sprintf("%s --device %s --seed %d", shell.Quote(source), shell.Quote(f.device), f.seed)
	}
	command := "parity ops " + source + " --signature " + shell.Quote(found.ID)
	if len(f.values) > 0 {
		command += " --values " + shell.Quote(strings.Join(f.values, ","))
	}
	if f.memory > 0 {
		command += fmt.Sprintf(" --memory %d", f.memory)
	}
	return command
}

func (a *app) sayOps(f *opsFlags, found *ops.Report) error {
	if f.json {
		e := json.NewEncoder(a.out)
		e.SetEscapeHTML(false)
		return e.Encode(found)
	}
	return report.Ops(a.out, found)
}
