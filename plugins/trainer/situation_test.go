package main

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/host"
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

// run is a training run of the recording that the Python package's tests have, in a plugin of its own.
type run struct {
	*host.Plugin
	names    []string
	from, to [][]byte
}

func start(t *testing.T, graph bool) *run {
	t.Helper()
	p, err := host.Start(t.Context(), host.Config{Name: "trainer", Command: os.Args[0], Env: []string{asPlugin + "=1", "GORACE=atexit_sleep_ms=0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	request := arm.LoadRequest{Device: "host", Arm: arm.NativeGraph}
	for name, at := range map[string]*arm.Region{"recording.pb": &request.Recording, "weights.safetensors": &request.Weights} {
		data, err := os.ReadFile(filepath.Join("..", "..", "bridge", "python", "tests", "data", "train", name))
		if err != nil {
			t.Fatal(err)
		}
		region, memory, err := p.Memory().Alloc(t.Context(), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		copy(memory, data)
		*at = region
	}
	loaded, err := p.Load(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Plugin: p}
	prepare := arm.PrepareRequest{CUDAGraph: graph, Inputs: make([]arm.Bank, 1), Outputs: make([]arm.Bank, 1)}
	if prepare.Inputs[0], r.from, err = p.Memory().AllocBank(t.Context(), loaded.Inputs); err != nil {
		t.Fatal(err)
	}
	if prepare.Outputs[0], r.to, err = p.Memory().AllocBank(t.Context(), loaded.Outputs); err != nil {
		t.Fatal(err)
	}
	for _, spec := range loaded.Outputs {
		r.names = append(r.names, spec.Name)
	}
	r.fill(0)
	if reply, err := p.Prepare(t.Context(), prepare); err != nil || reply.Captured != graph {
		t.Fatalf("%+v, %v", reply, err)
	}
	return r
}

// fill writes the inputs of a step: images, targets, learning rates, weight decays, momentum, decay of the average.
func (r *run) fill(step int) {
	for i := range len(r.from[0]) / 4 {
		binary.LittleEndian.PutUint32(r.from[0][4*i:], math.Float32bits(float32((i*7+step*3)%11)/5-1))
	}
	for i := range len(r.from[1]) / 8 {
		binary.LittleEndian.PutUint64(r.from[1][8*i:], uint64((i+step)%3))
	}
	for input, value := range map[int]float64{2: 0.1 / float64(step+1), 3: 0.01, 4: 0.9, 5: 0.5} {
		for i := range len(r.from[input]) / 8 {
			binary.LittleEndian.PutUint64(r.from[input][8*i:], math.Float64bits(value))
		}
	}
}

// Whatever happens between steps, a graph's state is that of an eager run to which the same happened.
func TestSituations(t *testing.T) {
	eager, graph := start(t, false), start(t, true)
	step, before := 0, [][]byte(nil)
	both := func() {
		t.Helper()
		for _, r := range []*run{eager, graph} {
			r.fill(step)
			for _, data := range r.to {
				for i := range data {
					data[i] = 0xff
				}
			}
			if err := r.Step(t.Context(), 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		for i, name := range eager.names {
			if !slices.Equal(eager.to[i], graph.to[i]) {
				t.Errorf("step %d: %s is %v instead of %v", step, name, graph.to[i], eager.to[i])
			}
		}
		if before != nil && slices.EqualFunc(before, graph.to, slices.Equal[[]byte]) {
			t.Errorf("step %d changed nothing", step)
		}
		before = nil
		for _, data := range graph.to {
			before = append(before, slices.Clone(data))
		}
		step++
	}
	stats := func() arm.Stats {
		t.Helper()
		s, err := graph.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	both()
	for _, c := range []struct {
		situation string
		change    func(before, after arm.Stats) bool
	}{
		{arm.OtherThread, func(a, b arm.Stats) bool { return b.Captures == a.Captures+1 && b.Replays == a.Replays+2 }},
		{arm.Moved, func(a, b arm.Stats) bool { return b.Invalidations == a.Invalidations+1 && b.Captures == a.Captures+1 }},
		{arm.Updated, func(a, b arm.Stats) bool { return b.Captures == a.Captures && b.Replays == a.Replays+2 }},
		{arm.Restored, func(a, b arm.Stats) bool { return b.Captures == a.Captures }},
		{arm.OtherMode, func(a, b arm.Stats) bool {
			return b.EagerSteps == a.EagerSteps+1 && b.Replays == a.Replays+1 && b.Fallbacks == 0
		}},
		{arm.FailsCapture, func(a, b arm.Stats) bool { return b.Latched && b.Fallbacks == 2 && b.Replays == a.Replays }},
		{arm.Released, func(a, b arm.Stats) bool { return !b.Latched && b.Captures == a.Captures+1 && b.Replays == a.Replays+2 }},
	} {
		at := stats()
		for _, r := range []*run{eager, graph} {
			if _, err := r.Situate(t.Context(), arm.SituateRequest{Situation: c.situation}); err != nil {
				t.Fatalf("%s: %v", c.situation, err)
			}
		}
		both()
		both()
		if after := stats(); !c.change(at, after) {
			t.Errorf("%s: before %+v, after %+v", c.situation, at, after)
		}
	}
	if _, err := graph.Situate(t.Context(), arm.SituateRequest{Situation: arm.Seeded}); err == nil || !strings.Contains(err.Error(), "UNKNOWN_SITUATION") {
		t.Error(err)
	}
}
