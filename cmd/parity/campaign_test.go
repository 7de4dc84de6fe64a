package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"samebits/parity/launch"
	"samebits/parity/matrix"
	"samebits/parity/result"
	"samebits/parity/suite/suitetest"
)

// fiveCells is a table of fakes, the last of which is beside the matrix.
var fiveCells = []launch.Entry{
	{Task: "detect", Family: "anchor", Size: "s", ImgSize: 8, Native: 8, Group: launch.Matrix},
	{Task: "detect", Family: "buoy", Size: "s", ImgSize: 8, Native: 8, Group: launch.Matrix},
	{Task: "segment", Family: "anchor", Size: "s", ImgSize: 8, Native: 8, Group: launch.Matrix},
	{Task: "classify", Family: "cable", Size: "s", ImgSize: 8, Native: 8, Group: launch.Matrix},
	{Task: "gaze", Family: "deck", Size: "s", ImgSize: 8, Native: 8, Group: "beyond"},
}

func fleet(f suitetest.Faults) *fakes {
	return &fakes{Starter: suitetest.Starter{Faults: f}, gpu: true, table: fiveCells}
}

func jsonFiles(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// titles checks that every report is whole, and gives their first lines.
func titles(t *testing.T, stdout string) []string {
	t.Helper()
	var found []string
	reports, _, _ := strings.Cut(stdout, "\n\n") // then comes the table
	for line := range strings.Lines(reports) {
		switch {
		case !strings.HasPrefix(line, "  "):
			found = append(found, strings.TrimSpace(line))
		case len(found) == 0:
			t.Fatalf("a line without a title: %s", line)
		}
	}
	gates := regexp.MustCompile(`SAME-RECORDING`).FindAllString(reports, -1)
	if len(gates) != len(found) {
		t.Errorf("%d reports, %d of them with gates", len(found), len(gates))
	}
	slices.Sort(found)
	return found
}

func TestAll(t *testing.T) {
	dir := t.TempDir()
	output, page, object := filepath.Join(dir, "results"), filepath.Join(dir, "MATRIX.md"), filepath.Join(dir, "matrix.json")
	got := parity(t, fleet(suitetest.Faults{}), "verify", "--all", "--precision", "fp32,bf16", "--jobs", "3", "--output", output, "--matrix", page+","+object)
	if got.status != 0 || got.fakes.Alive != 0 || got.fakes.Device.Disturbed != 0 {
		t.Fatalf("status %d, %d processes alive, %d measurements disturbed\n%s", got.status, got.fakes.Alive, got.fakes.Device.Disturbed, got.stderr)
	}
	if names := jsonFiles(t, output); len(names) != 8 {
		t.Errorf("%d files: %v", len(names), names)
	}
	if found := titles(t, got.stdout); len(found) != 8 || found[0] != "anchor-s detect 8 batch 1 bf16 on cuda:0: exact" {
		t.Errorf("%d reports: %v", len(found), found)
	}
	if most := got.fakes.Device.Most; most < 2 {
		t.Errorf("only %d calls at once", most)
	}
	_, table, _ := strings.Cut(got.stdout, "\n\n")
	golden(t, "matrix", table)
	markdown, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix-markdown", string(markdown))
	var sums matrix.Table
	data, err := os.ReadFile(object)
	if err != nil || json.Unmarshal(data, &sums) != nil || len(sums.Cells) != 8 || sums.Totals[1].Verdicts[result.Exact] != 4 {
		t.Errorf("%v, %s", err, data)
	}
	if !strings.Contains(got.stderr, "8 of 8 cells are finished") || !strings.Contains(got.stderr, " left") {
		t.Errorf("stderr: %s", got.stderr)
	}
	again := parity(t, &fakes{}, "matrix", output)
	if again.status != 0 || again.stdout != table {
		t.Errorf("status %d\n%s%s", again.status, again.stdout, again.stderr)
	}
	object = filepath.Join(dir, "again.json")
	if again = parity(t, &fakes{}, "matrix", output, "-o", object); again.status != 0 || again.stdout != "" {
		t.Errorf("status %d\n%s%s", again.status, again.stdout, again.stderr)
	}
	if other, err := os.ReadFile(object); err != nil || string(other) != string(data) {
		t.Errorf("%v\n%s\n%s", err, other, data)
	}
}

// --calls says where the time goes: each cell's processes, and what was asked of them.
func TestCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	if got := parity(t, fleet(suitetest.Faults{}), "verify", "a*", "--jobs", "2", "--calls", path); got.status != 0 {
		t.Fatalf("status %d\n%s", got.status, got.stderr)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(data)) {
		var call struct {
			Cell, Arm, Call  string
			At, Waited, Took float64
		}
		if err := json.Unmarshal([]byte(line), &call); err != nil || call.At < 0 || call.Took < 0 || call.Waited < 0 {
			t.Fatalf("%v: %s", err, line)
		}
		counts[call.Arm+" "+call.Call]++
	}
	for what, want := range map[string]int{"recorder Start": 2, "recorder Record": 8, "reference-eager Start": 4, "reference-eager Construct": 4,
		"reference-eager Build": 4, "native-graph Disturb": 30, "native-graph Situate": 26, "native-graph Stop": 4, "native-eager Measure": 4} {
		if counts[what] != want {
			t.Errorf("%s: %d calls instead of %d", what, counts[what], want)
		}
	}
	if got := parity(t, fleet(suitetest.Faults{}), "verify", "a*", "--calls", "/nowhere/calls"); got.status != 2 {
		t.Errorf("status %d", got.status)
	}
}

