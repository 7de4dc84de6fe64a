package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	. "samebits/bridge/recording/recordingtest"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
	"samebits/parity/launch"
	"samebits/parity/ops"
	"samebits/parity/ops/opstest"
	"samebits/parity/suite"
)

// opsFakes is a backend whose arms run recordings; its reference records a fake family, too.
type opsFakes struct {
	*fakes
	engines *opstest.Starter
}

func (f *opsFakes) Reference(ctx context.Context) (suite.Arm, error) {
	builds, err := f.fakes.Reference(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := f.engines.Reference(ctx)
	return &either{runs, builds, runs}, err
}

func (f *opsFakes) Native(ctx context.Context, reference []recording.Setting) (suite.Arm, error) {
	return f.engines.Native(ctx, reference)
}

// either becomes what builds families when it is asked to build one.
type either struct {
	suite.Arm
	builds, runs suite.Arm
}

func (e *either) Build(ctx context.Context, r arm.BuildRequest) (arm.BuildReply, error) {
	e.Arm = e.builds
	return e.builds.Build(ctx, r)
}

func (e *either) Stop() { e.builds.Stop(); e.runs.Stop() }

// parityOps runs the command on engines.
func parityOps(t *testing.T, engines *opstest.Starter, args ...string) call {
	t.Helper()
	f := &opsFakes{&fakes{gpu: true}, engines}
	var out, err bytes.Buffer
	a := &app{out: &out, err: &err, backend: func(launch.Options) backend { return f }}
	status := a.run(t.Context(), append([]string{"ops"}, args...))
	if f.Alive+engines.Alive != 0 {
		t.Errorf("%d processes were left behind", f.Alive+engines.Alive)
	}
	return call{out.String(), err.String(), status, f.fakes}
}

// sampleRecording writes a recording of relu in four sizes, neg, and a view into the working directory of the test.
func sampleRecording(t *testing.T, name string) {
	t.Helper()
	b := New("cpu")
	for i := range int64(4) {
		x := b.Tensor(recording.Input, fmt.Sprint("in", i), tensor.Float32, 2, 3+i)
		b.Input(fmt.Sprint("in", i), x)
		y := b.Scratch(tensor.Float32, 2, 3+i)
		b.Op("aten::relu", Args(Value("self", x)), y)
		b.Output(fmt.Sprint("out", i), y)
		if i == 0 {
			z := b.Scratch(tensor.Float32, 2, 3)
			b.Op("aten::neg", Args(Value("self", y)), z)
			b.Op("aten::t", Args(Value("self", z)), b.View(z, []int64{3, 2}, []int64{1, 3}, 0))
			b.Output("negative", z)
		}
	}
	b.R.Header.ProfileSettings = nil
	file, err := recording.Encode(b.R)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, file, 0o644); err != nil {
		t.Fatal(err)
	}
}

func flipped(x float32) float32 { return math.Float32frombits(math.Float32bits(x) ^ 2) }

func TestOpsOutput(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sampleRecording(t, filepath.Join(dir, "recording.pb"))
	for _, c := range []struct {
		name    string
		engines *opstest.Starter
		args    []string
		status  int
	}{
		{"help-ops", &opstest.Starter{}, []string{"--help"}, 0},
		{"ops-exact", &opstest.Starter{}, []string{"recording.pb"}, 0},
		{"ops-differs", &opstest.Starter{Faults: opstest.Fault{Operation: "aten::relu", Element: 4, Change: flipped}}, []string{"recording.pb", "--values", "ordinary"}, 1},
		{"ops-host", &opstest.Starter{Faults: opstest.Fault{Operation: "aten::neg", Element: 1, Change: flipped}}, []string{"recording.pb", "--device", "host", "--filter", "neg"}, 1},
		{"ops-refused", &opstest.Starter{Faults: opstest.Fault{Refuse: map[string]string{"aten::mul.Tensor": "UNSUPPORTED"}}}, []string{"fake", "--precision", "fp32,bf16"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(dir) // so that no name of it is in what is printed
			got := parityOps(t, c.engines, c.args...)
			if got.status != c.status {
				t.Errorf("status %d: %s", got.status, got.stderr)
			}
			t.Chdir(here)
			golden(t, c.name, got.stdout+"--- stderr\n"+got.stderr)
		})
	}
}

