package host_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"samebits/bridge/host"
)

// The test binary is the plugin, too: with this variable it serves, or misbehaves, in the way that its value names.
const actAs = "SAMEBITS_TEST_ACT_AS"

func TestMain(m *testing.M) {
	if role := os.Getenv(actAs); role != "" {
		act(role)
		return
	}
	// A folder of our own makes left-over sockets visible, and a short one suits them.
	dir, err := os.MkdirTemp("/tmp", "sbt")
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	warmUp()
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// warmUp has the package start its one goroutine that stays, so that tests can count goroutines.
func warmUp() {
	if p, err := host.Start(context.Background(), host.Config{Command: "/bin/true"}); err == nil {
		_ = p.Stop()
	}
}

// config starts this binary in a role.
func config(t testing.TB, role string) host.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return host.Config{Name: role, Command: self, HostVersion: "test",
		Env: []string{actAs + "=" + role, "GORACE=atexit_sleep_ms=0"}} // the race detector sleeps before a process ends
}

func start(t *testing.T, c host.Config) *host.Plugin {
	t.Helper()
	p, err := host.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() }) // tests that care look at its error
	return p
}
