// Command parity proves, bit for bit, that arms of a model family agree: eager PyTorch, its replayed CUDA graph, and the
// native engine, eager and replayed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"samebits/bridge/host"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second interrupt ends the program at once; the plugins see that and end, too
	}()
	a := &app{out: os.Stdout, err: os.Stderr, terminal: hasWidth(os.Stderr), shown: term.IsTerminal(int(os.Stdout.Fd())), backend: findPlugins}
	os.Exit(a.run(ctx, os.Args[1:]))
}

// run runs one command and gives the exit status.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	status, silent := exitStatus(ctx, err)
	switch {
	case silent:
	case interrupted(ctx, err):
		fmt.Fprintln(a.err, "parity: interrupted")
	default:
		fmt.Fprintf(a.err, "parity: %v\n", err)
	}
	return status
}

// interrupted reports whether an error says no more than that the program was interrupted: a call ended with it, or a plugin.
func interrupted(ctx context.Context, err error) bool {
	var gone *host.Error
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.As(err, &gone))
}

// hasWidth reports whether f is a terminal that a bar can be drawn on: some have no columns.
func hasWidth(f *os.File) bool {
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0
}
