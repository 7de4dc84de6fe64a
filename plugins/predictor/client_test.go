package main

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/predict"
	"samebits/bridge/recording"
	rt "samebits/bridge/recording/recordingtest"
	"samebits/bridge/replay"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

// added is a recording that adds its number of elements to as many numbers.
func added(t *testing.T, n int64) predict.Recording {
	t.Helper()
	b := rt.New("cpu")
	b.R.Header.ImgSize = n
	x, c, y := b.Tensor(recording.Input, "x", tensor.Float32, n), b.Tensor(recording.Constant, "c", tensor.Float32, n), b.Scratch(tensor.Float32, n)
	b.Op("aten::add.Tensor", rt.Args(rt.Value("self", x), rt.Value("other", c), rt.Int("alpha", 1)), y)
	b.Input("x", x)
	b.Output("y", y)
	weights, err := safetensors.Encode([]safetensors.Tensor{{Spec: tensor.Spec{Name: "c", DType: tensor.Float32, Sizes: []int64{n}},
		Data: numbers(slices.Repeat([]float32{float32(n)}, int(n))...)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return predict.Recording{File: rt.Encoded(t, b.R), Weights: weights}
}

func numbers(values ...float32) (out []byte) {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func options(mode string) predict.Options {
	return predict.Options{Plugin: os.Args[0], Env: []string{asPlugin + "=1", "GORACE=atexit_sleep_ms=0"}, Device: "host", CUDAGraph: mode}
}

func open(t *testing.T, mode string, log func(string)) *predict.Model {
	t.Helper()
	o := options(mode)
	o.Log = log
	m, err := predict.Open(t.Context(), o, added(t, 2))
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

func add(t *testing.T, m *predict.Model, n int) {
	t.Helper()
	values := slices.Repeat([]float32{0.5}, n)
	got, err := m.Predict(t.Context(), predict.Input{Sizes: []int64{int64(n)}, DType: tensor.Float32, Data: numbers(values...)})
	if err != nil {
		t.Fatal(err)
	}
	if want := numbers(slices.Repeat([]float32{0.5 + float32(n)}, n)...); !slices.Equal(got["y"], want) {
		t.Errorf("%d numbers: %v instead of %v", n, got["y"], want)
	}
}

// A Go program that asks for a graph where nothing is certified is told UNIMPLEMENTED, with the family and the reason.
func TestClientWithoutACertificate(t *testing.T) {
	_, err := predict.Open(t.Context(), options("TRUE"), added(t, 2))
	if problems, _ := diag.Of(err); !errors.Is(err, arm.ErrUnimplemented) || len(problems) != 1 || problems[0].Reason != "NO_GPU" ||
		!strings.Contains(problems[0].Summary, "tiny") {
		t.Errorf("%v", err)
	}
	if _, err := predict.Open(t.Context(), options("perhaps"), added(t, 2)); err == nil || !strings.Contains(err.Error(), "WRONG_GRAPH_MODE") {
		t.Errorf("%v", err)
	}
	var said []string
	m := open(t, "Auto", func(line string) { said = append(said, line) })
	for range 4 {
		add(t, m, 2)
	}
	if info := m.GraphInfo(); info.EagerSteps != 4 || info.Count != 0 || info.Supported || info.Family != "tiny" || len(said) != 1 || strings.Contains(said[0], "\n") {
		t.Errorf("%+v, %q", info, said)
	}
}

// Shapes are captured when they are asked for, at most eight; releasing makes room.
func TestClientGraphs(t *testing.T) {
	var said []string
	m := open(t, "", func(line string) { said = append(said, line) })
	for n := int64(3); n <= 10; n++ {
		if err := m.Add(t.Context(), added(t, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.CaptureGraph(t.Context(), 7, 0, tensor.Float32); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		add(t, m, 7)
	}
	info := m.GraphInfo()
	if info.Count != 1 || !slices.Equal(info.Captured[0].Shape, []int64{7}) || info.Captured[0].Replays != 2 || info.Nodes != 1 || len(said) != 0 {
		t.Errorf("%+v, %q", info, said)
	}
	err := m.CaptureGraph(t.Context(), 0, 0, 0)
	if problems, _ := diag.Of(err); len(problems) != 1 || problems[0].Reason != "GRAPH_LIMIT" || m.GraphInfo().Count != replay.MaxGraphs {
		t.Errorf("%v, %+v", err, m.GraphInfo())
	}
	for n := 2; n <= 10; n++ {
		add(t, m, n)
	}
	if info := m.GraphInfo(); info.Replays != 2+replay.MaxGraphs || info.EagerSteps != 1 {
		t.Errorf("%+v", info)
	}
	if err := m.ReleaseGraphs(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(t, m, 7)
	if info := m.GraphInfo(); info.Count != 0 || info.EagerSteps != 2 {
		t.Errorf("%+v", info)
	}
	if err := m.CaptureGraph(t.Context(), 99, 0, 0); err == nil || !strings.Contains(err.Error(), "NO_RECORDING") {
		t.Errorf("%v", err)
	}
	if _, err := m.Predict(t.Context(), predict.Input{Sizes: []int64{1}, DType: tensor.Float32, Data: numbers(1)}); err == nil || !strings.Contains(err.Error(), "NO_RECORDING") {
		t.Errorf("%v", err)
	}
}

// A recording that is refused leaves the others as they were, their graphs too.
func TestClientGoesOnAfterARefusal(t *testing.T) {
	m := open(t, "", nil)
	if err := m.CaptureGraph(t.Context(), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	add(t, m, 2)
	other := added(t, 3)
	r, err := recording.Decode(other.File)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Family = "another"
	other.File = rt.Encoded(t, r)
	err = m.Add(t.Context(), other)
	if problems, _ := diag.Of(err); len(problems) != 1 || problems[0].Reason != "OTHER_FAMILY" {
		t.Errorf("%v", err)
	}
	add(t, m, 2)
	if err := m.Add(t.Context(), added(t, 3)); err != nil {
		t.Fatal(err)
	}
	add(t, m, 3)
	add(t, m, 2)
	if info := m.GraphInfo(); info.Replays != 3 || info.EagerSteps != 1 {
		t.Errorf("%+v", info)
	}
}

// Recordings that come one after the other pass through the same memory: it holds one of them with its weights, not all.
func TestClientKeepsNoFilesInMemory(t *testing.T) {
	const large = 16 << 20
	rest := safetensors.Tensor{Spec: tensor.Spec{Name: "rest", DType: tensor.Uint8, Sizes: []int64{large}}, Data: make([]byte, large)}
	m := open(t, "", nil)
	before := shared(t)
	for n := int64(3); n < 9; n++ {
		r := added(t, n)
		file, err := safetensors.Decode(r.Weights)
		if err != nil {
			t.Fatal(err)
		}
		own, _ := file.Get("c")
		if r.Weights, err = safetensors.Encode([]safetensors.Tensor{*own, rest}, nil); err != nil {
			t.Fatal(err)
		}
		if err := m.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		add(t, m, int(n))
	}
	if grown := shared(t) - before; grown < large || grown >= 2*large {
		t.Errorf("six recordings with %d bytes of weights each took %d bytes", large, grown)
	}
}

// shared is how many bytes this process shares with plugins.
func shared(t *testing.T) (bytes int64) {
	t.Helper()
	const opened = "/proc/self/fd"
	entries, err := os.ReadDir(opened)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(opened, e.Name())
		if at, err := os.Readlink(path); err != nil || !strings.HasPrefix(at, "/memfd:samebits") {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}
