package host_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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

// ready starts the test arm, loads it with its misdeeds, and prepares banks: two of inputs, two of outputs.
func ready(t *testing.T, c host.Config, deeds ...string) (p *host.Plugin, inputs, outputs [][]byte) {
	t.Helper()
	p = start(t, c)
	request := host.LoadRequest{Weights: share(t, p, []byte("w"))}
	for i := 0; i < len(deeds); i += 2 {
		request.Options = append(request.Options, setting(deeds[i], deeds[i+1]))
	}
	if _, err := p.Load(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	var prepare host.PrepareRequest
	for range 2 {
		bank, data, err := p.Memory().AllocBank(t.Context(), []tensor.Spec{spec})
		if err != nil {
			t.Fatal(err)
		}
		prepare.Inputs, inputs = append(prepare.Inputs, bank), append(inputs, data[0])
		bank, data, err = p.Memory().AllocBank(t.Context(), []tensor.Spec{spec})
		if err != nil {
			t.Fatal(err)
		}
		prepare.Outputs, outputs = append(prepare.Outputs, bank), append(outputs, data[0])
	}
	if _, err := p.Prepare(t.Context(), prepare); err != nil {
		t.Fatal(err)
	}
	return p, inputs, outputs
}

func share(t *testing.T, p *host.Plugin, data []byte) host.Region {
	t.Helper()
	region, place, err := p.Memory().Alloc(t.Context(), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	copy(place, data)
	return region
}

func TestSteps(t *testing.T) {
	leavesNothing(t)
	p, inputs, outputs := ready(t, config(t, "good"))
	for i := range 200 {
		in, out := i%2, i/2%2
		for j := range inputs[in] {
			inputs[in][j] = byte(i + j)
		}
		if err := p.Step(t.Context(), in, out); err != nil {
			t.Fatal(err)
		}
		for j, b := range outputs[out] {
			if b != byte(i+j+1) {
				t.Fatalf("step %d: byte %d is %d, want %d", i, j, b, byte(i+j+1))
			}
		}
	}
	if p.StepTime() <= 0 || p.StepTime() > time.Second {
		t.Errorf("step time %v", p.StepTime())
	}
	stats, err := p.Stats(t.Context())
	if err != nil || stats.EagerSteps != 200 || stats.FallbackReason != "none" {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	var e *host.Error
	if err := p.Step(t.Context(), 0, 0); !errors.As(err, &e) || e.Reason != host.ReasonStopped {
		t.Errorf("a step after Stop: %v", err)
	}
	if _, _, err := p.Memory().Alloc(t.Context(), 1); err == nil {
		t.Error("memory after Stop")
	}
}

func TestCalls(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"))
	if d, err := p.Describe(t.Context()); err != nil || d.Protocol != arm.Protocol || d.Plugin != "test" || d.Version != "1.2" ||
		!slices.Equal(d.Arms, p.Description().Arms) {
		t.Errorf("Describe: %+v, %v", d, err)
	}
	weights := []byte("the weights")
	if r, err := p.Load(t.Context(), host.LoadRequest{Weights: share(t, p, weights)}); err != nil || r.RecordingDigest != string(weights) ||
		len(r.Inputs) != 1 || r.Inputs[0].Bytes() != 100 {
		t.Errorf("Load: %+v, %v", r, err)
	}
	if r, err := p.Measure(t.Context(), host.MeasureRequest{Iterations: 3}); err == nil {
		t.Errorf("Measure with the banks of what was loaded before: %+v", r)
	}
	bank, _, err := p.Memory().AllocBank(t.Context(), []tensor.Spec{spec})
	if err != nil {
		t.Fatal(err)
	}
	banks := []host.Bank{bank}
	if r, err := p.Prepare(t.Context(), host.PrepareRequest{Inputs: banks, Outputs: banks, CUDAGraph: true}); err != nil ||
		!r.Captured || r.Nodes != 7 || r.PeakBytes != 1<<40 {
		t.Errorf("Prepare: %+v, %v", r, err)
	}
	if r, err := p.Measure(t.Context(), host.MeasureRequest{Iterations: 3}); err != nil || len(r.Milliseconds) != 3 {
		t.Errorf("Measure: %+v, %v", r, err)
	}
	if err := p.Disturb(t.Context(), host.DisturbRequest{Churn: true}); err != nil {
		t.Errorf("Disturb: %v", err)
	}
	// The test arm claims a tensor of 2^80 elements.
	_, err = p.Trace(t.Context(), host.TraceRequest{Want: &host.Wanted{Result: 4}})
	if ps, _ := diag.Of(err); len(ps) != 1 || ps[0].Reason != "PLUGIN_REPLY" || ps[0].Path != "4" {
		t.Errorf("Trace: %v", err)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

func TestBuildRecordExport(t *testing.T) {
	leavesNothing(t)
	p := start(t, config(t, "builder"))
	built, err := p.Build(t.Context(), host.BuildRequest{Family: "resnet", Size: "18", Precision: "bf16", ImgSize: 224})
	if err != nil || built.WeightsLength != 12 || built.ImgSize != 224 {
		t.Fatalf("%+v, %v", built, err)
	}
	inputs, data, err := p.Memory().AllocBank(t.Context(), built.Inputs)
	if err != nil {
		t.Fatal(err)
	}
	data[0][0] = '!'
	recorded, err := p.Record(t.Context(), inputs)
	if err != nil || recorded.RecordingLength != 13 || len(recorded.Outputs) != 1 {
		t.Fatalf("%+v, %v", recorded, err)
	}
	inputs[0].Region.Length--
	if _, err := p.Record(t.Context(), inputs); err == nil || !strings.Contains(err.Error(), "inputs/images: REGION") {
		t.Errorf("a bank that is too small: %v", err)
	}
	region, place, err := p.Memory().Alloc(t.Context(), 23)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Export(t.Context(), host.ExportRequest{What: arm.TheRecording, Region: region}); err != nil || string(place) != "recording resnet18bf16!" {
		t.Errorf("%q, %v", place, err)
	}
}

func TestRefusals(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"))
	load := func(deed string) func() error {
		return func() error {
			_, err := p.Load(t.Context(), host.LoadRequest{Options: []recording.Setting{setting("load", deed)}})
			return err
		}
	}
	banks := []host.Bank{{{Spec: spec, Region: host.Region{Offset: 1 << 20, Length: 100}}}}
	prepare := func(change func(*host.Placed)) func() error {
		return func() error {
			wrong := banks[0][0]
			change(&wrong)
			_, err := p.Prepare(t.Context(), host.PrepareRequest{Inputs: banks, Outputs: []host.Bank{{wrong}}})
			return err
		}
	}
	for _, c := range []struct {
		name   string
		call   func() error
		kind   error
		reason string
		says   string
	}{
		{"no Build", func() error { _, err := p.Build(t.Context(), host.BuildRequest{}); return err }, arm.ErrUnimplemented, "UNIMPLEMENTED", "no Build"},
		{"no Record", func() error { _, err := p.Record(t.Context(), nil); return err }, arm.ErrUnimplemented, "UNIMPLEMENTED", "no Record"},
		{"no Export", func() error { return p.Export(t.Context(), host.ExportRequest{What: arm.TheWeights}) }, arm.ErrUnimplemented, "UNIMPLEMENTED", "no Export"},
		{"panic", load("panic"), nil, "PLUGIN_PANIC", "nil map"},
		{"every problem", load("problems"), nil, "UNKNOWN_OPERATION", "operations[9]"},
		{"too many problems", load("many-problems"), nil, "UNKNOWN_OPERATION", "more problems"},
		{"long problem", load("long-problem"), nil, "LONG", "é"},
		{"plain error", load("error"), nil, "PLUGIN_ERROR", "something broke"},
		{"out of memory", load("out-of-memory"), arm.ErrOutOfMemory, "OUT_OF_MEMORY", "3 bytes"},
		{"region past the end", func() error {
			_, err := p.Load(t.Context(), host.LoadRequest{Weights: host.Region{Offset: 1 << 30, Length: 64}})
			return err
		}, nil, "REGION", "no attached range"},
		{"region over the control block", func() error {
			_, err := p.Load(t.Context(), host.LoadRequest{Weights: host.Region{Length: 64}})
			return err
		}, nil, "REGION", "no attached range"},
		{"no banks", func() error { _, err := p.Prepare(t.Context(), host.PrepareRequest{}); return err }, nil, "BANK", "0 and 0"},
		{"odd offset", prepare(func(w *host.Placed) { w.Region.Offset++ }), nil, "REGION", "aligned"},
		{"short region", prepare(func(w *host.Placed) { w.Region.Length-- }), nil, "REGION", "outputs[0]/images"},
		{"no dtype", prepare(func(w *host.Placed) { w.DType = 99 }), nil, "TENSOR", "dtype"},
		{"negative size", prepare(func(w *host.Placed) { w.Sizes = []int64{-2, -50} }), nil, "TENSOR", "sizes"},
		{"overflowing sizes", prepare(func(w *host.Placed) { w.Sizes = []int64{1 << 62, 4} }), nil, "TENSOR", "sizes"},
		{"step before Prepare", func() error { return p.Step(t.Context(), 0, 0) }, nil, "WRONG_ORDER", "Prepare"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.call()
			var refused *host.CallError
			if !errors.As(err, &refused) || refused.Problems[0].Reason != c.reason {
				t.Fatalf("got %v, want a CallError with %s", err, c.reason)
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v is not %v", err, c.kind)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q is not in %v", c.says, err)
			}
			if err := p.Ping(t.Context()); err != nil {
				t.Errorf("it serves no more: %v", err)
			}
		})
	}
}

func TestStepRefusals(t *testing.T) {
	for _, c := range []struct{ name, deed, reason, says string }{
		{"panic", "panic", "PLUGIN_PANIC", "nil map"},
		{"problems", "problems", "UNKNOWN_OPERATION", "operations[9]"},
		{"more problems than the block holds", "many-problems", "UNKNOWN_OPERATION", "more problems"},
		{"a problem longer than the block", "long-problem", "LONG", "…"},
		{"error", "error", "PLUGIN_ERROR", "something broke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			leavesNothing(t)
			p, _, _ := ready(t, config(t, "good"), "step", c.deed)
			for range 2 { // it goes on serving
				err := p.Step(t.Context(), 1, 1)
				if ps, _ := diag.Of(err); len(ps) == 0 || ps[0].Reason != c.reason || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
			}
			if err := p.Step(t.Context(), 2, 0); err == nil || !strings.Contains(err.Error(), "input bank 2: Prepare gave 2") {
				t.Errorf("a bank that is not there: %v", err)
			}
			if err := p.Step(t.Context(), 0, -1); err == nil {
				t.Error("a negative bank")
			}
			if err := p.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
		})
	}
}

func TestEnvironmentByAllowList(t *testing.T) {
	leavesNothing(t)
	t.Setenv("LD_LIBRARY_PATH", "/evil")
	t.Setenv("PYTHONPATH", "/evil")
	t.Setenv("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1")
	t.Setenv("CUDA_VISIBLE_DEVICES", "0")
	c := config(t, "good")
	c.Env = append(c.Env, "EXTRA=1", "SAMEBITS_FD_STEP=99") // ours wins
	p, _, _ := ready(t, c)
	if err := p.Step(t.Context(), 0, 0); err != nil {
		t.Error(err)
	}
	got := strings.Fields(p.Description().Environment[0].Value)
	for _, key := range []string{"LD_LIBRARY_PATH", "PYTHONPATH", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "PLUGIN_CLIENT_CERT"} {
		if slices.Contains(got, key) {
			t.Errorf("%s reached the plugin", key)
		}
	}
	for _, key := range []string{"PATH", "TMPDIR", "CUDA_VISIBLE_DEVICES", "EXTRA"} {
		if !slices.Contains(got, key) {
			t.Errorf("%s did not reach the plugin", key)
		}
	}
}

func TestLog(t *testing.T) {
	leavesNothing(t)
	var mu sync.Mutex
	var lines []host.Line
	c := config(t, "good")
	c.Log = func(l host.Line) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, l)
	}
	p, _, _ := ready(t, c, "load", "talk")
	has := func(level slog.Level, source, text string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(lines, func(l host.Line) bool {
				return l.Plugin == "good" && l.Level == level && l.Source == source && strings.HasPrefix(l.Text, text)
			})
		}
	}
	eventually(t, time.Second, "standard output", has(slog.LevelInfo, "stdout", "zzz"))
	eventually(t, time.Second, "standard error", has(slog.LevelInfo, "stderr", "a plain line"))
	eventually(t, time.Second, "JSON that only looks like a log", has(slog.LevelInfo, "stderr", `{"@message": 1`))
	eventually(t, time.Second, "the plugin's log", has(slog.LevelWarn, "log", "a structured line answer=42"))
	if err := p.Step(t.Context(), 0, 0); err != nil {
		t.Error(err)
	}
}

