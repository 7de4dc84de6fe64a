package host_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
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
	if _, err := p.Situate(t.Context(), host.SituateRequest{Situation: arm.Seeded}); !errors.Is(err, arm.ErrWrongOrder) {
		t.Errorf("Situate before Prepare: %v", err)
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
	if _, err := p.Situate(t.Context(), host.SituateRequest{Situation: "flood"}); !errors.Is(err, arm.ErrUnimplemented) ||
		!strings.Contains(err.Error(), "UNKNOWN_SITUATION") {
		t.Errorf("Situate: %v", err)
	}
	if r, err := p.Situate(t.Context(), host.SituateRequest{Situation: arm.Seeded, Seed: 1 << 63}); err != nil ||
		!slices.Equal(r.Facts, []recording.Setting{setting("seed", "9223372036854775808")}) {
		t.Errorf("Situate: %+v, %v", r, err)
	}
	processed, place, err := p.Memory().AllocBank(t.Context(), []tensor.Spec{spec})
	if err != nil {
		t.Fatal(err)
	}
	place[0][0] = 42
	request := host.ProcessRequest{Stage: "peel", Settings: []recording.Setting{setting("a", "1"), setting("a", "2")}, Bank: processed}
	if r, err := p.Process(t.Context(), request); err != nil || len(r.Tensors) != 1 || r.Tensors[0].Name != spec.Name || !slices.Equal(r.Tensors[0].Sizes, spec.Sizes) ||
		!strings.HasPrefix(r.Text, "peel [{a 1} {a 2}] 42 xxx") || len(r.Text) < 8<<20 {
		t.Errorf("Process: %.100s, %v", r.Text, err)
	}
	request.Bank[0].Region.Offset += 32
	if _, err := p.Process(t.Context(), request); err == nil || !strings.Contains(err.Error(), "bank/images: REGION") {
		t.Errorf("Process of no place: %v", err)
	}
	// The test arm claims a tensor of 2^80 elements.
	_, err = p.Trace(t.Context(), host.TraceRequest{Want: &host.Wanted{Result: 4}})
	if ps, _ := diag.Of(err); len(ps) != 1 || ps[0].Reason != "PLUGIN_REPLY" || ps[0].Path != "4" {
		t.Errorf("Trace: %v", err)
	}
	if r, err := p.Trace(t.Context(), host.TraceRequest{}); err != nil || len(r.Operations) != 1 || r.Operations[0].Operation != 3 {
		t.Errorf("Trace of nothing in particular: %+v, %v", r, err)
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
		{"panic", load("panic"), nil, "PLUGIN_PANIC", "index out of range"},
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

// After a Prepare that was refused there are no banks, those of before neither.
func TestRefusedPrepare(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"))
	if err := p.Step(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Prepare(t.Context(), host.PrepareRequest{}); err == nil {
		t.Fatal("no banks were taken")
	}
	for name, err := range map[string]error{"WRONG_ORDER": p.Step(t.Context(), 0, 0), "BANK": func() error {
		_, err := p.Measure(t.Context(), host.MeasureRequest{Iterations: 1})
		return err
	}()} {
		if problems, _ := diag.Of(err); len(problems) != 1 || problems[0].Reason != name {
			t.Errorf("%v is not %s", err, name)
		}
	}
}

// A plugin frees what it holds before it ends; what goes wrong is in its log.
func TestClose(t *testing.T) {
	leavesNothing(t)
	p := start(t, config(t, "closer"))
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if last := p.Log(); !slices.Contains(last, "close error=it is lost") {
		t.Errorf("%q", last)
	}
}

// A plugin that has none of the calls refuses each, with what gRPC says where it names no problem.
func TestCallsThatAPluginLacks(t *testing.T) {
	leavesNothing(t)
	p := start(t, config(t, "bare"))
	ctx := t.Context()
	_, build := p.Build(ctx, host.BuildRequest{})
	_, record := p.Record(ctx, nil)
	_, load := p.Load(ctx, host.LoadRequest{})
	_, prepare := p.Prepare(ctx, host.PrepareRequest{})
	_, situate := p.Situate(ctx, host.SituateRequest{})
	_, trace := p.Trace(ctx, host.TraceRequest{})
	_, wanted := p.Trace(ctx, host.TraceRequest{Want: &host.Wanted{}})
	_, measure := p.Measure(ctx, host.MeasureRequest{})
	_, stats := p.Stats(ctx)
	_, process := p.Process(ctx, host.ProcessRequest{})
	_, _, attach := p.Memory().Alloc(ctx, 1)
	for name, err := range map[string]error{"Build": build, "Record": record, "Export": p.Export(ctx, host.ExportRequest{}), "Load": load,
		"Prepare": prepare, "Disturb": p.Disturb(ctx, host.DisturbRequest{}), "Situate": situate, "Trace": trace, "Trace ": wanted,
		"Measure": measure, "Stats": stats, "Process": process, "Attach": attach} {
		name = strings.TrimSpace(name)
		var refused *host.CallError
		if !errors.As(err, &refused) || !errors.Is(err, arm.ErrUnimplemented) || refused.Call != name || refused.Problems[0].Reason != "PLUGIN_ERROR" ||
			!strings.Contains(err.Error(), "method "+name+" not implemented (status Unimplemented)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.Ping(ctx); err != nil {
		t.Errorf("it serves no more: %v", err)
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
	if last := p.Log(); !slices.Contains(last, "a plain line") || !slices.Contains(last, "a structured line answer=42") {
		t.Errorf("kept: %q", last)
	}
	if err := p.Step(t.Context(), 0, 0); err != nil {
		t.Error(err)
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
