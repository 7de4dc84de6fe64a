package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/bench"
	"samebits/parity/launch"
)

// TestBenchEndToEnd measures with the real plugins on the device host: every figure that can be had there is there. How large
// it is says nothing.
func TestBenchEndToEnd(t *testing.T) {
	if os.Getenv(launch.PythonVariable) == "" || testing.Short() {
		t.Skipf("needs an interpreter with PyTorch in %s, and some ten seconds", launch.PythonVariable)
	}
	root := t.TempDir()
	program := build(t, root, "parity", ".")
	build(t, root, "samebits-predictor", "../../plugins/predictor")
	output := filepath.Join(root, "bench")
	cmd := exec.Command(program, "bench", "resnet", "--imgsz", "32", "--rounds", "1", "--iterations", "2", "--device", "host", "--output", output)
	cmd.Dir = "../.." // where the reference plugin's packages are
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := bench.Read(filepath.Join(output, benchFile))
	if err != nil {
		t.Fatal(err)
	}
	c := &r.Cells[0]
	if c.Outcome != bench.Measured || r.GPUFigures || c.Name() != "resnet-18 classify 32 batch 1 fp32" || c.Operations == 0 {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{arm.ReferenceEager, arm.NativeEager, arm.NativeGraph} {
		a := c.Arm(name)
		if a == nil || a.Step == nil || a.Step.Steps != 2 || a.Launches == 0 || a.Memory.MaxRSSBytes == 0 || a.Memory.SharedBytes == 0 || len(a.Ready) < 4 {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for _, name := range []string{bench.FirstCold, bench.FirstWarm, bench.FirstReference} {
		f := c.FirstOf(name)
		if f == nil || f.MaxRSS == 0 || f.Same == nil || len(f.Stages) < 4 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if cold, warm := c.FirstOf(bench.FirstCold), c.FirstOf(bench.FirstWarm); cold.Outcome != bench.Measured || warm.Outcome != bench.Measured {
		t.Errorf("%+v, %+v", cold, warm)
	}
	if _, err := os.Stat(filepath.Join(output, benchPage)); err != nil {
		t.Error(err)
	}
}
