package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	rt "samebits/bridge/recording/recordingtest"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
)

// The test binary is the plugin, too: with this variable, which has the environment of its device.
const asPlugin = "SAMEBITS_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if text, is := os.LookupEnv(asPlugin); is {
		f := &fake{}
		if err := json.Unmarshal([]byte(text), &f.said); err != nil {
			panic(err)
		}
		serve.Serve(f)
		return
	}
	os.Exit(m.Run())
}

// fake has a GPU by its own word, and chooses recordings as the native plugin does: the first that takes a bank's tensors. A step gives
// the first byte of its recording's weights, to which a replay adds 100.
type fake struct {
	serve.Unimplemented
	said            []recording.Setting
	loaded          []*ran
	inputs, outputs []bank
	nodes           int
}

type ran struct {
	recording       *recording.Recording
	inputs, outputs []tensor.Spec
	gives           byte
	captured        bool
}

type bank struct {
	of   *ran
	data []byte
}

func (f *fake) Describe(context.Context) (serve.Description, error) {
	return serve.Description{Plugin: "fake", Devices: []string{"cuda:0"}, Environment: f.said}, nil
}

func specs(r *recording.Recording, of []recording.Named) (all []tensor.Spec) {
	for _, n := range of {
		v := r.Values[n.Value]
		all = append(all, tensor.Spec{Name: n.Name, DType: v.DType, Sizes: v.Sizes})
	}
	return all
}

func (f *fake) Load(_ context.Context, memory *serve.Memory, request serve.LoadRequest) (serve.LoadReply, error) {
	file, err := memory.Bytes(request.Recording)
	if err != nil {
		return serve.LoadReply{}, err
	}
	weights, err := memory.Bytes(request.Weights)
	if err != nil {
		return serve.LoadReply{}, err
	}
	r, err := recording.Decode(file)
	if err != nil {
		return serve.LoadReply{}, err
	}
	f.inputs, f.outputs = nil, nil
	if !slices.Contains(request.Options, recording.Setting{Key: "add", Value: "on"}) {
		f.loaded = nil
	}
	if string(weights) == "broken" {
		return serve.LoadReply{}, diag.New("BROKEN_WEIGHTS", "weights", "as told")
	}
	l := &ran{recording: r, inputs: specs(r, r.Inputs), outputs: specs(r, r.Outputs), gives: weights[0]}
	f.loaded = append(f.loaded, l)
	return serve.LoadReply{Inputs: l.inputs, Outputs: l.outputs, RecordingDigest: r.Digest}, nil
}

func (f *fake) Prepare(_ context.Context, memory *serve.Memory, request serve.PrepareRequest) (serve.PrepareReply, error) {
	f.inputs, f.outputs = nil, nil
	for _, list := range []struct {
		banks []serve.Bank
		to    *[]bank
		of    func(*ran) []tensor.Spec
	}{
		{request.Inputs, &f.inputs, func(l *ran) []tensor.Spec { return l.inputs }}, {request.Outputs, &f.outputs, func(l *ran) []tensor.Spec { return l.outputs }},
	} {
		for _, placed := range list.banks {
			data, err := memory.Tensor(placed[0])
			if err != nil {
				return serve.PrepareReply{}, err
			}
			i := slices.IndexFunc(f.loaded, func(l *ran) bool { return slices.Equal(list.of(l)[0].Sizes, placed[0].Sizes) })
			*list.to = append(*list.to, bank{f.loaded[i], data})
		}
	}
	if request.CUDAGraph {
		if f.inputs[0].data[0] == 99 {
			return serve.PrepareReply{}, diag.New("CAPTURE_FAILED", "", "as told")
		}
		for _, b := range f.inputs {
			b.of.captured = true
			f.nodes += int(b.data[0])
		}
	}
	return serve.PrepareReply{Captured: request.CUDAGraph}, nil
}

func (f *fake) Step(input, output int) error {
	l := f.inputs[input].of
	if f.inputs[input].data[0] == 98 {
		return diag.New("STEP_FAILED", "", "as told")
	}
	f.outputs[output].data[0] = l.gives
	if l.captured {
		f.outputs[output].data[0] += 100
	}
	return nil
}

func (f *fake) Situate(_ context.Context, request serve.SituateRequest) (serve.SituateReply, error) {
	if request.Situation != arm.Released {
		return serve.SituateReply{}, serve.UnknownSituation(request.Situation)
	}
	for _, l := range f.loaded {
		l.captured = false
	}
	return serve.SituateReply{}, nil
}

func (f *fake) Stats(context.Context) (serve.Stats, error) {
	return serve.Stats{NodesByKind: map[string]int64{"kernel": int64(f.nodes) - 1, "copy": 1}}, nil
}

