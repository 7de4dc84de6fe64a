package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samebits/parity/gate"
	"samebits/parity/launch"
	"samebits/parity/result"
)

// build makes a program of this module.
func build(t *testing.T, dir, name, from string) string {
	t.Helper()
	path := filepath.Join(dir, "bin", name)
	if out, err := exec.Command("go", "build", "-o", path, from).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", from, err, out)
	}
	return path
}

// The real plugins, on the device host: the smallest images that resnet takes.
func TestEndToEnd(t *testing.T) {
	python := os.Getenv(launch.PythonVariable)
	if python == "" || testing.Short() {
		t.Skipf("needs an interpreter with PyTorch in %s, and some ten seconds", launch.PythonVariable)
	}
	root := t.TempDir()
	program := build(t, root, "parity", ".")
	build(t, root, "samebits-predictor", "../../plugins/predictor")
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(root, "results")
	cmd := exec.Command(program, "verify", "resnet", "--imgsz", "32", "--device", "host", "--json", "--output", output)
	cmd.Dir = repository // where the reference plugin's packages are
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	var r result.Result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Verdict != result.Consistent || r.Size != "18" || r.Task != "classify" || r.ImgSize != 32 {
		t.Errorf("%s: %s", r.Verdict, r.Summary)
	}
	for id, want := range map[gate.ID]gate.Outcome{gate.SameRecording: gate.Passed, gate.Reproduces: gate.Passed, gate.InputSeen: gate.Passed,
		gate.Engaged: gate.Passed, gate.Replay: gate.Passed, gate.NotStale: gate.Passed, gate.Native: gate.Rounding} {
		if f := r.Gates[id]; f.Outcome != want {
			t.Errorf("gate %s: %s %s", id, f.Outcome, f.Detail)
		}
	}
	for _, key := range []string{"torch", "host.compiler", "engine_build"} {
		if r.Environment[key] == "" {
			t.Errorf("the environment lacks %s: %v", key, r.Environment)
		}
	}
	if _, err := os.Stat(filepath.Join(output, r.Name())); err != nil {
		t.Error(err)
	}
}

// What can be wrong with the plugins' programs is said in a moment, with status 3.
func TestBrokenPlugins(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"garbage": "#!/bin/sh\necho garbage\n", "crash": "#!/bin/sh\nexit 7\n", "text": "no program\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, python, reason string }{
		{"missing", filepath.Join(dir, "missing"), "PLUGIN_MISSING"},
		{"prints garbage", filepath.Join(dir, "garbage"), "PLUGIN_HANDSHAKE"},
		{"crashes", filepath.Join(dir, "crash"), "PLUGIN_EXITED"},
		{"is no program", filepath.Join(dir, "text"), "PLUGIN_FORMAT"},
		{"is a folder", dir, "PLUGIN_NOT_EXECUTABLE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, err bytes.Buffer
			a := &app{out: &out, err: &err, backend: findPlugins}
			status := a.run(t.Context(), []string{"verify", "resnet", "--device", "host", "--python", c.python, "--predictor", filepath.Join(dir, "text")})
			if status != 3 || !strings.Contains(out.String()+err.String(), c.reason) {
				t.Errorf("status %d\n%s%s", status, out.String(), err.String())
			}
		})
	}
}
