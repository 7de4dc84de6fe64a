package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samebits/parity/hazard"
	"samebits/parity/launch"
	"samebits/parity/suite/suitetest"
)

// The backend of tests builds healthy families of any name: no fault is there to be found.
func TestSelftestMissesNothing(t *testing.T) {
	c := parity(t, &fakes{}, "selftest", "--device", "host", "--case", "C16,C01,C32")
	if c.status != 1 || !strings.Contains(c.stdout, "C16 c16-switched-branch: not refused for [RECORDING_CHANGES_WITH_STEP]") ||
		!strings.Contains(c.stdout, "0 of 1 faults on host were found, and their twins certified; 1 faults need a GPU, 1 cases are left out") {
		t.Errorf("status %d\n%s%s", c.status, c.stdout, c.stderr)
	}
	c = parity(t, &fakes{}, "selftest", "--device", "host", "--case", "C16", "--json")
	var line trialLine
	if err := json.Unmarshal([]byte(c.stdout), &line); err != nil || c.status != 1 {
		t.Fatalf("status %d, %v\n%s", c.status, err, c.stdout)
	}
	if line.Case != "C16" || !line.Planted || line.OK || line.Verdict != "consistent" || line.Twin != "consistent" {
		t.Errorf("%+v", line)
	}
}

func TestSelftestKeepsWhatItSaw(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen.jsonl")
	if c := parity(t, &fakes{}, "selftest", "--device", "host", "--case", "C16,C01,C32", "--output", file); c.status != 1 {
		t.Errorf("status %d\n%s%s", c.status, c.stdout, c.stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `{"environment":{"`) || !strings.HasPrefix(lines[1], `{"case":"C16","family":"c16-switched-branch","verdict":"consistent"`) ||
		!strings.HasSuffix(lines[1], `"twin":"consistent","ok":false}`) || strings.Contains(lines[0], ".path") {
		t.Errorf("%s", data)
	}
}

// An interrupted run says what is finished, and keeps it; --resume does the rest.
func TestSelftestInterrupted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "seen.jsonl")
	args := []string{"selftest", "--device", "host", "--jobs", "1", "--case", "C06,C09,C16,C01,C32", "--output"}
	whole := parity(t, &fakes{}, append(args, filepath.Join(dir, "whole.jsonl"))...)
	interrupted := func(more ...string) call {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fakes{}
		f.OnStart = func(process int) {
			if process > whole.fakes.Processes/2 { // in the second of three
				f.Crash = context.Canceled
				cancel()
			}
		}
		return parityUntil(ctx, f, append(append(args, file), more...)...)
	}
	first := interrupted()
	if first.status != 3 || first.fakes.Alive != 0 || !strings.Contains(first.stderr, "interrupted; 1 of 3 faults are finished") || strings.Contains(first.stderr, "canceled") {
		t.Errorf("status %d, %d processes alive\n%s", first.status, first.fakes.Alive, first.stderr)
	}
	golden(t, "selftest-interrupted", first.stdout)
	if data := read(t, file); strings.Count(data, "\n") != 2 || !strings.Contains(data, `{"case":"C06"`) {
		t.Errorf("%s", data)
	}
	// As JSON: each case has a line, whether it is finished or not.
	asJSON := interrupted("--json")
	if asJSON.status != 3 || strings.Count(asJSON.stdout, "\n") != 5 || strings.Count(asJSON.stdout, `"skipped":"interrupted before it was finished"`) != 2 {
		t.Errorf("status %d\n%s", asJSON.status, asJSON.stdout)
	}
	second := parity(t, &fakes{}, append(append(args, file), "--resume")...)
	if second.status != 1 || !strings.Contains(second.stderr, "1 of 3 faults are finished already") || second.fakes.Processes != whole.fakes.Processes*2/3 {
		t.Errorf("status %d, %d processes\n%s", second.status, second.fakes.Processes, second.stderr)
	}
	if data := read(t, file); data != read(t, filepath.Join(dir, "whole.jsonl")) {
		t.Errorf("%s", data)
	}
	_, table, _ := strings.Cut(whole.stdout, "CASE")
	if end, _, _ := strings.Cut(table, "again: "); !strings.Contains(second.stdout, strings.Split(end, "\n\n")[0]) {
		t.Errorf("%s instead of\n%s", second.stdout, whole.stdout)
	}
}

