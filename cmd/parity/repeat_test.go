package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"samebits/parity/result"
	"samebits/parity/suite/suitetest"
)

func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	got := parity(t, fleet(suitetest.Faults{}), "verify", "anchor", "--task", "detect", "--repeat", "3", "--jobs", "3", "--output", dir)
	if got.status != 0 || got.fakes.Alive != 0 {
		t.Fatalf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if n := strings.Count(got.stdout, "SAME-RECORDING"); n != 1 {
		t.Errorf("%d results are printed, one is enough", n)
	}
	_, table, _ := strings.Cut(got.stdout, "REPETITION")
	golden(t, "repeat", table)
	for _, name := range jsonFiles(t, dir) {
		if r, err := result.Read(filepath.Join(dir, name, "detect-anchor-s-8-b1-predict-fp32-cuda.json")); err != nil || r.Verdict != result.Exact {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names := jsonFiles(t, dir); len(names) != 3 || names[0] != "1" {
		t.Errorf("folders %v", names)
	}
	if got := parity(t, fleet(suitetest.Faults{}), "verify", "anchor", "--repeat", "2", "--json"); got.status != 0 || strings.Count(got.stdout, "\n") != 2 ||
		!strings.Contains(got.stderr, "2 repetitions: 2 exact") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

// A fault that comes once in a while is one.
func TestRepeatFindsWhatComesOnceInAWhile(t *testing.T) {
	var calls, from atomic.Int64
	native := func(logits []float32) {
		if calls.Add(1) > from.Load() {
			suitetest.ULPs(1)(logits)
		}
	}
	from.Store(1 << 60)
	if got := parity(t, fleet(suitetest.Faults{Native: native}), "verify", "anchor", "--jobs", "1"); got.status != 0 {
		t.Fatalf("status %d\n%s", got.status, got.stdout)
	}
	from.Store(2 * calls.Swap(0)) // the third repetition has it
	got := parity(t, fleet(suitetest.Faults{Native: native}), "verify", "anchor", "--repeat", "3", "--jobs", "1")
	if got.status != 1 || !strings.Contains(got.stdout, "3           differs  verdict") || !strings.Contains(got.stdout, "3 repetitions: 1 differs, 2 exact; verdict, gates or digests are others in 1") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if n := strings.Count(got.stdout, "SAME-RECORDING"); n != 2 {
		t.Errorf("%d results are printed: the first and the one that differs are wanted", n)
	}
}

func TestRepeatUsage(t *testing.T) {
	for _, args := range []string{"--repeat 0", "--repeat -1", "--repeat 2 --precision fp32,bf16", "--repeat 2 --resume --output x", "--repeat 2 --keep x",
		"--repeat 2 --matrix x.md"} {
		got := parity(t, fleet(suitetest.Faults{}), append([]string{"verify", "anchor"}, strings.Fields(args)...)...)
		if got.status != 2 || !strings.Contains(got.stderr, "--repeat") || got.fakes.Processes != 0 {
			t.Errorf("%s: status %d, %s", args, got.status, got.stderr)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a folder was made")
	}
}
