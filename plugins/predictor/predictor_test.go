package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

// The test binary is the plugin, too.
const asPlugin = "SAMEBITS_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func start(t *testing.T) *host.Plugin {
	t.Helper()
	p, err := host.Start(t.Context(), host.Config{Name: "predictor", Command: os.Args[0],
		Env: []string{asPlugin + "=1", "GORACE=atexit_sleep_ms=0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// packed is a step that adds a constant to n numbers. What the constant is follows from the key.
func packed(t *testing.T, n int64, key string) *recording.Recording {
	t.Helper()
	b := recordingtest.New("cpu")
	x := b.Tensor(recording.Input, "images", tensor.Float32, n)
	grids := b.Tensor(recording.Input, "grids", tensor.Int64, 1, 2)
	c := b.Tensor(recording.Constant, "constant.0", tensor.Float32, n)
	y := b.Scratch(tensor.Float32, n)
	b.Op("aten::add.Tensor", recordingtest.Args(recordingtest.Value("self", x), recordingtest.Value("other", c), recordingtest.Int("alpha", 1)), y)
	b.Input("images", x)
	b.Input("grids", grids)
	b.Output("output", y)
	if key != "" {
		b.R.Header.ProfileSettings = append(b.R.Header.ProfileSettings[:1:1],
			recording.Setting{Key: "key.grids", Value: key}, b.R.Header.ProfileSettings[1])
	}
	return b.R
}

func load(t *testing.T, p *host.Plugin, r *recording.Recording, constant float32, options ...recording.Setting) (arm.LoadReply, error) {
	t.Helper()
	file, err := recording.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	sizes := r.Values[0].Sizes
	var data []byte
	for range tensor.Numel(sizes) {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(constant))
	}
	weights, err := safetensors.Encode([]safetensors.Tensor{{Spec: tensor.Spec{Name: "constant.0", DType: tensor.Float32, Sizes: sizes}, Data: data}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	request := arm.LoadRequest{Device: "host", Arm: arm.NativeGraph, Options: options}
	for _, f := range []struct {
		data []byte
		at   *arm.Region
	}{{file, &request.Recording}, {weights, &request.Weights}} {
		region, memory, err := p.Memory().Alloc(t.Context(), int64(len(f.data)))
		if err != nil {
			t.Fatal(err)
		}
		copy(memory, f.data)
		*f.at = region
	}
	return p.Load(t.Context(), request)
}

var further = recording.Setting{Key: "add", Value: "on"}

// stand loads recordings and prepares graphs with one bank on each side for every load.
func stand(t *testing.T, recordings ...*recording.Recording) (p *host.Plugin, inputs, outputs [][][]byte) {
	t.Helper()
	p = start(t)
	request := arm.PrepareRequest{CUDAGraph: true}
	for i, r := range recordings {
		var options []recording.Setting
		if i > 0 {
			options = append(options, further)
		}
		loaded, err := load(t, p, r, float32(i+1), options...)
		if err != nil {
			t.Fatal(err)
		}
		for _, side := range []struct {
			specs []tensor.Spec
			banks *[]arm.Bank
			data  *[][][]byte
		}{{loaded.Inputs, &request.Inputs, &inputs}, {loaded.Outputs, &request.Outputs, &outputs}} {
			bank, data, err := p.Memory().AllocBank(t.Context(), side.specs)
			if err != nil {
				t.Fatal(err)
			}
			*side.banks, *side.data = append(*side.banks, bank), append(*side.data, data)
		}
		setKey(inputs[i][1], int64(i), 7)
	}
	prepared, err := p.Prepare(t.Context(), request)
	if err != nil || !prepared.Captured {
		t.Fatalf("%+v, %v", prepared, err)
	}
	return p, inputs, outputs
}

func setKey(dst []byte, numbers ...int64) {
	for i, n := range numbers {
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(n))
	}
}

// A step takes the recording of its inputs' shapes and keys, and back.
func TestAStepTakesItsRecording(t *testing.T) {
	p, inputs, outputs := stand(t, packed(t, 4, "0 7"), packed(t, 4, "1 7"), packed(t, 6, "2 7"))
	for turn, want := range []int{0, 1, 0, 2, 1, 2, 0} {
		binary.LittleEndian.PutUint32(inputs[want][0], math.Float32bits(float32(turn)))
		if err := p.Step(t.Context(), want, want); err != nil {
			t.Fatal(err)
		}
		if got := math.Float32frombits(binary.LittleEndian.Uint32(outputs[want][0])); got != float32(turn+want+1) {
			t.Errorf("turn %d: %v instead of %v", turn, got, turn+want+1)
		}
	}
	setKey(inputs[0][1], 1, 7) // the other recording of this shape holds for it now
	if err := p.Step(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(outputs[0][0])); got != 6+2 {
		t.Errorf("with the other key: %v", got)
	}
	stats, err := p.Stats(t.Context())
	if err != nil || stats.Captures != 3 || stats.Replays != 8 || stats.EagerSteps != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
}

// What no recording holds for is refused, and never replayed.
func TestAnotherKeyIsRefused(t *testing.T) {
	p, inputs, outputs := stand(t, packed(t, 4, "0 7"), packed(t, 4, "1 7"))
	setKey(inputs[0][1], 0, 8)
	fill(outputs[0][0])
	err := p.Step(t.Context(), 0, 0)
	if err == nil || !strings.Contains(err.Error(), recording.OtherKey) || !strings.Contains(err.Error(), "0 8") {
		t.Fatal(err)
	}
	if got := fmt.Sprint(outputs[0][0][:4]); got != "[255 255 255 255]" {
		t.Errorf("the refused step wrote %s", got)
	}
	if err := p.Step(t.Context(), 1, 1); err != nil {
		t.Errorf("it goes on serving: %v", err)
	}
	if err := p.Step(t.Context(), 1, 0); err != nil {
		t.Errorf("a bank of the same shapes: %v", err)
	}
	if stats, _ := p.Stats(t.Context()); stats.Replays != 2 {
		t.Errorf("%+v", stats)
	}
}

func TestBanksOfOtherRecordings(t *testing.T) {
	p, _, _ := stand(t, packed(t, 4, "0 7"), packed(t, 6, "1 7"))
	if err := p.Step(t.Context(), 0, 1); err == nil || !strings.Contains(err.Error(), "WRONG_BANK") {
		t.Error(err)
	}
	five := func(name string) tensor.Spec {
		return tensor.Spec{Name: name, DType: tensor.Float32, Sizes: []int64{5}}
	}
	in, _, err := p.Memory().AllocBank(t.Context(), []tensor.Spec{five("images"), {Name: "grids", DType: tensor.Int64, Sizes: []int64{1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := p.Memory().AllocBank(t.Context(), []tensor.Spec{five("output")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Prepare(t.Context(), arm.PrepareRequest{Inputs: []arm.Bank{in}, Outputs: []arm.Bank{out}})
	if err == nil || !strings.Contains(err.Error(), "WRONG_TENSOR") {
		t.Error(err)
	}
}

func TestAFurtherRecordingNeedsAFirst(t *testing.T) {
	p := start(t)
	if _, err := load(t, p, packed(t, 4, ""), 1, further); err == nil || !strings.Contains(err.Error(), "before the first") {
		t.Error(err)
	}
}

func fill(data []byte) {
	for i := range data {
		data[i] = 0xff
	}
}
