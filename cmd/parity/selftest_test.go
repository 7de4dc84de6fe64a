package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samebits/parity/hazard"
	"samebits/parity/launch"
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

func TestSelftestUsage(t *testing.T) {
	for _, args := range [][]string{{"--case", "C999"}, {"--section", "X"}, {"--device", "tpu"}, {"--jobs", "-1"}, {"c16"}} {
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