func TestMemoryGrows(t *testing.T) {
	leavesNothing(t)
	p, inputs, outputs := ready(t, config(t, "good"), "step", "slow")
	if err := p.Disturb(t.Context(), host.DisturbRequest{}); err != nil {
		t.Fatal(err)
	}
	stepped := make(chan error, 1)
	copy(inputs[0], bytes.Repeat([]byte{41}, 100))
	go func() { stepped <- p.Step(t.Context(), 0, 0) }()
	time.Sleep(50 * time.Millisecond)
	before := p.Memory().Size()
	region, big, err := p.Memory().Alloc(t.Context(), 100<<20+1) // while the step runs
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-stepped:
		t.Errorf("the memory grew only after the step: %v", err)
		stepped <- err
	default:
	}
	if err := <-stepped; err != nil {
		t.Fatal(err)
	}
	if outputs[0][99] != 42 {
		t.Error("the old slices are no longer shared")
	}
	if p.Memory().Size() < before+100<<20 || region.Offset%64 != 0 || int64(len(big)) != region.Length {
		t.Errorf("%+v of %d", region, p.Memory().Size())
	}
	digest := []byte("far away")
	copy(big[len(big)-len(digest):], digest)
	tail := host.Region{Offset: region.Offset + 100<<20 - 64, Length: 65}
	if r, err := p.Load(t.Context(), host.LoadRequest{Weights: tail}); err != nil || !strings.HasSuffix(r.RecordingDigest, string(digest)) {
		t.Errorf("%q, %v", r.RecordingDigest, err)
	}
	size := p.Memory().Size()
	if err := p.Memory().Reset(); err != nil {
		t.Fatal(err)
	}
	again, place, err := p.Memory().Alloc(t.Context(), 100<<20)
	if err != nil || p.Memory().Size() != size || again.Offset != region.Offset || place[len(place)-1] != 0 {
		t.Errorf("after Reset: %+v of %d, %v", again, p.Memory().Size(), err)
	}
	for _, n := range []int64{-1, 1 << 60} {
		if _, _, err := p.Memory().Alloc(t.Context(), n); err == nil {
			t.Errorf("%d bytes were shared", n)
		}
	}
	if r, _, err := p.Memory().Alloc(t.Context(), 0); err != nil || r.Length != 0 {
		t.Errorf("no bytes: %+v, %v", r, err)
	}
}

