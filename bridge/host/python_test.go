package host_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// python finds an interpreter that has what a plugin needs, or skips the test.
var python = sync.OnceValue(func() string {
	for _, path := range []string{os.Getenv("SAMEBITS_PYTHON"), filepath.Join("..", "..", ".venv", "bin", "python")} {
		if path != "" && exec.Command(path, "-c", "import grpc, google.protobuf").Run() == nil {
			return path
		}
	}
	return ""
})

func pythonConfig(t testing.TB) host.Config {
	t.Helper()
	if python() == "" {
		t.Skip("no Python with grpcio: SAMEBITS_PYTHON is not set and there is no .venv")
	}
	wire, err := filepath.Abs("../../plugins/reference")
	if err != nil {
		t.Fatal(err)
	}
	return host.Config{Name: "python", Command: python(), Args: []string{filepath.Join("testdata", "arm.py")},
		Env: []string{"PYTHONPATH=" + wire, "PYTHONDONTWRITEBYTECODE=1"}}
}

func TestPythonSteps(t *testing.T) {
	leavesNothing(t)
	pythonSteps(t, pythonConfig(t))
}

func pythonSteps(t *testing.T, c host.Config) {
	t.Helper()
	p, inputs, outputs := ready(t, c)
	if d := p.Description(); d.Protocol != arm.Protocol || d.Plugin != "python-test" {
		t.Errorf("%+v", d)
	}
	for i := range 100 {
		in, out := i%2, i/2%2
		inputs[in][0], inputs[in][99] = byte(i), 255
		if err := p.Step(t.Context(), in, out); err != nil {
			t.Fatal(err)
		}
		if outputs[out][0] != byte(i+1) || outputs[out][99] != 0 {
			t.Fatalf("step %d: %d, %d", i, outputs[out][0], outputs[out][99])
		}
	}
	if stats, err := p.Stats(t.Context()); err != nil || stats.EagerSteps != 100 {
		t.Errorf("%+v, %v", stats, err)
	}
	region, big, err := p.Memory().Alloc(t.Context(), 40<<20)
	if err != nil {
		t.Fatal(err)
	}
	copy(big[len(big)-3:], "end")
	tail := host.Region{Offset: region.Offset + 40<<20 - 64, Length: 64}
	if r, err := p.Load(t.Context(), host.LoadRequest{Weights: tail}); err != nil || !strings.HasSuffix(r.RecordingDigest, "end") {
		t.Errorf("%+v, %v", r, err)
	}
	began := time.Now()
	if err := p.Stop(); err != nil || time.Since(began) > time.Second {
		t.Errorf("Stop: %v after %v", err, time.Since(began))
	}
}

func TestPythonRefusals(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, pythonConfig(t))
	for _, c := range []struct {
		deed   string
		kind   error
		reason string
		says   string
	}{
		{"error", nil, "PLUGIN_EXCEPTION", "KeyError: 'something broke'"},
		{"problems", nil, "UNKNOWN_OPERATION", "more problems"},
		{"out-of-memory", arm.ErrOutOfMemory, "OUT_OF_MEMORY", "3 bytes"},
	} {
		t.Run(c.deed, func(t *testing.T) {
			for _, call := range []string{"load", "step"} {
				_, err := p.Load(t.Context(), host.LoadRequest{Weights: share(t, p, []byte("w")),
					Options: []recording.Setting{setting(call, c.deed)}})
				if call == "step" && err == nil {
					bank, _, allocErr := p.Memory().AllocBank(t.Context(), []tensor.Spec{spec})
					if allocErr != nil {
						t.Fatal(allocErr)
					}
					banks := []host.Bank{bank}
					if _, err := p.Prepare(t.Context(), host.PrepareRequest{Inputs: banks, Outputs: banks}); err != nil {
						t.Fatal(err)
					}
					err = p.Step(t.Context(), 0, 0)
				}
				ps, _ := diag.Of(err)
				if len(ps) == 0 || ps[0].Reason != c.reason || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: got %v", call, err)
				}
				if call == "load" && c.kind != nil && !errors.Is(err, c.kind) {
					t.Errorf("%v is not %v", err, c.kind)
				}
			}
		})
	}
	if _, err := p.Build(t.Context(), host.BuildRequest{}); !errors.Is(err, arm.ErrUnimplemented) {
		t.Errorf("Build: %v", err)
	}
	if _, err := p.Situate(t.Context(), host.SituateRequest{Situation: "flood"}); !errors.Is(err, arm.ErrUnimplemented) ||
		!strings.Contains(err.Error(), `UNKNOWN_SITUATION: this arm knows no situation "flood"`) {
		t.Errorf("Situate: %v", err)
	}
	if _, err := p.Process(t.Context(), host.ProcessRequest{Stage: "peel"}); !errors.Is(err, arm.ErrUnimplemented) {
		t.Errorf("Process: %v", err)
	}
	if _, err := p.Prepare(t.Context(), host.PrepareRequest{Inputs: []host.Bank{{{Spec: spec}}}, Outputs: []host.Bank{{}}}); err == nil ||
		!strings.Contains(err.Error(), "inputs[0]/images: REGION") {
		t.Errorf("Prepare: %v", err)
	}
	if err := p.Step(t.Context(), 0, 0); err == nil || !strings.Contains(err.Error(), "WRONG_ORDER") {
		t.Errorf("a step after a bad Prepare: %v", err)
	}
	if _, err := p.Situate(t.Context(), host.SituateRequest{Situation: arm.Released}); !errors.Is(err, arm.ErrWrongOrder) {
		t.Errorf("Situate after a bad Prepare: %v", err)
	}
}

