package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"samebits/parity/doctor"
	"samebits/parity/report"
	"samebits/parity/result"
)

func (a *app) doctor() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is here and what each lack prevents",
		Long: `doctor looks for the native engine and its devices (driver, GPU, CUDA libraries, C++ compiler), for Python, PyTorch and
the packages that the reference plugin needs, starts that plugin, and says what each lack prevents.

Exit status: 0 if something can be verified here, 3 if nothing can.`,
		Example: `  parity doctor
  parity doctor --json
  parity doctor --python /opt/torch/bin/python`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) runDoctor(ctx context.Context, asJSON bool) error {
	b, err := a.start()
	if err != nil {
		return err
	}
	found := doctor.Examine(ctx, b)
	if asJSON {
		e := json.NewEncoder(a.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		err = e.Encode(found)
	} else {
		err = report.Doctor(a.out, found)
	}
	if err != nil {
		return err
	}
	if !found.Ready() {
		return statusError(result.ExitInfrastructure)
	}
	return nil
}
