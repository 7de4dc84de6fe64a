package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/digest"
	"samebits/bridge/host"
	"samebits/bridge/recording"
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
	p, err := host.Start(t.Context(), host.Config{Name: "example", Command: os.Args[0],
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

func TestItScales(t *testing.T) {
	p := start(t)
	loaded, err := p.Load(t.Context(), host.LoadRequest{Device: "host", Arm: arm.NativeEager,
		Options: []recording.Setting{{Key: "scale", Value: "-0.5"}}})
	if err != nil {
		t.Fatal(err)
	}
	inputs, from, err := p.Memory().AllocBank(t.Context(), loaded.Inputs)
	if err != nil {
		t.Fatal(err)
	}
	outputs, to, err := p.Memory().AllocBank(t.Context(), loaded.Outputs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Prepare(t.Context(), host.PrepareRequest{Inputs: []host.Bank{inputs}, Outputs: []host.Bank{outputs}}); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(from[0][4:], math.Float32bits(3))
	held := bytes.Repeat([]byte{7}, len(to[0]))
	copy(to[0], held)
	if err := p.Disturb(t.Context(), host.DisturbRequest{PoisonOutputs: true, Churn: true}); err != nil || !bytes.Equal(to[0], held) {
		t.Fatalf("what a bank holds is no more: %v", err)
	}
	if err := p.Step(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(to[0][4:])); got != -1.5 {
		t.Errorf("got %v, want -1.5", got)
	}
	stepped := digest.Tensor(loaded.Outputs[0], to[0])
	clear(to[0])
	traced, err := p.Trace(t.Context(), host.TraceRequest{Want: &host.Wanted{Region: outputs[0].Region}})
	if err != nil || traced.Operations[0].Digests[0] != stepped || digest.Tensor(traced.Wanted, to[0]) != stepped {
		t.Errorf("the trace is another one: %+v, %v", traced, err)
	}
	if times, err := p.Measure(t.Context(), host.MeasureRequest{Warmup: 1, Iterations: 3}); err != nil || len(times.Milliseconds) != 3 {
		t.Errorf("%+v, %v", times, err)
	}
	if stats, err := p.Stats(t.Context()); err != nil || stats.EagerSteps != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}

func TestItRefuses(t *testing.T) {
	p := start(t)
	_, err := p.Load(t.Context(), host.LoadRequest{Device: "cuda:0",
		Options: []recording.Setting{{Key: "scale", Value: "much"}, {Key: "colour", Value: "red"}}})
	for _, s := range []string{"DEVICE", `"much" is not a number`, "options/colour"} { // all at once
		if err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("%q is not in: %v", s, err)
		}
	}
}
