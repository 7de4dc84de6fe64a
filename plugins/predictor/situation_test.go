package main

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"samebits/bridge/arm"
)

// Whatever happens between steps, they are right, and the counters say what happened.
func TestSituations(t *testing.T) {
	p, inputs, outputs := stand(t, packed(t, 4, "0 7"), packed(t, 6, "1 7"))
	steps := func(scale float32) {
		t.Helper()
		for bank := range inputs {
			for i := range 2 {
				binary.LittleEndian.PutUint32(inputs[bank][0], math.Float32bits(float32(i)))
				fill(outputs[bank][0])
				if err := p.Step(t.Context(), bank, bank); err != nil {
					t.Fatal(err)
				}
				want := float32(i) + float32(bank+1)*scale
				if got := math.Float32frombits(binary.LittleEndian.Uint32(outputs[bank][0])); got != want {
					t.Errorf("bank %d: %v instead of %v", bank, got, want)
				}
			}
		}
	}
	stats := func() arm.Stats {
		t.Helper()
		s, err := p.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	steps(1)
	if s := stats(); s.Captures != 2 || s.Replays != 4 || s.NodesByKind[arm.KernelNode] != 2 || s.Latched || s.AllocatedBytes == 0 || s.Generator != "" {
		t.Fatalf("%+v", s)
	}
	for _, c := range []struct {
		situation string
		change    func(before, after arm.Stats) bool
	}{
		{arm.OtherThread, func(a, b arm.Stats) bool { return b.Captures == a.Captures+2 && b.Replays == a.Replays+4 }},
		{arm.Moved, func(a, b arm.Stats) bool { return b.Invalidations == a.Invalidations+2 && b.Captures == a.Captures+2 }},
		{arm.Updated, func(a, b arm.Stats) bool { return b.Captures == a.Captures && b.Replays == a.Replays+4 }},
		{arm.Restored, func(a, b arm.Stats) bool { return b.Captures == a.Captures && b.Invalidations == a.Invalidations }},
		{arm.OtherMode, func(a, b arm.Stats) bool {
			return b.EagerSteps == a.EagerSteps+2 && b.Replays == a.Replays+4 && b.Fallbacks == 0
		}},
		{arm.Released, func(a, b arm.Stats) bool { return b.Captures == a.Captures+2 && b.Replays == a.Replays+4 }},
		{arm.FailsCapture, func(a, b arm.Stats) bool {
			return b.Captures == a.Captures && b.Replays == a.Replays && b.Fallbacks == 4 && b.Latched && strings.Contains(b.FallbackReason, "CAPTURE_FAILED") &&
				b.NodesByKind == nil
		}},
		{arm.Released, func(a, b arm.Stats) bool {
			return b.Captures == a.Captures+2 && !b.Latched && b.Fallbacks == a.Fallbacks && b.FallbackReason == ""
		}},
	} {
		before := stats()
		if _, err := p.Situate(t.Context(), arm.SituateRequest{Situation: c.situation}); err != nil {
			t.Fatalf("%s: %v", c.situation, err)
		}
		steps(1) // the constants of these recordings are no parameters
		if after := stats(); !c.change(before, after) {
			t.Errorf("%s: before %+v, after %+v", c.situation, before, after)
		}
	}
}

// A CPU has no streams and no second device, and the engine no generator.
func TestUnknownSituations(t *testing.T) {
	p, _, _ := stand(t, packed(t, 4, "0 7"))
	for _, situation := range []string{arm.OtherStream, arm.OtherDevice, arm.Seeded, "eclipse"} {
		if _, err := p.Situate(t.Context(), arm.SituateRequest{Situation: situation}); err == nil || !strings.Contains(err.Error(), "UNKNOWN_SITUATION") {
			t.Errorf("%s: %v", situation, err)
		}
	}
}
