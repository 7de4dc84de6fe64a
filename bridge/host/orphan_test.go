package host_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A host that is killed takes its plugin along, though it had no chance to say anything.
func TestKilledHostLeavesNoPlugin(t *testing.T) {
	leavesNothing(t)
	for range 3 {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), actAs+"=host")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || !alive(pid) {
			t.Fatalf("plugin %q: %v", line, err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed, as we know
		eventually(t, time.Second, "the plugin is gone", func() bool { return !alive(pid) })
	}
}