// taking is a recording that takes n bytes, with weights. Its precision tells two of the same n apart.
func taking(t *testing.T, n int64, precision, weights string) Recording {
	t.Helper()
	b := rt.New("cuda")
	b.R.Header.ImgSize, b.R.Header.Precision = n, precision
	x, y := b.Tensor(recording.Input, "x", tensor.Uint8, n), b.Scratch(tensor.Uint8, n)
	b.Op("aten::add.Tensor", rt.Args(rt.Value("self", x), rt.Value("other", x), rt.Int("alpha", 1)), y)
	b.Input("x", x)
	b.Output("y", y)
	return Recording{File: rt.Encoded(t, b.R), Weights: []byte(weights)}
}

// certifiedFor has options for a fake on whose GPU the graphs of some recordings are certified.
func certifiedFor(t *testing.T, mode string, recordings ...Recording) Options {
	t.Helper()
	build, err := certificate.BuildOf(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var said []recording.Setting
	for _, r := range recordings {
		s := builtIn(t)
		p := &s.Predicate
		parsed, err := recording.Decode(r.File)
		if err != nil {
			t.Fatal(err)
		}
		h := parsed.Header
		p.Cell = certificate.Cell{Family: h.Family, Size: h.Size, Task: h.Task, ImgSize: h.ImgSize, Batch: h.Batch, Mode: h.Mode, Precision: h.Precision}
		p.Digests.Recording, p.Key[certificate.RecordingKey] = digest.Bytes(r.File), digest.Bytes(r.File)
		p.Environment[certificate.EngineKey], p.Key[certificate.EngineKey] = build, build
		program, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		s.Subject[0], s.Subject[1] = certificate.SubjectOf(certificate.RecordingSubject, r.File), certificate.SubjectOf(certificate.EngineSubject, program)
		if err := os.CopyFS(folder, os.DirFS(second(certified(t, s)))); err != nil {
			t.Fatal(err)
		}
		if said == nil {
			for _, name := range slices.Sorted(maps.Keys(p.Key)) {
				said = append(said, recording.Setting{Key: name, Value: p.Key[name]})
			}
			said = append(said, recording.Setting{Key: "cudnn.path", Value: installed(t, p.Key["torch"], p.Key["torch_revision"])})
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Plugin: os.Args[0], Env: []string{asPlugin + "=" + string(text), "GORACE=atexit_sleep_ms=0"}, Device: "cuda:0", CUDAGraph: mode, Certificates: folder}
}

func second(_ certificate.Predicate, folder string) string { return folder }

func opened(t *testing.T, o Options, r Recording) *Model {
	t.Helper()
	m, err := Open(t.Context(), o, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// predicted is the byte that n bytes give.
func predicted(t *testing.T, m *Model, n int64, first byte) byte {
	t.Helper()
	data := make([]byte, n)
	data[0] = first
	out, err := m.Predict(t.Context(), Input{Sizes: []int64{n}, DType: tensor.Uint8, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return out["y"][0]
}

func reason(err error) string {
	if problems, _ := diag.Of(err); len(problems) > 0 {
		return problems[0].Reason
	}
	return fmt.Sprint(err)
}

// Where a cell is certified its graph is replayed, in each mode as it says.
func TestCertified(t *testing.T) {
	r := taking(t, 2, "fp32", "\x01")
	for mode, want := range map[string][]byte{"": {1, 1, 1}, "true": {101, 101, 101}, "auto": {1, 1, 101}} {
		o := certifiedFor(t, mode, r)
		o.Log = func(line string) { t.Errorf("%q: it was said: %s", mode, line) }
		m := opened(t, o, r)
		for i, b := range want {
			if got := predicted(t, m, 2, 5); got != b {
				t.Errorf("%q: step %d gave %d instead of %d", mode, i, got, b)
			}
		}
		info := m.GraphInfo()
		if !info.Supported || len(info.Why) != 0 || info.Family != "tiny" || info.Replays+info.EagerSteps != 3 || info.EagerFallbacks != 0 {
			t.Errorf("%q: %+v", mode, info)
		}
		if mode == "" {
			continue
		}
		if info.Count != 1 || info.Nodes != 5 {
			t.Errorf("%q: %+v", mode, info)
		}
		if err := m.ReleaseGraphs(t.Context()); err != nil || m.GraphInfo().Count != 0 {
			t.Errorf("%q: %v, %+v", mode, err, m.GraphInfo())
		}
	}
}

// Where it is not, true is refused, and the plugin's end is waited for; the other modes run eagerly, and auto says why.
func TestNotCertified(t *testing.T) {
	r, other := taking(t, 2, "fp32", "\x01"), taking(t, 2, "bf16", "\x02")
	if _, err := Open(t.Context(), certifiedFor(t, "true", r), other); !errors.Is(err, arm.ErrUnimplemented) || reason(err) != certificate.None ||
		!strings.Contains(err.Error(), "tiny-t classify predict 2 batch 1 bf16 has no SUPPORTS_CUDA_GRAPH") {
		t.Errorf("%v", err)
	}
	for mode, lines := range map[string]int{"": 0, "auto": 1} {
		var said []string
		o := certifiedFor(t, mode, r)
		o.Log = func(line string) { said = append(said, line) }
		m := opened(t, o, other)
		for range 3 {
			if got := predicted(t, m, 2, 5); got != 2 {
				t.Errorf("%q: it gave %d", mode, got)
			}
		}
		info := m.GraphInfo()
		if info.Supported || len(info.Why) != 1 || info.Why[0].Reason != certificate.None || info.EagerSteps != 3 || len(said) != lines {
			t.Errorf("%q: %+v, %q", mode, info, said)
		}
		if err := m.CaptureGraph(t.Context(), 0, 0, 0); !errors.Is(err, arm.ErrUnimplemented) || m.GraphInfo().Captures != 0 {
			t.Errorf("%q: %v", mode, err)
		}
	}
}

// A recording that is refused is not run, whatever is added later, and leaves the others as they were.
func TestRefusedAddition(t *testing.T) {
	first, refused, added := taking(t, 2, "fp32", "\x01"), taking(t, 3, "bf16", "\x02"), taking(t, 3, "fp32", "\x03")
	m := opened(t, certifiedFor(t, "true", first, added), first)
	if got := predicted(t, m, 2, 5); got != 101 {
		t.Errorf("it gave %d", got)
	}
	for _, c := range []struct {
		name, want string
		r          Recording
	}{
		{"not certified", certificate.None, refused},
		{"refused by the plugin", "BROKEN_WEIGHTS", Recording{File: added.File, Weights: []byte("broken")}},
		{"no recording", "SCHEMA_VERSION", Recording{}},
	} {
		if err := m.Add(t.Context(), c.r); reason(err) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := predicted(t, m, 2, 5); got != 101 {
			t.Errorf("%s: the first one gave %d", c.name, got)
		}
	}
	if err := m.Add(t.Context(), added); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := predicted(t, m, 3, 7); got != 103 {
			t.Errorf("what was added gave %d", got)
		}
	}
	if info := m.GraphInfo(); !info.Supported || info.Count != 2 || info.Nodes != 12 || info.Captured[0].Nodes != 5 || info.Captured[1].Nodes != 7 || info.EagerSteps != 0 {
		t.Errorf("%+v", info)
	}
}

// What fails in a step is its error; a capture that fails leaves steps right.
func TestFailures(t *testing.T) {
	r := taking(t, 2, "fp32", "\x01")
	var said []string
	o := certifiedFor(t, "true", r)
	o.Log = func(line string) { said = append(said, line) }
	m := opened(t, o, r)
	if got := predicted(t, m, 2, 99); got != 1 || len(said) != 1 || !strings.Contains(said[0], "CAPTURE_FAILED") {
		t.Errorf("it gave %d, %q", got, said)
	}
	if err := m.CaptureGraph(t.Context(), 2, 1, tensor.Uint8); reason(err) != "CAPTURE_LATCHED" {
		t.Errorf("%v", err)
	}
	if _, err := m.Predict(t.Context(), Input{Sizes: []int64{2}, DType: tensor.Uint8, Data: []byte{98, 0}}); reason(err) != "STEP_FAILED" {
		t.Errorf("%v", err)
	}
	for name, in := range map[string]Input{
		"too few bytes": {[]int64{2}, tensor.Uint8, []byte{1}}, "another type": {[]int64{2}, tensor.Int8, []byte{1, 2}}, "another shape": {[]int64{1, 2}, tensor.Uint8, []byte{1, 2}},
	} {
		if _, err := m.Predict(t.Context(), in); reason(err) != "NO_RECORDING" || !strings.Contains(err.Error(), "there are x uint8[2]") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if in, out := m.Inputs(), m.Outputs(); len(in) != 1 || in[0].Name != "x" || len(out) != 1 || out[0].Name != "y" {
		t.Errorf("%v %v", in, out)
	}
	for _, c := range []struct {
		imgsz, batch int64
		dtype        tensor.DType
	}{{3, 0, 0}, {0, 2, 0}, {0, 0, tensor.Int8}} {
		if err := m.CaptureGraph(t.Context(), c.imgsz, c.batch, c.dtype); reason(err) != "NO_RECORDING" {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := m.ReleaseGraphs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.CaptureGraph(t.Context(), 2, 1, tensor.Uint8); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Predict(ctx, Input{Sizes: []int64{2}, DType: tensor.Uint8, Data: []byte{1, 2}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := m.ReleaseGraphs(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
