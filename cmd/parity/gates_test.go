package main

import (
	"strings"
	"testing"

	"samebits/parity/suite/suitetest"
)

// --gate judges some gates alone, and says that of the others nothing is known.
func TestGate(t *testing.T) {
	got := parity(t, &fakes{gpu: true}, "verify", "fake", "--gate", "MOVE,STREAM")
	if got.status != 0 {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	golden(t, "verify-gate", got.stdout+"--- stderr\n"+got.stderr)
	f := faulty(suitetest.Faults{Between: suitetest.Between{KeepsPointers: true}})
	f.gpu = true
	got = parity(t, f, "verify", "fake", "--gate", "MOVE")
	if got.status != 1 || !strings.Contains(got.stdout, "reproduce: parity verify fake") || !strings.Contains(got.stdout, "--gate MOVE") {
		t.Errorf("status %d: %s", got.status, got.stdout)
	}
}

func TestGateIsUsed(t *testing.T) {
	for want, args := range map[string][]string{
		`--gate "STREEM"; there are SAME-RECORDING`:     {"--gate", "STREEM"},
		"--gate MOVE is there twice":                    {"--gate", "MOVE", "--gate", "MOVE"},
		"--gate is empty":                               {"--gate", ""},
		"a training run is judged as a whole":           {"--gate", "MOVE", "--mode", "train"},
		"results of some gates alone stand for no cell": {"--gate", "MOVE", "--resume", "--output", "x"},
	} {
		got := parity(t, &fakes{}, append([]string{"verify", "fake"}, args...)...)
		if got.status != 2 || !strings.Contains(got.stderr, want) {
			t.Errorf("%v: status %d: %s", args, got.status, got.stderr)
		}
	}
	if got := parity(t, &fakes{}, "certify", "fake", "--gate", "MOVE"); got.status != 2 || !strings.Contains(got.stderr, "unknown flag") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
}
