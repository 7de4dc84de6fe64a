// Command samebits-trainer is the native engine as a plugin that trains: the arms native-eager and native-graph in mode
// train. The host of package bridge/host starts it.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"samebits/bridge/serve"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: samebits-trainer\nIt is a plugin, started by parity; `samebits-predictor doctor` says what devices there are.")
		os.Exit(2)
	}
	serve.Serve(&trainer{})
}

// version is the module's version as the linker recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
