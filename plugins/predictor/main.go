// Command samebits-predictor is the native engine as a plugin: the arms native-eager and native-graph. The host of
// package bridge/host starts it; `samebits-predictor doctor` run by hand says what devices it can open and why not.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"samebits/bridge/serve"
	"samebits/native/devices"
)

func main() {
	if len(os.Args) > 1 {
		os.Exit(command(os.Args[1:]))
	}
	serve.Serve(&predictor{})
}

func command(args []string) int {
	if args[0] != "doctor" || len(args) > 2 || (len(args) == 2 && args[1] != "--json") {
		fmt.Fprintln(os.Stderr, "usage: samebits-predictor doctor [--json]\nWithout arguments it is a plugin, started by parity.")
		return 2
	}
	found := devices.List()
	if len(args) == 2 {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(found); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		return 0
	}
	for _, d := range found {
		if d.Problem != "" {
			fmt.Printf("%s: not usable: %s\n", d.Name, d.Problem)
			continue
		}
		fmt.Printf("%s: ready\n", d.Name)
		for _, s := range d.Environment {
			fmt.Printf("  %-20s %s\n", s.Key, s.Value)
		}
	}
	return 0
}

// version is the module's version as the linker recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
