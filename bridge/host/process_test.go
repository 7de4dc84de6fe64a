package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
)

// A process that was to be killed before it was started does not live.
func TestKilledBeforeStart(t *testing.T) {
	p := newProcess(executed{exec.Command("/bin/sleep", "1000")}, &journal{plugin: "p", keep: 5})
	p.afterStart = func() error { return nil }
	if err := p.Kill(t.Context()); err != nil || p.ID() != "" {
		t.Fatalf("%q, %v", p.ID(), err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.done.Done():
	case <-time.After(10 * time.Second):
		t.Error("it lives")
		if err := p.Kill(context.Background()); err != nil {
			t.Fatal(err)
		}
		<-p.done.Done()
	}
	if exit, ended := p.ended(); !ended || exit.Signal != syscall.SIGKILL {
		t.Errorf("%v, %v", exit, ended)
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Errorf("Kill of one that is gone: %v", err)
	}
}

// A step ends with the process, also where somebody else holds the other end of its socket.
func TestStepEndsWithTheProcess(t *testing.T) {
	ours, theirs, err := newStepPair()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(ours.Close(), theirs.Close()) }()
	p := &Plugin{config: Config{Deadlines: Deadlines{Step: time.Hour}}, ends: &descriptors{step: ours},
		process: newProcess(executed{exec.Command("/bin/true")}, nil)}
	stepped := make(chan error, 1)
	go func() {
		_, err := p.exchange(context.Background())
		stepped <- err
	}()
	if _, err := theirs.Read(make([]byte, 1)); err != nil { // it waits
		t.Fatal(err)
	}
	p.process.finish()
	select {
	case err := <-stepped:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for an answer")
	}
}

func TestExits(t *testing.T) {
	for text, exit := range map[string]Exit{
		"exit status 3": {Code: 3}, "signal 9 (killed)": {Code: -1, Signal: syscall.SIGKILL},
		"signal 11 (segmentation fault), core dumped": {Code: -1, Signal: syscall.SIGSEGV, Core: true},
	} {
		if exit.String() != text {
			t.Errorf("%s instead of %s", exit, text)
		}
	}
}

// A variable that is not set is not set for a plugin: an empty CUDA_VISIBLE_DEVICES would hide all GPUs.
func TestUnsetVariables(t *testing.T) {
	t.Setenv("LANG", "")
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	if err := os.Unsetenv("CUDA_VISIBLE_DEVICES"); err != nil {
		t.Fatal(err)
	}
	env := environment([]string{"A=1"}, []inherited{{envStep, nil}, {envLife, nil}}, []string{"A=2"})
	if slices.ContainsFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "CUDA_VISIBLE_DEVICES") }) || !slices.Contains(env, "LANG=") {
		t.Errorf("%q", env)
	}
	if last := []string{"A=1", "A=2", envStep + "=3", envLife + "=4"}; !slices.Equal(env[len(env)-len(last):], last) {
		t.Errorf("%q", env)
	}
}

// An error for people says what happened, when, what to do, and what was written last, as far as there is something.
func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name    string
		err     error
		text    string
		problem diag.Problem
	}{
		{"all", &Error{Reason: ReasonCrashed, Plugin: "p", During: "Step", Summary: "ended", Detail: "do this", Log: []string{"a", "b"}, cause: broken},
			"plugin p: PLUGIN_CRASHED: ended (during Step); do this\n  its last lines:\n  | a\n  | b",
			diag.Problem{Reason: ReasonCrashed, Path: "plugin p", Summary: "ended (during Step)", Detail: "do this; its last lines: a | b"}},
		{"a log alone", &Error{Reason: ReasonHung, Plugin: "p", Summary: "was killed", Log: []string{"a"}, cause: broken},
			"plugin p: PLUGIN_HUNG: was killed\n  its last lines:\n  | a",
			diag.Problem{Reason: ReasonHung, Path: "plugin p", Summary: "was killed", Detail: "its last lines: a"}},
		{"little", &Error{Reason: ReasonStopped, Plugin: "p", Summary: "was stopped"}, "plugin p: PLUGIN_STOPPED: was stopped",
			diag.Problem{Reason: ReasonStopped, Path: "plugin p", Summary: "was stopped"}},
		{"a call that was refused", &CallError{Plugin: "p", Call: "Load", Code: codes.ResourceExhausted, Problems: diag.Problems{{Reason: "R", Summary: "s"}}},
			"plugin p: Load: R: s", diag.Problem{Reason: "R", Summary: "s"}},
		{"another", &CallError{Plugin: "p", Call: "Load", Code: codes.Internal, Problems: diag.Problems{{Reason: "R", Summary: "s"}}},
			"plugin p: Load: R: s", diag.Problem{Reason: "R", Summary: "s"}},
	} {
		problems, _ := diag.Of(c.err)
		if c.err.Error() != c.text || len(problems) != 1 || problems[0] != c.problem {
			t.Errorf("%s: %q, %+v", c.name, c.err, problems)
		}
		if e := (*Error)(nil); errors.As(c.err, &e) && errors.Is(c.err, broken) != (e.cause != nil) {
			t.Errorf("%s: its cause is not %v", c.name, e.cause)
		}
		if e := (*CallError)(nil); errors.As(c.err, &e) && errors.Is(c.err, arm.ErrOutOfMemory) != (e.Code == codes.ResourceExhausted) {
			t.Errorf("%s: it is of another kind", c.name)
		}
	}
}
