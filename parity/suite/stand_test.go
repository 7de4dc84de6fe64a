package suite_test

import (
	"errors"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

func newStand(t *testing.T, start *suitetest.Starter) *suite.Stand {
	t.Helper()
	s, err := suite.NewStand(t.Context(), start, suite.Cell{Family: "fake", Precision: "fp32", Profile: "exact-1", Device: "cuda:0"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Arms on a stand run the recorder's model with its weights and one input.
func TestStand(t *testing.T) {
	start := &suitetest.Starter{}
	s := newStand(t, start)
	if s.Cell.ImgSize != 8 || s.Cell.Size != "s" || s.Unrecorded != nil || start.Alive != 0 {
		t.Errorf("%+v, %v, %d processes", s.Cell, s.Unrecorded, start.Alive)
	}
	var first map[string]string
	for _, name := range []string{arm.ReferenceEager, arm.ReferenceGraph, arm.NativeEager, arm.NativeGraph} {
		a, err := s.Open(t.Context(), start, name)
		if err != nil {
			t.Fatal(err)
		}
		outputs, err := a.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = outputs.Digests()
		}
		for output, digest := range outputs.Digests() {
			if first[output] != digest {
				t.Errorf("%s gives another %s", name, output)
			}
		}
		if graph := strings.HasSuffix(name, "-graph"); a.Prepared().Captured != graph {
			t.Errorf("%s: captured %v", name, a.Prepared().Captured)
		}
		if e := a.Environment(); e["cudnn"] == "" || (e["native_only"] != "") != strings.HasPrefix(name, "native") {
			t.Errorf("%s: environment %v", name, e)
		}
		a.Arm().Stop()
	}
	if images, err := s.Images(); err != nil || len(images) != 4*3*8*8 {
		t.Errorf("%d bytes of images, %v", len(images), err)
	}
	if start.Alive != 0 {
		t.Errorf("%d processes are left", start.Alive)
	}
}

// What cannot be recorded can be run by PyTorch all the same.
func TestStandWithoutRecording(t *testing.T) {
	start := &suitetest.Starter{Faults: suitetest.Faults{OtherPrecision: true}}
	s := newStand(t, start)
	if s.Unrecorded == nil {
		t.Fatal("a recording of another precision was taken")
	}
	if _, err := s.Open(t.Context(), start, arm.NativeGraph); err == nil || !strings.Contains(err.Error(), "WRONG_RECORDING") {
		t.Errorf("native: %v", err)
	}
	a, err := s.Open(t.Context(), start, arm.ReferenceGraph)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Arm().Stop()
	if _, err := a.Step(t.Context()); err != nil {
		t.Error(err)
	}
}

// An arm that does not become ready leaves no process behind.
func TestStandFails(t *testing.T) {
	start := &suitetest.Starter{Faults: suitetest.Faults{Refuses: errors.New("no such operation"), PanicsOn: "nobody"}}
	s := newStand(t, start)
	if _, err := s.Open(t.Context(), start, arm.NativeEager); err == nil || !strings.Contains(err.Error(), "no such operation") {
		t.Errorf("error %v", err)
	}
	if start.Alive != 0 {
		t.Errorf("%d processes are left", start.Alive)
	}
}
