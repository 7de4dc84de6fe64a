package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"samebits/bridge/host"
	"samebits/parity/bench"
	"samebits/parity/launch"
	"samebits/parity/result"
	"samebits/parity/suite"
)

// app is the command line with what it reaches the world by.
type app struct {
	out, err io.Writer
	terminal bool // err is one
	shown    bool // out is one, too
	backend  func(launch.Options) backend
	plugins  pluginFlags
}

// backend finds and starts plugins: a *launch.Launcher, or fakes.
type backend interface {
	bench.Starter
	EngineBuild() (string, error)
	TrainerBuild() (string, error)
	ReferenceBuild() (string, error)
	Tune(launch.Tuning)
	Close()
	Devices(ctx context.Context) ([]launch.Device, error)
	Families(ctx context.Context) ([]launch.Entry, error)
	Inspect(ctx context.Context) (launch.PythonInfo, error)
	Python() (string, error)
	Predictor() (string, error)
	Trainer() (string, error)
}

func findPlugins(o launch.Options) backend { return launch.New(o) }

// statusError ends the program with a status, saying nothing more.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// usageError is a command called wrongly.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitStatus gives the exit status for what a command returned, and whether all has been said already.
func exitStatus(ctx context.Context, err error) (status int, silent bool) {
	var code statusError
	var usage usageError
	switch {
	case err == nil:
		return result.ExitExact, true
	case errors.As(err, &code):
		return int(code), true
	case errors.As(err, &usage):
		return result.ExitRefused, false
	}
	verdict, _ := suite.Classify(ctx, err)
	return verdict.Exit(), false
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "parity",
		Short: "Prove that replayed GPU work gives the bits of eager PyTorch",
		Long: `parity runs a model family in several ways, hands all of them the same weights and inputs, and compares what comes
back bit for bit, of one step of inference or after every step of training:

  reference-eager  PyTorch, one operation after the other
  reference-graph  PyTorch, captured into a CUDA graph and replayed
  native-eager     the native engine, one operation after the other
  native-graph     the native engine, captured and replayed

Each of them runs in a fresh process. Without a GPU the native engine runs on the device "host", the CPU: its graph must
give its eager bits, and its error is measured against double precision. Only a GPU can prove a family exact.

Exit status: 0 exact, or consistent on the host; 1 an arm differs, or eager PyTorch does not reproduce itself; 2 refused,
or called wrongly; 3 something broke (a plugin is missing, crashed or hung), or interrupted.`,
		Example: `  parity doctor
  parity list
  parity verify resnet yolo9
  parity verify yolo9 --size t --imgsz 640 --precision fp32,bf16 --device cuda:0
  parity verify resnet --mode train --imgsz 224 --batch 16`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	a.plugins.add(root)
	root.AddCommand(a.certify(), a.certificate(), a.keys(), a.status())
	root.AddCommand(a.verify(), a.list(), a.record(), a.predict(), a.doctor(), a.version(), a.trace(), a.ops(), a.matrix(), a.report(), a.bench(), a.selftest())
	root.AddCommand(a.faultCommands()...)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // so that its arguments are looked at
	}
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	wrapArgs(root)
	return root
}

// wrapArgs makes wrong arguments errors of usage.
func wrapArgs(c *cobra.Command) {
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%w; see %s --help", err, cmd.CommandPath())
		}
		return nil
	}
}

// logLine writes a plugin's line for --verbose.
func (a *app) logLine(l host.Line) {
	fmt.Fprintf(a.err, "%s: %s: %s\n", l.Plugin, strings.ToLower(l.Level.String()), l.Text)
}

// release is set by the linker: -X main.release=v1.2.3.
var release string

// versionText is the release, or the module's version as the toolchain recorded it.
func versionText() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