func TestOpsChoice(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("cells/one", 0o755); err != nil {
		t.Fatal(err)
	}
	sampleRecording(t, "cells/one/recording.pb")
	sampleRecording(t, "cells/two.pb")
	for args, want := range map[string]string{
		"cells":                            "6 signatures of 3 operations: 5 exact, 1 skipped",
		"cells/two.pb":                     "6 signatures of 3 operations: 5 exact, 1 skipped",
		"cells --filter aten::*":           "6 signatures of 3 operations: 5 exact, 1 skipped",
		"cells --filter r*,neg":            "5 signatures of 2 operations: 5 exact",
		"cells --limit 2":                  "4 signatures of 3 operations: 3 exact, 1 skipped",
		"cells --values edges --seed 9":    "5 exact, 1 skipped; edges values, seed 9",
		"cells --filter relu --memory 1":   "4 signatures of 1 operation: 4 exact",
		"cells --device host --limit 1":    "on host",
		"cells/one/recording.pb cells":     "6 signatures",
		"cells --filter aten::relu.Tensor": "",
		"missing.pb":                       "",
		"missing/folder":                   "",
		"cells --filter [":                 "",
		"cells --values odd":               "",
		"cells --limit -1":                 "",
		"cells --signature ffffffffffff":   "",
	} {
		got := parityOps(t, &opstest.Starter{}, strings.Fields(args)...)
		if want == "" && got.status != 2 || want != "" && (got.status != 0 || !strings.Contains(got.stdout, want)) {
			t.Errorf("%s: status %d\n%s%s", args, got.status, got.stdout, got.stderr)
		}
	}
	if err := os.WriteFile("torn.pb", []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := parityOps(t, &opstest.Starter{}, "torn.pb"); got.status != 2 || !strings.Contains(got.stderr, "TORN_RECORDING") {
		t.Errorf("torn: status %d, %s", got.status, got.stderr)
	}
}

// What a failure says to repeat repeats it, and nothing else.
func TestOpsAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	sampleRecording(t, "recording.pb")
	faults := opstest.Fault{Operation: "aten::relu", Element: 1, Change: flipped}
	var r ops.Report
	got := parityOps(t, &opstest.Starter{Faults: faults}, "recording.pb", "--json", "--seed", "3")
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatalf("%v\n%s", err, got.stdout)
	}
	if r.Operations[0].Operation != "aten::relu" || r.Operations[0].Differing != 4 || len(r.Findings) != 6 {
		t.Fatalf("%+v", r.Operations)
	}
	for _, f := range r.Findings {
		if f.Outcome != ops.Differs {
			continue
		}
		again := parityOps(t, &opstest.Starter{Faults: faults}, append(strings.Fields(f.Reproduce)[2:], "--json")...)
		var alone ops.Report
		if err := json.Unmarshal([]byte(again.stdout), &alone); err != nil {
			t.Fatal(err)
		}
		if len(alone.Findings) != 1 || alone.Findings[0].ID != f.ID || alone.Findings[0].Differences[0].Native != f.Differences[0].Native {
			t.Errorf("%s: %+v", f.Reproduce, alone.Findings)
		}
	}
}

// The test binary is a native plugin with a fault, too, when it is started so.
const asFaulty = "SAMEBITS_TEST_FAULTY"

func init() {
	if os.Getenv(asFaulty) != "" {
		serve.Serve(&faultyPlugin{engine: opstest.Engine{Fault: opstest.Fault{Operation: "aten::neg", Element: 5, Change: flipped}}})
		os.Exit(0)
	}
}

// faultyPlugin serves an engine.
type faultyPlugin struct {
	serve.Unimplemented
	engine          opstest.Engine
	inputs, outputs [][]byte
}

func (p *faultyPlugin) Describe(context.Context) (serve.Description, error) {
	return serve.Description{Plugin: "faulty", Version: "1", Arms: []string{arm.NativeEager}, Devices: []string{"host"}}, nil
}

func (p *faultyPlugin) Load(_ context.Context, memory *serve.Memory, r serve.LoadRequest) (serve.LoadReply, error) {
	file, err := memory.Bytes(r.Recording)
	if err == nil {
		var weights []byte
		if weights, err = memory.Bytes(r.Weights); err == nil {
			err = p.engine.Load(file, weights)
		}
	}
	if err != nil {
		return serve.LoadReply{}, err
	}
	return serve.LoadReply{Inputs: p.engine.Inputs(), Outputs: p.engine.Outputs()}, nil
}

func (p *faultyPlugin) Prepare(_ context.Context, memory *serve.Memory, r serve.PrepareRequest) (reply serve.PrepareReply, err error) {
	find := func(bank serve.Bank) (all [][]byte) {
		for _, placed := range bank {
			data, problem := memory.Tensor(placed)
			if problem != nil {
				err = problem
			}
			all = append(all, data)
		}
		return all
	}
	p.inputs, p.outputs = find(r.Inputs[0]), find(r.Outputs[0])
	return reply, err
}

func (p *faultyPlugin) Disturb(context.Context, serve.DisturbRequest) error { return nil }

func (p *faultyPlugin) Step(int, int) error { return p.engine.Step(p.inputs, p.outputs) }

// The real PyTorch and a plugin that is wrong in one element of one operation.
func TestOpsFindsAPlantedFault(t *testing.T) {
	if os.Getenv(launch.PythonVariable) == "" || testing.Short() {
		t.Skipf("needs an interpreter with PyTorch in %s, and some ten seconds", launch.PythonVariable)
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plugin := filepath.Join(dir, "faulty")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\n"+asFaulty+"=1 exec "+self+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "recording.pb")
	sampleRecording(t, file)
	program := build(t, dir, "parity", ".")
	compare := func(plugin string, status int) (r ops.Report) {
		cmd := exec.Command(program, "ops", file, "--device", "host", "--predictor", plugin, "--json")
		cmd.Dir = repository // where the reference plugin's packages are
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != status {
			t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
		}
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	sound := compare(build(t, dir, "samebits-predictor", "../../plugins/predictor"), 0)
	if total := sound.Total(); total.Compared != 5 || sound.Environment["host.compiler"] == "" {
		t.Errorf("%+v, on %v", total, sound.Environment)
	}
	r := compare(plugin, 1)
	if row := r.Operations[0]; row != (ops.Row{Operation: "aten::neg", Signatures: 1, Compared: 1, Differing: 1}) {
		t.Errorf("%+v", r.Operations)
	}
	for _, f := range r.Findings {
		if f.Operation != "aten::neg" {
			if f.Outcome != ops.Exact && f.Outcome != ops.Consistent && f.Reason != "VIEW" {
				t.Errorf("%s: %s %s", f.Operation, f.Outcome, f.Detail)
			}
			continue
		}
		for _, d := range f.Differences {
			if d.Bits.Different != 1 || fmt.Sprint(d.At) != "[1 2]" || !regexp.MustCompile(`^0x[0-9a-f]{8} \(.+\)$`).MatchString(d.Native) {
				t.Errorf("%+v", d)
			}
		}
		if len(f.Differences) != 3 {
			t.Errorf("found on %d kinds of values", len(f.Differences))
		}
	}
}
