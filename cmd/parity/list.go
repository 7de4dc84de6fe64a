package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"samebits/parity/launch"
)

func (a *app) list() *cobra.Command {
	var asJSON, planted bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the families that can be verified",
		Long: `list prints every family and task that the reference plugin can build, with the size that is taken where none is named.
That a family is listed does not mean that the native engine knows all its operations: verify says which it lacks.

The group matrix is the list of LibreYOLO's families with CUDA graphs; variant cuts one of them elsewhere, own-path predicts
otherwise than by one forward on images, and beyond is what the recorder must refuse; custom are families that you added.
docs/families.md explains each. The group planted, of selftest, is listed with --planted alone.`,
		Example: `  parity list
  parity list --json | jq -r 'select(.task == "detect" and .group == "matrix") | .family'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runList(cmd.Context(), asJSON, planted) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	c.Flags().BoolVar(&planted, "planted", false, "list the families with planted faults, and their twins")
	return c
}

func (a *app) runList(ctx context.Context, asJSON, planted bool) error {
	b, err := a.start()
	if err != nil {
		return err
	}
	entries, err := b.Families(ctx)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e launch.Entry) bool { return (e.Group == launch.Planted) != planted })
	if asJSON {
		encoder := json.NewEncoder(a.out)
		for _, e := range entries {
			if err := encoder.Encode(e); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TASK\tFAMILY\tSIZE\tIMGSZ\tGROUP")
	for _, e := range entries {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", e.Task, e.Family, e.Size, e.Native, e.Group)
	}
	return t.Flush()
}