func TestPythonDeath(t *testing.T) {
	pythonDeath(t, pythonConfig)
}

func pythonDeath(t *testing.T, config func(testing.TB) host.Config) {
	t.Helper()
	for _, c := range []struct{ deed, reason, says string }{
		{"exit", host.ReasonCrashed, "last words"},
		{"segfault", host.ReasonCrashed, "segmentation fault"},
		{"hang", host.ReasonHung, "within 500ms"},
		{"sleep", host.ReasonHung, "within 500ms"},
	} {
		t.Run(c.deed, func(t *testing.T) {
			leavesNothing(t)
			cfg := config(t)
			cfg.Deadlines.Step = 500 * time.Millisecond
			p, _, _ := ready(t, cfg, "step", c.deed)
			began := time.Now()
			err := p.Step(t.Context(), 0, 0)
			var e *host.Error
			if !errors.As(err, &e) || e.Reason != c.reason || !strings.Contains(err.Error(), c.says) || time.Since(began) > 1500*time.Millisecond {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		})
	}
}

func TestPythonThatCannotMakeItsArm(t *testing.T) {
	leavesNothing(t)
	c := pythonConfig(t)
	c.Env = append(c.Env, "BROKEN=1")
	p, err := host.Start(t.Context(), c)
	if err == nil {
		t.Fatalf("it started; Stop: %v", p.Stop())
	}
	if !strings.Contains(err.Error(), "RuntimeError: no torch here") {
		t.Errorf("got %v", err)
	}
}

func TestPythonLog(t *testing.T) {
	leavesNothing(t)
	var mu sync.Mutex
	var lines []host.Line
	c := pythonConfig(t)
	c.Log = func(l host.Line) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, l)
	}
	ready(t, c, "load", "talk")
	for _, want := range []host.Line{
		{Level: slog.LevelInfo, Source: "stderr", Text: "printed"},
		{Level: slog.LevelInfo, Source: "stderr", Text: "from a child"},
		{Level: slog.LevelInfo, Source: "stderr", Text: "from its standard error"},
		{Level: slog.LevelWarn, Source: "log", Text: "a structured line"},
	} {
		eventually(t, time.Second, want.Text, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(lines, func(l host.Line) bool {
				return l.Level == want.Level && l.Source == want.Source && strings.HasPrefix(l.Text, want.Text)
			})
		})
	}
}

func TestPythonByHand(t *testing.T) {
	c := pythonConfig(t)
	cmd := exec.Command(c.Command, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "does nothing by hand") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPythonStopsWhenItsStepHangs(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, pythonConfig(t), "step", "sleep")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Step(ctx, 0, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if alive := syscall.Kill(p.PID(), 0) == nil; alive {
		<-p.Done()
	}
}
