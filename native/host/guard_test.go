//go:build linux && amd64

package host

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// guarded makes the test's own program act as a plugin that compiles: it guards, starts a child, and tells its number.
const guarded = "SAMEBITS_TEST_GUARDED"

func init() {
	if os.Getenv(guarded) == "" {
		return
	}
	release, err := guard()
	if err != nil {
		panic(err)
	}
	child := exec.Command("sleep", "3600")
	child.Stdout = os.Stdout
	if err := child.Start(); err != nil {
		panic(err)
	}
	fmt.Println(child.Process.Pid)
	if os.Getenv(guarded) == "ends" {
		_ = child.Process.Kill()
		_ = child.Wait()
		release()
		fmt.Println("well")
		os.Exit(0)
	}
	select {}
}

func startGuarded(t *testing.T, how string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), guarded+"="+how, pluginVariable+"=arm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	return cmd, lines
}

// A plugin that is killed takes what it has started along.
func TestGuard(t *testing.T) {
	cmd, lines := startGuarded(t, "hangs")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadByte(); err != io.EOF { // the child holds the pipe, too, so this is its end
		t.Errorf("it does not end: %v", err)
	}
	_ = cmd.Wait() // it was killed
}

func TestGuardOfOneThatEnds(t *testing.T) {
	cmd, lines := startGuarded(t, "ends")
	if line, err := lines.ReadString('\n'); err != nil || line != "well\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
