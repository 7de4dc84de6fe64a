package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/result"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the formats it speaks",
		Example: "  parity version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.out, "parity %s\nwire protocol %d, recordings %d, results %d\n%s %s/%s\n", versionText(),
				arm.Protocol, recording.Schema, result.Schema, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