// Cells that need all of the GPU come one after the other, whatever --jobs says.
func TestHeavyCells(t *testing.T) {
	const gib = 1 << 30
	f := fleet(suitetest.Faults{Bench: suitetest.Bench{Reserves: map[string]int64{"anchor": 40 * gib, "buoy": 40 * gib, "cable": 40 * gib}}})
	f.memory = fmt.Sprint(100 * gib)
	got := parity(t, f, "verify", "--all", "--jobs", "3")
	if got.status != 0 || got.fakes.Alive != 0 {
		t.Fatalf("status %d, %d processes alive\n%s", got.status, got.fakes.Alive, got.stderr)
	}
	if most := got.fakes.Device.MostFilled; most < 120*gib || most > 260*gib { // of one cell: five times eager's, if all of its processes meet, or six beside the recorder
		t.Errorf("%d GiB at once", most/gib)
	}
}

// Where memory ran out beside other cells the problem says so, and how to verify the cell alone. Alone there is nothing to say.
func TestAdvice(t *testing.T) {
	const command = "parity verify fake --batch 1"
	for _, c := range []struct {
		name    string
		verdict result.Verdict
		reason  string
		detail  string
		others  int
		want    string
	}{
		{"beside one", result.Broken, "OUT_OF_MEMORY", "", 1, "beside another cell; alone: " + command + "; many one by one: --jobs 1"},
		{"beside three", result.Broken, "OUT_OF_MEMORY", "40 GiB", 3, "40 GiB; beside up to 3 other cells; alone: " + command + "; many one by one: --jobs 1"},
		{"alone", result.Broken, "OUT_OF_MEMORY", "40 GiB", 0, "40 GiB"},
		{"something else", result.Broken, "PLUGIN_CRASHED", "", 3, ""},
		{"no break", result.Refused, "OUT_OF_MEMORY", "", 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := result.Result{Verdict: c.verdict, Reproduce: command, Problems: []result.Problem{{Reason: c.reason, Detail: c.detail}}}
			if advise(&r, c.others); r.Problems[0].Detail != c.want {
				t.Errorf("%q instead of %q", r.Problems[0].Detail, c.want)
			}
		})
	}
	var all crowd
	first, second := all.enter(), all.enter()
	third := all.enter()
	if beside := []int{first(), second()}; beside[0] != 2 || beside[1] != 2 {
		t.Errorf("beside %v", beside)
	}
	fourth := all.enter()
	if beside := []int{third(), fourth(), all.enter()()}; beside[0] != 2 || beside[1] != 1 || beside[2] != 0 {
		t.Errorf("beside %v", beside)
	}
}