func TestInterruptedCallLeavesThePlugin(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"), "disturb", "slow")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	if err := p.Disturb(ctx, host.DisturbRequest{}); !errors.Is(err, context.Canceled) || time.Since(began) > 500*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if err := p.Step(t.Context(), 0, 0); err != nil { // waits for the call that still runs
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

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
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"))
	if err := syscall.Kill(p.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	var e *host.Error
	if err := p.Disturb(t.Context(), host.DisturbRequest{}); !errors.As(err, &e) || e.Exit == nil || e.Exit.Signal != syscall.SIGTERM ||
		!strings.Contains(err.Error(), "signal 15 (terminated)") {
		t.Errorf("got %v", err)
	}
}

func TestStepInterrupted(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"), "step", "hang")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	err := p.Step(ctx, 0, 0)
	if took := time.Since(began); took > time.Second || !errors.Is(err, context.Canceled) {
		t.Errorf("%v after %v", err, took)
	}
	eventually(t, time.Second, "the process is gone", func() bool { return !alive(p.PID()) })
	if err := p.Step(ctx, 0, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a step that may not start: %v", err)
	}
}

func TestStopDuringStep(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"), "step", "hang")
	stepped := make(chan error, 1)
	go func() { stepped <- p.Step(context.Background(), 0, 0) }()
	time.Sleep(50 * time.Millisecond)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	var e *host.Error
	if err := <-stepped; !errors.As(err, &e) || e.Reason != host.ReasonStopped {
		t.Errorf("the step: %v", err)
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
	began := time.Now()
	var e *host.Error
	if err := p.Stop(); !errors.As(err, &e) || e.Reason != host.ReasonHung || time.Since(began) > time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if alive(p.PID()) {
		t.Error("it lives")
	}
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
	began := time.Now()
	err := p.Step(t.Context(), 0, 0) // the child holds its standard error
	if took := time.Since(began); err == nil || took > time.Second {
		t.Errorf("%v after %v", err, took)
	}
	eventually(t, time.Second, "the child is gone", func() bool { return !alive(children[0]) })
}

func TestPluginsSideBySide(t *testing.T) {
	leavesNothing(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			p, inputs, outputs := ready(t, config(t, "good"))
			for i := range 50 {
				inputs[0][0] = byte(i)
				if err := p.Step(t.Context(), 0, 1); err != nil || outputs[1][0] != byte(i+1) {
					t.Errorf("step %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}
