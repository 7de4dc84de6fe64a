package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"samebits/bridge/host"
)

func TestDeath(t *testing.T) {
	step := func(p *host.Plugin) error { return p.Step(context.Background(), 0, 0) }
	disturb := func(p *host.Plugin) error { return p.Disturb(context.Background(), host.DisturbRequest{}) }
	for _, c := range []struct {
		name   string
		deeds  []string
		call   func(*host.Plugin) error
		reason string
		during string
		signal syscall.Signal
		says   []string
	}{
		{"exit in a step", []string{"step", "exit"}, step, host.ReasonCrashed, "Step", 0, []string{"exit status 5", "last words", "words on standard output"}},
		{"exit in a call", []string{"disturb", "exit"}, disturb, host.ReasonCrashed, "Disturb", 0, []string{"exit status 5", "last words"}},
		{"segmentation fault in a step", []string{"step", "segfault"}, step, host.ReasonCrashed, "Step", 0, []string{"SIGSEGV"}},
		{"hang in a step", []string{"step", "hang"}, step, host.ReasonHung, "Step", 0, []string{"within 400ms"}},
		{"hang in a call", []string{"disturb", "hang"}, disturb, host.ReasonHung, "Disturb", 0, []string{"within 400ms"}},
		{"stopped by a signal", []string{"step", "stop-the-world"}, step, host.ReasonHung, "Step", 0, []string{"within 400ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			leavesNothing(t)
			cfg := config(t, "good")
			cfg.Deadlines.Step, cfg.Deadlines.Disturb = 400*time.Millisecond, 400*time.Millisecond
			p, _, _ := ready(t, cfg, c.deeds...)
			began := time.Now()
			err := c.call(p)
			if took := time.Since(began); took > 1400*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			var e *host.Error
			if !errors.As(err, &e) || e.Reason != c.reason || e.During != c.during {
				t.Fatalf("got %v", err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q is not in: %v", s, err)
				}
			}
			pid := p.PID()
			eventually(t, time.Second, "the process is gone", func() bool { return !alive(pid) })
			began = time.Now()
			if _, again := p.Stats(t.Context()); !errors.Is(again, err) {
				t.Errorf("a later call: %v", again)
			}
			if again := step(p); !errors.Is(again, err) {
				t.Errorf("a later step: %v", again)
			}
			if _, _, err := p.Memory().Alloc(t.Context(), 1<<30); err == nil {
				t.Error("memory grew without a plugin")
			}
			if time.Since(began) > 100*time.Millisecond {
				t.Errorf("later calls took %v", time.Since(began))
			}
			if err := p.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
		})
	}
}

func TestDeathBetweenCalls(t *testing.T) {
	for signal, says := range map[syscall.Signal]string{
		syscall.SIGTERM: "signal 15 (terminated)",
		syscall.SIGKILL: "signal 9 (killed); somebody killed it, as the kernel does",
	} {
		leavesNothing(t)
		p, _, _ := ready(t, config(t, "good"))
		if err := syscall.Kill(p.PID(), signal); err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		var e *host.Error
		if err := p.Disturb(t.Context(), host.DisturbRequest{}); !errors.As(err, &e) || e.Exit == nil || e.Exit.Signal != signal ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("got %v", err)
		}
	}
}

func TestStopKillsWhatDoesNotAnswer(t *testing.T) {
	leavesNothing(t)
	c := config(t, "good")
	c.StopDeadline = 200 * time.Millisecond
	p := start(t, c)
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped(t, p.PID())
	began := time.Now()
	var e *host.Error
	if err := p.Stop(); !errors.As(err, &e) || e.Reason != host.ReasonHung || time.Since(began) > time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if alive(p.PID()) {
		t.Error("it lives")
	}
}

// stopped waits until all threads of a process stand still: until then one of them may answer.
func stopped(t *testing.T, pid int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		running := len(states) == 0
		for _, file := range states {
			data, err := os.ReadFile(file)
			running = running || err == nil && !bytes.Contains(data, []byte(") T "))
		}
		if !running {
			return
		}
	}
	t.Fatal("it was told to stand still, and does not")
}

func TestGroupDiesWithThePlugin(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"), "disturb", "child", "step", "exit")
	if err := p.Disturb(t.Context(), host.DisturbRequest{}); err != nil {
		t.Fatal(err)
	}
	children := childrenOf(p.PID())
	if len(children) != 1 {
		t.Fatalf("children %v", children)
	}
	for _, target := range openFiles(t, children[0]) {
		if strings.Contains(target, "samebits") || strings.HasPrefix(target, "socket:") {
			t.Errorf("the child holds %s", target)
		}
	}
	began := time.Now()
	err := p.Step(t.Context(), 0, 0) // the child holds its standard error
	if took := time.Since(began); err == nil || took > time.Second {
		t.Errorf("%v after %v", err, took)
	}
	eventually(t, time.Second, "the child is gone", func() bool { return !alive(children[0]) })
}