// A cell that runs out of memory with --jobs 1 is told nothing of others.
func TestOutOfMemoryAlone(t *testing.T) {
	f := fleet(suitetest.Faults{})
	f.Device.Memory = 10 << 20
	got := parity(t, f, "verify", "--all", "--jobs", "1")
	if got.status != 3 || !strings.Contains(got.stdout, "problem OUT_OF_MEMORY: the device is full") || strings.Contains(got.stdout, "beside") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

func TestSelection(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // cells, by task, family, mode and precision
	}{
		{"--all", "detect-anchor-predict-fp32 detect-buoy-predict-fp32 segment-anchor-predict-fp32 classify-cable-predict-fp32"},
		{"--all --task segment,classify", "segment-anchor-predict-fp32 classify-cable-predict-fp32"},
		{"a* c*", "detect-anchor-predict-fp32 segment-anchor-predict-fp32 classify-cable-predict-fp32"},
		{"segment/* buoy --precision fp16,fp32", "segment-anchor-predict-fp16 segment-anchor-predict-fp32 detect-buoy-predict-fp16 detect-buoy-predict-fp32"},
		{"cable cable --precision fp32,bf16,fp32 --mode predict,predict --imgsz 8", "classify-cable-predict-bf16 classify-cable-predict-fp32"},
		{"--all --group beyond", "gaze-deck-predict-fp32"},
		{"anchor --task segment,detect --imgsz list", "segment-anchor-predict-fp32 detect-anchor-predict-fp32"},
		{"classify/f* --group training --mode predict,train --steps 6", "classify-fake-predict-fp32 classify-fake-train-fp32"},
	} {
		t.Run(c.args, func(t *testing.T) {
			f := fleet(suitetest.Faults{})
			f.table = append(slices.Clone(fiveCells), launch.Entry{Task: "classify", Family: "fake", Size: "s", ImgSize: 8, Native: 8, Group: "training"})
			got := parity(t, f, append([]string{"verify", "--json", "--device", "cuda:0"}, strings.Fields(c.args)...)...)
			if got.status != 0 {
				t.Fatalf("status %d\n%s", got.status, got.stderr)
			}
			var names []string
			for line := range strings.Lines(got.stdout) {
				var r result.Result
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				names = append(names, fmt.Sprintf("%s-%s-%s-%s", r.Task, r.Family, r.Mode, r.Precision))
			}
			slices.Sort(names)
			want := strings.Fields(c.want)
			slices.Sort(want)
			if !slices.Equal(names, want) {
				t.Errorf("%v instead of %v", names, want)
			}
		})
	}
}

// What breaks in one cell leaves the others alone.
func TestOneBrokenCell(t *testing.T) {
	dir := t.TempDir()
	got := parity(t, fleet(suitetest.Faults{CrashesOn: "buoy", PanicsOn: "cable"}), "verify", "--all", "--jobs", "2", "--output", dir)
	if got.status != 3 || got.fakes.Alive != 0 {
		t.Errorf("status %d, %d processes alive", got.status, got.fakes.Alive)
	}
	if names := jsonFiles(t, dir); len(names) != 2 || !strings.Contains(names[0], "anchor") || !strings.Contains(names[1], "anchor") {
		t.Errorf("files %v", names)
	}
	for _, want := range []string{"no space left on the device", "problem PANIC: panic: index out of range", "fp32: 2 of 4 exact, 2 broken",
		"again: parity verify buoy --size s --task detect"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("stdout lacks %q\n%s", want, got.stdout)
		}
	}
}

