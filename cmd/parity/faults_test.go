package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/launch"
	"samebits/parity/ops/opstest"
	"samebits/parity/result"
	"samebits/parity/suite/suitetest"
)

// native is a fault that NATIVE finds, on a GPU.
func nativeFault() *fakes {
	f := faulty(suitetest.Faults{Native: suitetest.ULPs(2), NativeTrace: true})
	f.gpu = true
	return f
}

// kept verifies the fake family and gives the file of its result.
func kept(t *testing.T, f *fakes, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	parity(t, f, append([]string{"verify", "fake", "--output", dir}, args...)...)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(err, files)
	}
	return files[0]
}

func TestExplain(t *testing.T) {
	path := kept(t, nativeFault())
	got := parity(t, &fakes{}, "explain", path)
	if got.status != 0 || got.fakes.Processes != 0 {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
	text := got.stdout
	golden(t, "explain-native", text)
	got = parity(t, &fakes{}, "explain", path, "--json")
	var object struct {
		Verdict      string
		Explanations []struct{ Gate, Arm, Reason, Saw, Here, Look, Reproduce string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &object); err != nil || object.Verdict != "differs" || len(object.Explanations) != 2 ||
		!strings.HasPrefix(object.Explanations[0].Reproduce, "parity trace fake") {
		t.Errorf("%v: %s", err, got.stdout)
	}
	if of := parity(t, &fakes{}, "explain", filepath.Dir(path)); of.status != 0 || of.stdout != text {
		t.Errorf("of the folder: status %d\n%s%s", of.status, of.stdout, of.stderr)
	}
	if got := parity(t, &fakes{}, "explain", t.TempDir()); got.status != 2 || !strings.Contains(got.stderr, "there is no result in") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	if got := parity(t, &fakes{}, "explain", "nothing.json"); got.status != 2 {
		t.Errorf("status %d", got.status)
	}
}

func TestDiffResults(t *testing.T) {
	good, again, bad := kept(t, &fakes{gpu: true}), kept(t, &fakes{gpu: true}), kept(t, nativeFault())
	if got := parity(t, &fakes{}, "diff", good, again); got.status != 0 || !strings.Contains(got.stdout, "equal:") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	got := parity(t, &fakes{}, "diff", good, bad)
	if got.status != 1 || !strings.Contains(got.stdout, "* NATIVE ") || !strings.Contains(got.stdout, "* native-eager noise logits") {
		t.Errorf("status %d\n%s", got.status, got.stdout)
	}
	var object struct {
		Equal bool
		Rows  []struct{ Section string }
	}
	got = parity(t, &fakes{}, "diff", good, bad, "--json")
	if err := json.Unmarshal([]byte(got.stdout), &object); err != nil || got.status != 1 || object.Equal || len(object.Rows) < 20 {
		t.Errorf("%v: %s", err, got.stdout)
	}
	for _, args := range [][]string{{good}, {good, "recording.pb"}, {good, "other.json"}, {"x.pb", "y.pb"}} {
		if got := parity(t, &fakes{}, append([]string{"diff"}, args...)...); got.status != 2 {
			t.Errorf("%v: status %d", args, got.status)
		}
	}
}

func TestDiffOfTwoKinds(t *testing.T) {
	got := parity(t, &fakes{}, "diff", "a.json", "b.pb")
	if got.status != 2 || !strings.Contains(got.stderr, "a.json is a result and b.pb is a recording") {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
}

func TestDiffRecordings(t *testing.T) {
	one, other := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "other")
	for _, dir := range []string{one, other} {
		if got := parity(t, &fakes{}, "record", "fake", "-o", dir); got.status != 0 {
			t.Fatal(got.stderr)
		}
	}
	if got := parity(t, &fakes{}, "diff", one, other); got.status != 0 || !strings.Contains(got.stdout, "the same bytes") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	path := filepath.Join(other, "recording.pb")
	r, _, err := readRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	r.Operations[1].Arguments[2].Int = 3
	file, err := recording.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	got := parity(t, &fakes{}, "diff", filepath.Join(one, "recording.pb"), other)
	if got.status != 1 || !strings.Contains(got.stdout, "operations[1].arguments[2]") || !strings.Contains(got.stdout, "in head at fake.py:7") {
		t.Errorf("status %d\n%s", got.status, got.stdout)
	}
}

// What verify writes for continuous integration says what its results say, whatever else it prints.
func TestReportsForCI(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	f := fleet(suitetest.Faults{CrashesOn: "buoy"})
	got := parity(t, f, "verify", "*", "--junit", at("x.xml"), "--sarif", at("x.sarif"), "--jsonl", at("x.jsonl"), "--json")
	var suites struct {
		Tests, Errors int      `xml:",attr"`
		Names         []string `xml:"testsuite"`
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if err := xml.Unmarshal(read("x.xml"), &suites); err != nil || len(suites.Names) != strings.Count(got.stdout, "\n") {
		t.Errorf("%v\n%s", err, read("x.xml"))
	}
	var log struct {
		Runs []struct{ Results []struct{ RuleID string } }
	}
	if err := json.Unmarshal(read("x.sarif"), &log); err != nil || len(log.Runs) != 1 {
		t.Errorf("%v\n%s", err, read("x.sarif"))
	}
	if string(read("x.jsonl")) != got.stdout {
		t.Errorf("%s\ninstead of\n%s", read("x.jsonl"), got.stdout)
	}
	broken := 0
	for line := range strings.Lines(got.stdout) {
		var r result.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Verdict == result.Broken {
			broken++
		}
	}
	if broken != 1 || broken != len(log.Runs[0].Results) {
		t.Errorf("%d broken cells, %d results of SARIF (status %d)", broken, len(log.Runs[0].Results), got.status)
	}
	for _, flag := range []string{"--jsonl", "--junit", "--sarif"} {
		if got := parity(t, fleet(suitetest.Faults{}), "verify", "a*", flag, at("none/file")); got.status < 2 {
			t.Errorf("%s: status %d", flag, got.status)
		}
	}
}

func TestFaultsHelp(t *testing.T) {
	for _, name := range []string{"diff", "explain", "bisect", "reduce"} {
		golden(t, "help-"+name, parity(t, &fakes{}, name, "--help").stdout)
	}
}

// planted runs a command on engines one of which is wrong.
func planted(t *testing.T, faults opstest.Fault, args ...string) call {
	t.Helper()
	engines := &opstest.Starter{Faults: faults}
	f := &opsFakes{&fakes{gpu: true}, engines}
	var out, err bytes.Buffer
	a := &app{out: &out, err: &err, backend: func(launch.Options) backend { return f }}
	status := a.run(t.Context(), args)
	if f.Alive+engines.Alive != 0 {
		t.Errorf("%d processes were left behind", f.Alive+engines.Alive)
	}
	return call{out.String(), err.String(), status, f.fakes}
}

func TestBisectAndReduce(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	wrong := opstest.Fault{Operation: "aten::mul.Tensor", Element: 7, Change: flipped}
	for name, got := range map[string]call{
		"bisect": planted(t, wrong, "bisect", "fake", "-o", "fault"),
		"reduce": planted(t, wrong, "reduce", "fake", "-o", "smallest"),
	} {
		if got.status != 1 {
			t.Errorf("%s: status %d: %s", name, got.status, got.stderr)
		}
		wd, _ := os.Getwd() // it was just changed
		t.Chdir(here)
		golden(t, name, got.stdout)
		t.Chdir(wd)
	}
	for _, file := range []string{"recording.pb", "recording.txt", "inputs.safetensors", "reference.safetensors", "native.safetensors", "run.py", "report.json"} {
		for _, dir := range []string{"fault", "smallest"} {
			if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
				t.Error(err)
			}
		}
	}
	// What was kept shows the fault again; a right engine has none.
	if got := planted(t, wrong, "bisect", "smallest", "-o", "again", "--json"); got.status != 1 || !strings.Contains(got.stdout, `"alone": true`) {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if got := planted(t, wrong, "reduce", "fault", "-o", "again", "--json"); got.status != 1 || !strings.Contains(got.stdout, `"operations": [`) {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	for _, command := range []string{"bisect", "reduce"} {
		if got := planted(t, opstest.Fault{}, command, "fake", "-o", "none"); got.status != 0 || isFolder("none") {
			t.Errorf("%s: status %d\n%s%s", command, got.status, got.stdout, got.stderr)
		}
		for _, args := range [][]string{{"fake"}, {"no/folder", "-o", "x"}, {"fake", "--precision", "fp32,bf16", "-o", "x"}} {
			if got := planted(t, opstest.Fault{}, append([]string{command}, args...)...); got.status != 2 {
				t.Errorf("%s %v: status %d", command, args, got.status)
			}
		}
	}
}

// In training the step's recording is looked at, from the state before it.
func TestBisectAndReduceTraining(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	wrong := opstest.Fault{Operation: "aten::add.Tensor", Element: 7, Change: flipped}
	train := func(command, step, dir string) []string {
		return []string{command, "fake", "--mode", "train", "--batch", "4", "--steps", "6", "--step", step, "-o", dir}
	}
	found := map[string]call{"bisect": planted(t, wrong, train("bisect", "3", "fault")...), "reduce": planted(t, wrong, train("reduce", "3", "smallest")...)}
	first := planted(t, wrong, train("bisect", "1", "first")...)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	for name, got := range found {
		if got.status != 1 {
			t.Errorf("%s: status %d: %s", name, got.status, got.stderr)
		}
		golden(t, name+"-train", got.stdout)
	}
	t.Chdir(dir)
	if first.status != 1 {
		t.Errorf("status %d: %s", first.status, first.stderr)
	}
	var reports [2]struct {
		Step      int
		Reference string
	}
	var states [2][]byte
	for i, dir := range []string{"first", "fault"} {
		data, err := os.ReadFile(filepath.Join(dir, "report.json"))
		if err != nil || json.Unmarshal(data, &reports[i]) != nil {
			t.Fatalf("%v: %s", err, data)
		}
		file, err := safetensors.ReadFile(filepath.Join(dir, "inputs.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		weight, has := file.Get("fc.weight")
		if !has {
			t.Fatalf("%s has no fc.weight", dir)
		}
		states[i] = weight.Data
	}
	if reports[0].Step != 1 || reports[1].Step != 3 || reports[0].Reference == reports[1].Reference || bytes.Equal(states[0], states[1]) {
		t.Errorf("steps 1 and 3 are given the same: %+v", reports)
	}
	for _, command := range []string{"bisect", "reduce"} {
		if got := planted(t, wrong, command, "fault", "-o", "again", "--json"); got.status != 1 {
			t.Errorf("%s of what was kept: status %d\n%s", command, got.status, got.stderr)
		}
		if got := planted(t, opstest.Fault{}, train(command, "2", "none")...); got.status != 0 || isFolder("none") {
			t.Errorf("%s: status %d\n%s%s", command, got.status, got.stdout, got.stderr)
		}
		for _, args := range [][]string{train(command, "7", "x"), train(command, "0", "x"), {command, "fake", "--step", "2", "-o", "x"}, {command, "fault", "--step", "2", "-o", "x"}} {
			if got := planted(t, opstest.Fault{}, args...); got.status != 2 {
				t.Errorf("%v: status %d\n%s", args, got.status, got.stderr)
			}
		}
	}
}
