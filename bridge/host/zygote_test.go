package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"samebits/bridge/host"
)

func zygoteConfig(t testing.TB) host.Config {
	t.Helper()
	c := pythonConfig(t)
	c.Name, c.Args = "zygote", []string{filepath.Join("testdata", "zygote.py")}
	return c
}

// forkedConfig gives plugins of a zygote that the test ends.
func forkedConfig(t testing.TB) host.Config {
	t.Helper()
	z, err := host.StartZygote(t.Context(), zygoteConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Stop)
	c := pythonConfig(t)
	c.Zygote = z
	return c
}

// A forked plugin does what one does that was started from its file.
func TestForkedSteps(t *testing.T) {
	leavesNothing(t)
	c := forkedConfig(t)
	for range 3 {
		pythonSteps(t, c)
	}
}

func TestForkedDeath(t *testing.T) { pythonDeath(t, forkedConfig) }

func TestForkedAtOnce(t *testing.T) {
	leavesNothing(t)
	c := forkedConfig(t)
	var plugins [8]*host.Plugin
	var starting sync.WaitGroup
	for i := range plugins {
		starting.Go(func() {
			p, err := host.Start(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			plugins[i] = p
		})
	}
	starting.Wait()
	numbers := map[int]bool{}
	for _, p := range plugins {
		if p == nil {
			continue
		}
		numbers[p.PID()] = true
		if group, err := syscall.Getpgid(p.PID()); err != nil || group != p.PID() {
			t.Errorf("the plugin's group is %d, %v", group, err)
		}
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}
	if len(numbers) != len(plugins) {
		t.Errorf("%d processes", len(numbers))
	}
}

// A fork has no descriptors of others, and an environment of its own.
func TestForkedAlone(t *testing.T) {
	leavesNothing(t)
	c := forkedConfig(t)
	first := start(t, c)
	c.Env = append(c.Env, "BROKEN=1")
	if _, err := host.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no torch here") {
		t.Errorf("the environment did not reach it: %v", err)
	}
	c = pythonConfig(t)
	alone := start(t, c)
	if a, b := openFiles(t, first.PID()), openFiles(t, alone.PID()); len(a) != len(b) {
		t.Errorf("open are %v, of one that was not forked %v", a, b)
	}
}

func openFiles(t *testing.T, pid int) []string {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			targets = append(targets, target)
		}
	}
	return targets
}

func TestZygoteThatCannot(t *testing.T) {
	for _, c := range []struct{ how, reason, says string }{
		{"fails", host.ReasonStart, "ImportError: no torch here"},
		{"threads", host.ReasonStart, "what it imported started 1 threads"},
		{"dies", host.ReasonStart, "it ended: exit status 3"},
		{"sleeps", host.ReasonStartDeadline, "PLUGIN_START_DEADLINE: did not answer within 2s (during start)"},
	} {
		t.Run(c.how, func(t *testing.T) {
			leavesNothing(t)
			config := zygoteConfig(t)
			config.Env = append(config.Env, "ZYGOTE="+c.how)
			config.StartDeadline = 2 * time.Second
			z, err := host.StartZygote(t.Context(), config)
			var e *host.Error
			if err == nil {
				z.Stop()
			}
			if !errors.As(err, &e) || e.Reason != c.reason || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		leavesNothing(t)
		config := zygoteConfig(t)
		config.Env = append(config.Env, "ZYGOTE=sleeps")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		var e *host.Error
		if _, err := host.StartZygote(ctx, config); !errors.As(err, &e) || e.Reason != host.ReasonInterrupted || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		leavesNothing(t)
		config := zygoteConfig(t)
		config.Dir = filepath.Join(t.TempDir(), "missing")
		if _, err := host.StartZygote(t.Context(), config); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "zygote zygote: ") {
			t.Errorf("got %v", err)
		}
	})
	if adopts(t) {
		t.Error("orphans still come here")
	}
	config := zygoteConfig(t)
	config.Command = "/nowhere/python"
	var e *host.Error
	if _, err := host.StartZygote(t.Context(), config); !errors.As(err, &e) || e.Reason != host.ReasonMissing {
		t.Errorf("got %v", err)
	}
}

// adopts reports whether orphans become children of this process.
func adopts(t *testing.T) bool {
	t.Helper()
	var set int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&set)), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	return set != 0
}

func TestForkThatFails(t *testing.T) {
	for _, c := range []struct{ how, says string }{
		{"dies", "ended before it said anything: exit status 4"},
		{"raises", "RuntimeError: a mistake in the plugin"},
	} {
		t.Run(c.how, func(t *testing.T) {
			leavesNothing(t)
			config := forkedConfig(t)
			good := config
			config.Env = append(config.Env, "FORK="+c.how)
			_, err := host.Start(t.Context(), config)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			start(t, good) // the zygote lives
		})
	}
}

// A plugin outlives its zygote; the next one does not start.
func TestZygoteEnds(t *testing.T) {
	leavesNothing(t)
	z, err := host.StartZygote(t.Context(), zygoteConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	c := pythonConfig(t)
	c.Zygote = z
	p := start(t, c)
	other, err := host.StartZygote(t.Context(), zygoteConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	z.Stop()
	z.Stop()
	if alive(z.PID()) || !alive(other.PID()) || !adopts(t) {
		t.Errorf("it lives %t, the other one %t, orphans come here %t", alive(z.PID()), alive(other.PID()), adopts(t))
	}
	other.Stop()
	if adopts(t) {
		t.Error("orphans still come here")
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	var e *host.Error
	if _, err := host.Start(t.Context(), c); !errors.As(err, &e) || e.Reason != host.ReasonStart {
		t.Errorf("got %v", err)
	}
}

// A host that is killed takes zygote and forks along.
func TestKilledHostLeavesNoFork(t *testing.T) {
	leavesNothing(t)
	zygoteConfig(t) // or skip
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), actAs+"=forking-host")
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
	var pid, zygote int
	if _, err := fmt.Sscan(line, &pid, &zygote); err != nil || !alive(pid) || !alive(zygote) {
		t.Fatalf("plugin and zygote %q: %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as we know
	eventually(t, time.Second, "the plugin is gone", func() bool { return !alive(pid) })
	eventually(t, time.Second, "the zygote is gone", func() bool { return !alive(zygote) })
}

// forkingHost starts a zygote and a plugin, tells their numbers, and waits to be killed.
func forkingHost() {
	config := func(script string) host.Config {
		wire, _ := filepath.Abs("../../plugins/reference") // the folder is there
		return host.Config{Name: "forked", Command: python(), Args: []string{filepath.Join("testdata", script)},
			Env: []string{"PYTHONPATH=" + wire, "PYTHONDONTWRITEBYTECODE=1"}}
	}
	z, err := host.StartZygote(context.Background(), config("zygote.py"))
	if err != nil {
		panic(err)
	}
	c := config("arm.py")
	c.Zygote = z
	p, err := host.Start(context.Background(), c)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PID(), z.PID())
	select {}
}
