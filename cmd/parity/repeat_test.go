package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
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
		if r, err := result.Read(filepath.Join(dir, name, "detect-anchor-s-8-b1-predict-fp32-cuda.json")); err != nil || r.Verdict != result.Exact || len(r.Timings) != 0 {
			t.Errorf("%s: %v, %s, times %v", name, err, r.Verdict, r.Timings)
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

// repetitions are ten verifications of a cell of a GPU, one after the other, seven processes each.
func repetitions(dir string, more ...string) []string {
	return append([]string{"verify", "anchor", "--device", "cuda:0", "--repeat", "10", "--jobs", "1", "--output", dir, "--resume"}, more...)
}

// An interrupted run says what is finished, and --resume goes on: in the end the table is that of an undisturbed run.
func TestRepeatInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	f := fleet(suitetest.Faults{})
	f.OnStart = func(process int) {
		if process == 7*7+3 {
			f.Crash = context.Canceled
			cancel()
		}
	}
	first := parityUntil(ctx, f, repetitions(dir)...)
	if first.status != 3 || f.Alive != 0 || !strings.Contains(first.stderr, "interrupted; 7 of 10 repetitions are finished") ||
		!strings.Contains(first.stdout, "\n7           exact    -\n7 of 10 repetitions: 7 exact; verdicts, gates and digests are the same in all\n") ||
		strings.Contains(first.stdout, "INTERRUPTED") {
		t.Errorf("status %d, %d processes alive\n%s%s", first.status, f.Alive, first.stdout, first.stderr)
	}
	if names := jsonFiles(t, dir); len(names) != 7 {
		t.Errorf("folders %v", names)
	}
	second := parity(t, fleet(suitetest.Faults{}), repetitions(dir)...)
	if second.status != 0 || second.fakes.Processes != 3*7 || !strings.Contains(second.stderr, "7 of 10 repetitions are finished already") ||
		strings.Count(second.stdout, "finished before, in "+filepath.Join(dir, "01")) != 1 || strings.Contains(second.stdout, filepath.Join(dir, "02")) {
		t.Errorf("status %d, %d processes\n%s%s", second.status, second.fakes.Processes, second.stdout, second.stderr)
	}
	_, table, _ := strings.Cut(second.stdout, "REPETITION")
	undisturbed := parity(t, fleet(suitetest.Faults{}), repetitions(t.TempDir())...)
	if _, want, _ := strings.Cut(undisturbed.stdout, "REPETITION"); table != want || strings.Count(table, "exact    -") != 10 {
		t.Errorf("%s instead of\n%s", table, want)
	}
	third := parity(t, fleet(suitetest.Faults{}), repetitions(dir, "--json")...)
	if third.status != 0 || third.fakes.Processes != 0 || strings.Count(third.stdout, "\n") != 10 || !strings.Contains(third.stderr, "10 repetitions: 10 exact") {
		t.Errorf("status %d, %d processes\n%s", third.status, third.fakes.Processes, third.stderr)
	}
	ended, end := context.WithCancel(t.Context())
	f = fleet(suitetest.Faults{})
	f.OnStart = func(int) { f.Crash = context.Canceled; end() }
	none := parityUntil(ended, f, repetitions(t.TempDir())...)
	if none.status != 3 || none.stdout != "0 of 10 repetitions\n" {
		t.Errorf("status %d\n%s%s", none.status, none.stdout, none.stderr)
	}
}

// What other programs made is not taken, nor is there anything of what broke.
func TestRepeatResumesWhatIsFinished(t *testing.T) {
	dir := t.TempDir()
	f := fleet(suitetest.Faults{})
	f.OnStart = func(process int) {
		if process > 8*7 {
			f.Crash = errors.New("the disk is full")
		}
	}
	if got := parity(t, f, repetitions(dir)...); got.status != 3 || !strings.Contains(got.stdout, "10 repetitions: 2 broken, 8 exact; verdict, gates or digests are others in 2") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if names := jsonFiles(t, dir); len(names) != 8 {
		t.Errorf("folders %v", names)
	}
	f = fleet(suitetest.Faults{})
	f.engine = strings.Repeat("01", 32)
	got := parity(t, f, repetitions(dir)...)
	if got.status != 0 || f.Processes != 10*7 || strings.Count(got.stderr, "its engine_build is abababababababab, not 0101010101010101") != 8 {
		t.Errorf("status %d, %d processes\n%s", got.status, f.Processes, got.stderr)
	}
	// More of them: the names of folders get longer.
	f = fleet(suitetest.Faults{})
	f.engine = strings.Repeat("01", 32)
	got = parity(t, f, repetitions(dir, "--repeat", "101")...)
	if got.status != 0 || f.Processes != 91*7 || !strings.Contains(got.stdout, "101 repetitions: 101 exact") {
		t.Errorf("status %d, %d processes\n%s", got.status, f.Processes, got.stderr)
	}
	if names := jsonFiles(t, dir); len(names) != 101 || !slices.Contains(names, "10") || !slices.Contains(names, "011") {
		t.Errorf("folders %v", names)
	}
}

// A difference between a repetition that was kept and one that is new is found as any other.
func TestRepeatHoldsNewOnesToThoseKept(t *testing.T) {
	file := "detect-anchor-s-8-b1-predict-fp32-cuda.json"
	for _, changed := range []string{"01", "02"} {
		dir := t.TempDir()
		parity(t, fleet(suitetest.Faults{}), repetitions(dir)...)
		r, err := result.Read(filepath.Join(dir, changed, file))
		if err != nil {
			t.Fatal(err)
		}
		r.Digests.Outputs["native-eager"]["noise"]["logits"] = strings.Repeat("0f", 32)
		if _, err := r.Keep(filepath.Join(dir, changed)); err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{"03", "10"} {
			if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
				t.Fatal(err)
			}
		}
		got := parity(t, fleet(suitetest.Faults{}), repetitions(dir)...)
		others := map[string]int{"01": 9, "02": 1}[changed]
		if got.status != 1 || got.fakes.Processes != 2*7 || strings.Count(got.stdout, "exact    digests native-eager noise logits: ") != others ||
			!strings.Contains(got.stdout, "10 repetitions: 10 exact; verdict, gates or digests are others in") {
			t.Errorf("status %d, %d processes\n%s%s", got.status, got.fakes.Processes, got.stdout, got.stderr)
		}
	}
	dir := t.TempDir() // and bits that differ
	parity(t, fleet(suitetest.Faults{}), repetitions(dir)...)
	if err := os.RemoveAll(filepath.Join(dir, "07")); err != nil {
		t.Fatal(err)
	}
	got := parity(t, fleet(suitetest.Faults{Native: suitetest.ULPs(1)}), repetitions(dir)...)
	if got.status != 1 || !strings.Contains(got.stdout, "10 repetitions: 1 differs, 9 exact; verdict, gates or digests are others in 1") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

func TestRepeatUsage(t *testing.T) {
	for _, args := range []string{"--repeat 0", "--repeat -1", "--repeat 2 --precision fp32,bf16", "--repeat 2 --output x --keep x",
		"--repeat 2 --matrix x.md", "--repeat 2 --html x.html"} {
		got := parity(t, fleet(suitetest.Faults{}), append([]string{"verify", "anchor"}, strings.Fields(args)...)...)
		if got.status != 2 || !strings.Contains(got.stderr, "--repeat") || got.fakes.Processes != 0 {
			t.Errorf("%s: status %d, %s", args, got.status, got.stderr)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a folder was made")
	}
}