// What cannot be kept ends the run, and yet it is printed, as is all that is finished.
func TestNotKept(t *testing.T) {
	for name, flags := range map[string][]string{"many": {"--all", "--jobs", "1"}, "repeated": {"anchor", "--size", "s", "--repeat", "3", "--jobs", "1"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			output, junit := filepath.Join(dir, "results"), filepath.Join(dir, "junit.xml")
			for _, taken := range []string{"detect-anchor-s-8-b1-predict-fp32-cuda.json", "1"} { // a folder cannot be replaced, nor a file be one
				if err := os.MkdirAll(filepath.Join(output, taken, "in the way"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if name == "repeated" {
				if err := errors.Join(os.RemoveAll(filepath.Join(output, "1")), os.WriteFile(filepath.Join(output, "1"), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			got := parity(t, fleet(suitetest.Faults{}), append([]string{"verify", "--output", output, "--junit", junit}, flags...)...)
			if got.status != 3 || got.fakes.Alive != 0 || !strings.Contains(got.stderr, output) {
				t.Errorf("status %d, %d processes alive\n%s", got.status, got.fakes.Alive, got.stderr)
			}
			if !strings.HasPrefix(got.stdout, "anchor-s ") || !strings.Contains(got.stdout, "8 batch 1 fp32 on cuda:0: exact\n") || strings.Contains(got.stdout, "kept as") {
				t.Errorf("stdout:\n%s", got.stdout)
			}
			if data, err := os.ReadFile(junit); err != nil || !strings.Contains(string(data), "anchor-s") {
				t.Errorf("%v: %s", err, data)
			}
		})
	}
}

func TestResume(t *testing.T) {
	dir := t.TempDir()
	all := []string{"verify", "--all", "--jobs", "2", "--device", "cuda:0", "--output", dir, "--resume"}
	first := parity(t, fleet(suitetest.Faults{CrashesOn: "buoy"}), all...)
	if first.status != 3 || !strings.Contains(first.stderr, "0 of 4 cells are finished already") {
		t.Fatalf("status %d\n%s", first.status, first.stderr)
	}
	second := parity(t, fleet(suitetest.Faults{}), all...)
	if second.status != 0 || second.fakes.Processes != 7 || !strings.Contains(second.stderr, "3 of 4 cells are finished already") {
		t.Fatalf("status %d, %d processes\n%s", second.status, second.fakes.Processes, second.stderr)
	}
	if !strings.Contains(second.stdout, "finished before, in "+dir) || !strings.Contains(second.stdout, "fp32: 4 of 4 exact") {
		t.Errorf("stdout: %s", second.stdout)
	}
	third := parity(t, fleet(suitetest.Faults{}), append(all, "--json")...)
	if third.status != 0 || third.fakes.Processes != 0 || strings.Count(third.stdout, "\n") != 4 {
		t.Errorf("status %d, %d processes\n%s", third.status, third.fakes.Processes, third.stdout)
	}

	// A damaged file, another engine, evidence that was not kept: each is said, and the cell verified again.
	damaged := filepath.Join(dir, "classify-cable-s-8-b1-predict-fp32-cuda.json")
	if err := os.Truncate(damaged, 100); err != nil {
		t.Fatal(err)
	}
	fourth := parity(t, fleet(suitetest.Faults{}), all...)
	if fourth.status != 0 || fourth.fakes.Processes != 7 || !strings.Contains(fourth.stderr, "not reused: "+damaged+" is no result") {
		t.Errorf("status %d, %d processes\n%s", fourth.status, fourth.fakes.Processes, fourth.stderr)
	}
	f := fleet(suitetest.Faults{})
	f.engine = strings.Repeat("01", 32)
	fifth := parity(t, f, all...)
	if fifth.status != 0 || fifth.fakes.Processes != 28 || strings.Count(fifth.stderr, "its engine_build is abababababababab, not 0101010101010101") != 4 {
		t.Errorf("status %d, %d processes\n%s", fifth.status, fifth.fakes.Processes, fifth.stderr)
	}
	sixth := parity(t, f, append(all, "--keep", t.TempDir())...)
	if sixth.status != 0 || sixth.fakes.Processes != 56 || strings.Count(sixth.stderr, "its evidence was not kept") != 4 {
		t.Errorf("status %d, %d processes\n%s", sixth.status, sixth.fakes.Processes, sixth.stderr)
	}
}

// A result that is not good is a result: it is kept, counts, and is not tried again.
func TestResumeTriesNothingAgain(t *testing.T) {
	dir := t.TempDir()
	all := []string{"verify", "--all", "--output", dir, "--resume"}
	if first := parity(t, fleet(suitetest.Faults{Stale: true}), all...); first.status != 1 {
		t.Fatalf("status %d", first.status)
	}
	if second := parity(t, fleet(suitetest.Faults{}), all...); second.status != 1 || second.fakes.Processes != 0 {
		t.Errorf("status %d, %d processes", second.status, second.fakes.Processes)
	}
}

// asParity is set in a process of this test that is parity with fakes: a file that is made when all goes well up to there.
const asParity = "SAMEBITS_TEST_AS_PARITY"

func init() {
	if marker := os.Getenv(asParity); marker != "" {
		f := fleet(suitetest.Faults{})
		f.OnStart = func(process int) {
			if process < 15 { // two cells are finished, or nearly
				return
			}
			if err := os.WriteFile(marker, nil, 0o600); err != nil {
				panic(err)
			}
			select {}
		}
		a := &app{out: os.Stdout, err: os.Stderr, backend: func(launch.Options) backend { return f }}
		os.Exit(a.run(context.Background(), os.Args[1:]))
	}
}

// A run that is killed goes on where it was: what is there is whole, and only the rest is verified.
func TestKilledAndResumed(t *testing.T) {
	dir := t.TempDir()
	marker, output := filepath.Join(dir, "marker"), filepath.Join(dir, "results")
	all := []string{"verify", "--all", "--precision", "fp32,bf16", "--jobs", "2", "--device", "cuda:0", "--output", output, "--resume"}
	cmd := exec.Command(os.Args[0], all...)
	cmd.Env = append(os.Environ(), asParity+"="+marker)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(marker); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Error("it never came that far")
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	finished, err := result.ReadFolder(output)
	if err != nil || len(finished) == 0 || len(finished) == 8 {
		t.Fatalf("%d results are there: %v", len(finished), err)
	}
	got := parity(t, fleet(suitetest.Faults{}), all...)
	if want := 7 * (8 - len(finished)); got.status != 0 || got.fakes.Processes != want {
		t.Errorf("status %d, %d processes instead of %d\n%s", got.status, got.fakes.Processes, want, got.stderr)
	}
	if said := fmt.Sprintf("%d of 8 cells are finished already", len(finished)); !strings.Contains(got.stderr, said) {
		t.Errorf("stderr lacks %q: %s", said, got.stderr)
	}
	if !strings.Contains(got.stdout, "bf16: 4 of 4 exact") {
		t.Errorf("stdout: %s", got.stdout)
	}
}

func TestMatrixOfFolder(t *testing.T) {
	dir := t.TempDir()
	if got := parity(t, &fakes{}, "matrix", filepath.Join(dir, "missing")); got.status != 3 || !strings.Contains(got.stderr, "no such file") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	if got := parity(t, &fakes{}, "matrix", dir, "-o", "x.html"); got.status != 2 {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	for _, args := range [][]string{{"matrix", dir, "-o", "missing/x.md"}, {"report", dir, "-o", "missing/x.html"}, {"status", "--write-flags", "missing/x.md"}} {
		if got := parity(t, &fakes{}, args...); got.status != 2 || !strings.Contains(got.stderr, "missing/x") || !strings.Contains(got.stderr, "there is no folder missing") {
			t.Errorf("%v: status %d: %s", args, got.status, got.stderr)
		}
	}
	parity(t, fleet(suitetest.Faults{Native: suitetest.ULPs(1), NativeTrace: true}), "verify", "anchor", "--output", dir)
	for name, text := range map[string]string{"schema.json": "{}", "broken.json": "{", "other.json": `{"schema": 9}`, "notes.txt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := parity(t, &fakes{}, "matrix", dir)
	if got.status != 3 || !strings.Contains(got.stderr, "broken.json is no result") || !strings.Contains(got.stderr, "other.json is a result of schema 9") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	golden(t, "matrix-differs", got.stdout)
}
