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

// endToEnd runs the program with the real plugins on the device host, and gives its one result.
func endToEnd(t *testing.T, plugin string, args ...string) result.Result {
	t.Helper()
	if os.Getenv(launch.PythonVariable) == "" || testing.Short() {
		t.Skipf("needs an interpreter with PyTorch in %s, and some ten seconds", launch.PythonVariable)
	}
	root := t.TempDir()
	program := build(t, root, "parity", ".")
	build(t, root, "samebits-"+plugin, "../../plugins/"+plugin)
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(root, "results")
	cmd := exec.Command(program, append(args, "--device", "host", "--json", "--output", output)...)
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
	if _, err := os.Stat(filepath.Join(output, r.Name())); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"torch", "host.compiler", "engine_build"} {
		if r.Environment[key] == "" {
			t.Errorf("the environment lacks %s: %v", key, r.Environment)
		}
	}
	for _, id := range gate.Order(r.Mode) {
		want := gate.Passed
		if id == gate.Native {
			want = gate.Rounding
		}
		if f := r.Gates[id]; f.Outcome != want && f.Reason != gate.NotApplicable && f.Reason != gate.NoSecondDevice {
			t.Errorf("gate %s: %s %s", id, f.Outcome, f.Detail)
		}
	}
	return r
}

// The smallest images that resnet takes.
func TestEndToEnd(t *testing.T) {
	r := endToEnd(t, "predictor", "verify", "resnet", "--imgsz", "32")
	if r.Verdict != result.Consistent || r.Size != "18" || r.Task != "classify" || r.ImgSize != 32 {
		t.Errorf("%s: %s", r.Verdict, r.Summary)
	}
}

func TestTrainingEndToEnd(t *testing.T) {
	r := endToEnd(t, "trainer", "verify", "resnet", "--mode", "train", "--imgsz", "64", "--batch", "4", "--steps", "6")
	if r.Verdict != result.Consistent || r.Mode != gate.Train || r.Training.Steps != 6 {
		t.Errorf("%s: %s", r.Verdict, r.Summary)
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
	script := filepath.Join(dir, "garbage")
	for _, c := range []struct{ name, python, native, reason string }{
		{"missing", filepath.Join(dir, "missing"), script, "PLUGIN_MISSING"},
		{"prints garbage", script, script, "PLUGIN_HANDSHAKE"},
		{"crashes", filepath.Join(dir, "crash"), script, "PLUGIN_EXITED"},
		{"is no program", filepath.Join(dir, "text"), script, "PLUGIN_FORMAT"},
		{"is a folder", dir, script, "PLUGIN_NOT_EXECUTABLE"},
		{"native is missing", script, filepath.Join(dir, "missing"), "parity: plugin predictor: PLUGIN_MISSING: --predictor names "},
		{"native is no program", script, filepath.Join(dir, "text"), "parity: plugin predictor: PLUGIN_FORMAT: "},
		{"native is a folder", script, dir, "parity: plugin predictor: PLUGIN_NOT_EXECUTABLE: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, err bytes.Buffer
			a := &app{out: &out, err: &err, backend: findPlugins}
			status := a.run(t.Context(), []string{"verify", "resnet", "--device", "host", "--python", c.python, "--predictor", c.native})
			if status != 3 || !strings.Contains(out.String()+err.String(), c.reason) {
				t.Errorf("status %d\n%s%s", status, out.String(), err.String())
			}
		})
	}
}
