package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"samebits/bridge/atomicfile"
	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	grant "samebits/parity/certificate"
	"samebits/parity/gate"
)

type statusFlags struct {
	trustFlags
	folder string
	modes  []string
	pages  string
	json   bool
}

func (a *app) status() *cobra.Command {
	var f statusFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Say which cells have SUPPORTS_CUDA_GRAPH here, and why",
		Long: `status prints SUPPORTS_CUDA_GRAPH of every cell of the parity list, and of every other that is certified. It is true if and only
if a certificate of that cell verifies and was made in the environment at hand. Nothing else sets it.

--write-flags writes the page of the environments that certificates are for, instead. Exit status: 0 whatever the flags are.`,
		Example: `  parity status
  parity status --json | jq 'select(.supports_cuda_graph)'
  parity status --write-flags goldens/FLAGS.md --trust goldens/certificates/keys/trusted.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStatus(cmd.Context(), f) },
	}
	f.add(c)
	c.Flags().StringVar(&f.folder, "certificates", "", "folder of certificates (default: $"+certificatesVariable+", goldens/certificates)")
	c.Flags().StringSliceVar(&f.modes, "mode", []string{gate.Predict, gate.Train}, "predict, train")
	c.Flags().StringVar(&f.pages, "write-flags", "", "file for the page of flags, as goldens/FLAGS.md")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object a cell")
	return c
}

func (a *app) runStatus(ctx context.Context, f statusFlags) error {
	for _, mode := range f.modes {
		if mode != gate.Predict && mode != gate.Train {
			return usagef("--mode %q; there are %s and %s", mode, gate.Predict, gate.Train)
		}
	}
	if err := checkFile("--write-flags", f.pages); err != nil {
		return err
	}
	folder := f.folder
	if folder == "" {
		folder = certificateFolder()
	}
	files, err := certificate.ReadFolder(folder)
	if err != nil {
		if len(files) == 0 || f.pages != "" {
			return err
		}
		a.notCounted(err)
	}
	if f.pages != "" {
		trust, err := trusted(f.trust)
		if err != nil {
			return usageError{err}
		}
		return atomicfile.Write(f.pages, func(w io.Writer) error { return grant.FlagsPage(w, files, trust) })
	}
	q, err := a.question(ctx, f.trustFlags)
	if err != nil {
		return err
	}
	if q.Here == nil {
		return usagef("--environment none: a flag is of an environment")
	}
	cells, err := a.cellsOfTable(ctx, f.modes)
	if err != nil {
		fmt.Fprintf(a.err, "cells without a certificate are left out: %v\n", firstLine(err.Error()))
	}
	flags, strangers := grant.Flags(files, cells, q)
	flags = slices.DeleteFunc(flags, func(f2 grant.Flag) bool { return !slices.Contains(f.modes, f2.Mode) })
	for i := range flags {
		if flags[i].File != "" {
			flags[i].File = underFolder(folder, flags[i].File)
		}
	}
	for _, p := range strangers {
		fmt.Fprintf(a.err, "not counted: %v\n", p)
	}
	if f.json {
		for _, flag := range flags {
			if err := a.line(flag); err != nil {
				return err
			}
		}
		return nil
	}
	a.sayFlags(flags)
	if q.Here.Problem != "" {
		fmt.Fprintf(a.out, "here: %v\n", diag.Problem{Reason: certificate.NoGPU, Summary: q.Here.Problem})
	} else {
		fmt.Fprintf(a.out, "here: profile %s, %s\n", q.Here.Profile, q.Here.Key.Text())
	}
	return nil
}

// sayFlags prints a table, a row for each cell, with a column for each precision.
func (a *app) sayFlags(flags []grant.Flag) {
	precisions := []string{"fp32", "bf16", "fp16"}
	lines := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(lines, "TASK\tFAMILY\tSIZE\tIMGSZ\tBATCH\tMODE\t%s\n", strings.ToUpper(strings.Join(precisions, "\t")))
	supported, whys, cells := 0, []string{}, map[string][]certificate.Cell{} // what is wrong, in order, and with which
	for i := 0; i < len(flags); {
		row := flags[i].Cell
		row.Precision = ""
		values := map[string]string{}
		for ; i < len(flags); i++ {
			at := flags[i].Cell
			if at.Precision = ""; at != row {
				break
			}
			flag := flags[i]
			values[flag.Precision] = flag.Reason
			if flag.Supports {
				values[flag.Precision] = "true"
				supported++
			} else if flag.Reason != certificate.None {
				why := strings.Join(flag.Why, "; ")
				if cells[why] == nil {
					whys = append(whys, why)
				}
				cells[why] = append(cells[why], flag.Cell)
			}
		}
		fmt.Fprintf(lines, "%s\t%s\t%s\t%d\t%d\t%s", row.Task, row.Family, row.Size, row.ImgSize, row.Batch, row.Mode)
		for _, p := range precisions {
			value := values[p]
			if value == "" {
				value = "-"
			}
			fmt.Fprintf(lines, "\t%s", value)
		}
		fmt.Fprintln(lines)
	}
	_ = lines.Flush() // what cannot be printed cannot be said either
	for _, why := range whys {
		of := cells[why][0].String()
		if n := len(cells[why]); n > 1 {
			of = fmt.Sprintf("%d cells", n)
		}
		fmt.Fprintf(a.out, "%s: %s\n", of, why)
	}
	fmt.Fprintf(a.out, "SUPPORTS_CUDA_GRAPH is true for %d of %d cells\n", supported, len(flags))
}