// Only what the same programs saw of the same kind of device is taken; lines of other cases stay.
func TestSelftestResume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen.jsonl")
	run := func(f *fakes, args string) call {
		t.Helper()
		return parity(t, f, append(strings.Fields("selftest --output "+file+" --resume"), strings.Fields(args)...)...)
	}
	if c := run(&fakes{}, "--device host --case C09"); c.status != 1 || !strings.Contains(c.stderr, "0 of 1 faults are finished already") {
		t.Errorf("status %d\n%s", c.status, c.stderr)
	}
	if c := run(&fakes{}, "--device host --case C16"); c.status != 1 || c.fakes.Processes == 0 {
		t.Errorf("status %d\n%s", c.status, c.stderr)
	}
	if c := run(&fakes{}, "--device host --case C06"); strings.Join(casesIn(t, file), " ") != "C06 C09 C16" {
		t.Errorf("status %d, %v\n%s", c.status, casesIn(t, file), c.stderr)
	}
	before := read(t, file)
	if c := run(&fakes{}, "--device host --case C16,C09"); c.status != 1 || c.fakes.Processes != 0 || read(t, file) != before ||
		!strings.Contains(c.stderr, "2 of 2 faults are finished already") || !strings.Contains(c.stdout, "C16 c16-switched-branch: not refused") {
		t.Errorf("status %d, %d processes\n%s%s", c.status, c.fakes.Processes, c.stdout, c.stderr)
	}
	for _, other := range []struct {
		name  string
		fakes *fakes
		args  string
		edit  func(data string) string
		says  string
	}{
		{"another engine", &fakes{engine: strings.Repeat("01", 32)}, "--device host", nil, "its engine_build is abababababababab, not 0101010101010101"},
		{"another device", &fakes{gpu: true}, "--device cuda:0", nil, "it is of the device host"},
		{"no device", &fakes{}, "--device host", func(d string) string { return strings.Replace(d, `,"device":"host"`, "", 1) }, "it does not say its device"},
		{"no program", &fakes{}, "--device host", func(d string) string { return strings.Replace(d, `"reference_build"`, `"other"`, 1) }, "it does not say its reference_build"},
		{"no environment", &fakes{}, "--device host", func(d string) string { _, d, _ = strings.Cut(d, "\n"); return d }, "its first line has no environment"},
		{"half a line", &fakes{}, "--device host", func(d string) string { return d[:len(d)-20] }, "is no file of parity selftest"},
	} {
		data := before
		if other.edit != nil {
			data = other.edit(before)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		c := run(other.fakes, other.args+" --case C16")
		if c.status != 1 || c.fakes.Processes == 0 || !strings.Contains(c.stderr, "not reused: "+file) || !strings.Contains(c.stderr, other.says) ||
			strings.Join(casesIn(t, file), " ") != "C16" {
			t.Errorf("%s: status %d, %d processes, %v\n%s", other.name, c.status, c.fakes.Processes, casesIn(t, file), c.stderr)
		}
	}
}

// What broke is tried again.
func TestSelftestResumesNothingBroken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen.jsonl")
	args := []string{"selftest", "--device", "host", "--case", "C16", "--output", file, "--resume"}
	if c := parity(t, faulty(suitetest.Faults{Crash: errors.New("the disk is full")}), args...); c.status != 1 || !strings.Contains(read(t, file), `"broken"`) {
		t.Errorf("status %d\n%s", c.status, c.stdout)
	}
	if c := parity(t, &fakes{}, args...); c.fakes.Processes == 0 || strings.Contains(read(t, file), `"broken"`) || !strings.Contains(c.stderr, "0 of 1 faults") {
		t.Errorf("%d processes\n%s", c.fakes.Processes, c.stderr)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// casesIn gives the cases of a file, in its order.
func casesIn(t *testing.T, path string) []string {
	t.Helper()
	_, lines, err := readSeen(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []string
	for _, l := range lines {
		cases = append(cases, l.Case)
	}
	return cases
}

func TestSelftestUsage(t *testing.T) {
	for _, args := range [][]string{{"--case", "C999"}, {"--section", "X"}, {"--device", "tpu"}, {"--jobs", "-1"}, {"c16"}, {"--resume"}} {
		if c := parity(t, &fakes{}, append([]string{"selftest"}, args...)...); c.status != 2 || c.stdout != "" {
			t.Errorf("%v: status %d, %s", args, c.status, c.stdout)
		}
	}
}

// Every case of the table can be run by its name, and is one of the reference plugin's.
func TestSelftestFamilies(t *testing.T) {
	if os.Getenv(launch.PythonVariable) == "" {
		t.Skipf("needs an interpreter with the reference plugin in %s", launch.PythonVariable)
	}
	t.Chdir("../..") // where the reference plugin's packages are
	entries, err := launch.New(launch.Options{}).Families(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		if e.Group == launch.Planted {
			there[e.Family] = true
		}
	}
	for _, c := range hazard.Cases {
		for _, p := range c.Plants {
			if !there[p.Family] || !there[p.Twin()] {
				t.Errorf("%s: the reference plugin has no %s, or no twin of it", c.ID, p.Family)
			}
			delete(there, p.Family)
			delete(there, p.Twin())
		}
	}
	for family := range there {
		t.Errorf("no case has %s", family)
	}
}

// One fault of each kind that the host can show, with the real plugins.
func TestSelftestEndToEnd(t *testing.T) {
	if os.Getenv(launch.PythonVariable) == "" || testing.Short() {
		t.Skipf("needs an interpreter with PyTorch in %s, and some ten seconds", launch.PythonVariable)
	}
	root := t.TempDir()
	program := build(t, root, "parity", ".")
	build(t, root, "samebits-predictor", "../../plugins/predictor")
	// A gate on recordings, refusals of the recorder, eager noise, an input that is ignored, and bits that native lacks.
	cmd := exec.Command(program, "selftest", "--device", "host", "--json", "--case", "C16,C17,C52,C64,C86")
	cmd.Dir = "../.." // where the reference plugin's packages are
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if lines := strings.Count(stdout.String(), `"ok":true`); lines != 6 {
		t.Errorf("%d of 6 are good\n%s", lines, stdout.String())
	}
}
