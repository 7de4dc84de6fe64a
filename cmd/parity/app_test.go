package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/parity/bench"
	"samebits/parity/gate"
	"samebits/parity/launch"
	"samebits/parity/result"
	"samebits/parity/suite/suitetest"
)

var rewrite = flag.Bool("rewrite", false, "write what the commands print to testdata")

// fakes is a backend without plugins.
type fakes struct {
	suitetest.Starter
	missing error // of every program
	native  error // of the native plugins
	gpu     bool
	options launch.Options
	engine  string         // its build, if it is not the usual one
	table   []launch.Entry // of families, if it is not the usual one
	memory  string         // of the GPU, in bytes; empty: not known
}

func (f *fakes) Python() (string, error) { return "python", f.missing }
func (f *fakes) Predictor() (string, error) {
	return "samebits-predictor", errors.Join(f.missing, f.native)
}
func (f *fakes) Trainer() (string, error) {
	return "samebits-trainer", errors.Join(f.missing, f.native)
}
func (f *fakes) EngineBuild() (string, error) {
	if f.engine != "" {
		return f.engine, nil
	}
	return strings.Repeat("ab", 32), f.missing
}

func (f *fakes) TrainerBuild() (string, error) {
	return strings.Repeat("cd", 32), f.missing
}

func (f *fakes) ReferenceBuild() (string, error) { return strings.Repeat("ef", 32), f.missing }

func (f *fakes) Tune(launch.Tuning) {}
func (f *fakes) Close()             {}

func (f *fakes) Families(context.Context) ([]launch.Entry, error) {
	if f.table != nil {
		return f.table, nil
	}
	return []launch.Entry{{Family: "fake", Task: "classify", Size: "s", ImgSize: 640, Native: 8, Group: launch.Matrix},
		{Family: "fake", Task: "detect", Size: "s", ImgSize: 640, Native: 8, Group: launch.Matrix}}, f.missing
}

func (f *fakes) Inspect(context.Context) (launch.PythonInfo, error) {
	info := launch.PythonInfo{Path: "python", Version: "3.12.0", Packages: map[string]string{}}
	for _, name := range launch.Packages {
		info.Packages[name] = "1.0"
	}
	return info, f.missing
}

func (f *fakes) Devices(context.Context) ([]launch.Device, error) {
	devices := []launch.Device{{Name: "host", Environment: []recording.Setting{{Key: "host.compiler", Value: "g++ 12"}}},
		{Name: "cuda:0", Problem: "libcuda.so.1: no such file"}}
	if f.gpu {
		devices[1].Problem = ""
		devices[1].Environment = []recording.Setting{{Key: "cudnn.path", Value: "/srv/site-packages/nvidia/cudnn/lib/libcudnn.so.9"}}
		if f.memory != "" {
			devices[1].Environment = append(devices[1].Environment, recording.Setting{Key: "gpu.memory", Value: f.memory})
		}
	}
	return devices, f.missing
}

type call struct {
	stdout, stderr string
	status         int
	fakes          *fakes
}

func parity(t *testing.T, f *fakes, args ...string) call {
	t.Helper()
	return parityUntil(t.Context(), f, args...)
}

func parityUntil(ctx context.Context, f *fakes, args ...string) call {
	var out, err bytes.Buffer
	a := &app{out: &out, err: &err, backend: func(o launch.Options) backend { f.options = o; return f }}
	status := a.run(ctx, args)
	return call{out.String(), err.String(), status, f}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (go test -rewrite writes it anew)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestHelp(t *testing.T) {
	for name, args := range map[string][]string{
		"help":        {},
		"help-verify": {"verify", "--help"}, "help-list": {"list", "--help"}, "help-record": {"record", "--help"},
		"help-doctor": {"doctor", "--help"}, "help-matrix": {"matrix", "--help"}, "help-version": {"version", "--help"}, "help-trace": {"trace", "--help"},
	} {
		c := parity(t, &fakes{}, args...)
		if c.status != 0 || c.stderr != "" {
			t.Errorf("%s: status %d, %s", name, c.status, c.stderr)
		}
		golden(t, name, c.stdout)
	}
}

func TestOutput(t *testing.T) {
	broken := faulty(suitetest.Faults{Native: suitetest.ULPs(2), NativeTrace: true})
	broken.gpu = true
	unlearned := faulty(suitetest.Faults{NativeTrace: true, Training: suitetest.Training{StaleHyper: "momentum",
		NativeGradient: func(grad []float64) { grad[5] *= 2 }}})
	unlearned.gpu = true
	for _, c := range []struct {
		name   string
		fakes  *fakes
		args   []string
		status int
	}{
		{"list", &fakes{}, []string{"list"}, 0},
		{"list-json", &fakes{}, []string{"list", "--json"}, 0},
		{"doctor", &fakes{}, []string{"doctor"}, 0},
		{"doctor-missing", &fakes{missing: &host.Error{Reason: host.ReasonMissing, Plugin: "x", Summary: "there is none"}}, []string{"doctor"}, 3},
		{"verify-exact", &fakes{gpu: true}, []string{"verify", "fake"}, 0},
		{"verify-host", &fakes{}, []string{"verify", "fake"}, 0},
		{"verify-differs", broken, []string{"verify", "fake"}, 1},
		{"train-exact", &fakes{gpu: true}, []string{"verify", "fake", "--mode", "train", "--batch", "4", "--steps", "8"}, 0},
		{"train-host", &fakes{}, []string{"verify", "fake", "--mode", "train", "--batch", "4", "--steps", "8"}, 0},
		{"train-differs", unlearned, []string{"verify", "fake", "--mode", "train", "--batch", "4", "--steps", "8"}, 1},
		{"verify-refused", faulty(suitetest.Faults{Refuses: refusal}), []string{"verify", "fake"}, 2},
		{"verify-broken", faulty(suitetest.Faults{Dead: &host.Error{Reason: host.ReasonExited, Plugin: "reference", During: "start",
			Summary: "ended before it answered", Log: []string{"no module named torch"}}}), []string{"verify", "fake"}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parity(t, c.fakes, c.args...)
			if got.status != c.status {
				t.Errorf("status %d: %s", got.status, got.stderr)
			}
			golden(t, c.name, got.stdout+"--- stderr\n"+got.stderr)
		})
	}
}

// refusal is what a native engine says of operations that it does not know.
var refusal = &host.CallError{Plugin: "predictor", Call: "Load", Code: codes.InvalidArgument, Problems: diag.Problems{
	{Reason: "UNKNOWN_OPERATION", Summary: "no aten::foo", Path: "operations[1]", Detail: "known: aten::relu"},
	{Reason: "UNKNOWN_OPERATION", Summary: "no aten::bar", Path: "operations[2]"}}}

func faulty(f suitetest.Faults) *fakes { return &fakes{Starter: suitetest.Starter{Faults: f}} }

func TestExitStatus(t *testing.T) {
	gone := &host.Error{Reason: host.ReasonMissing, Plugin: "predictor", Summary: "there is none"}
	mute := &host.Error{Reason: host.ReasonExited, Plugin: "predictor", Summary: "exit status 2"}
	for _, c := range []struct {
		name   string
		fakes  *fakes
		args   string
		status int
		says   string // on stderr
	}{
		{"exact", &fakes{gpu: true}, "verify fake --device cuda:0", 0, ""},
		{"differs", faulty(suitetest.Faults{Stale: true}), "verify fake --device cuda:0", 1, ""},
		{"noise", faulty(suitetest.Faults{Noise: true}), "verify fake --device cuda:0", 1, ""},
		{"refused", faulty(suitetest.Faults{Refuses: refusal}), "verify fake --device host", 2, ""},
		{"crashed", faulty(suitetest.Faults{Crash: gone}), "verify fake --device host", 3, ""},
		{"no predictor", &fakes{missing: gone}, "verify fake", 3, "PLUGIN_MISSING"},
		{"mute predictor", &fakes{missing: mute}, "verify fake", 3, "--device host or cuda:N does not ask: "},
		{"no families", &fakes{missing: gone}, "list", 3, "PLUGIN_MISSING"},
		{"no family named", &fakes{}, "verify", 2, "requires at least 1 arg"},
		{"unknown command", &fakes{}, "verfy fake", 2, `unknown command "verfy"`},
		{"unknown flag", &fakes{}, "verify fake --fast", 2, "unknown flag: --fast"},
		{"unknown precision", &fakes{}, "verify fake --precision fp8", 2, `--precision "fp8"`},
		{"empty profile", &fakes{}, "verify fake --profile=", 2, "--profile is empty"},
		{"a size that is no name", &fakes{}, "verify fake --size s\x1b[2J", 2, `--size "s\x1b[2J": this is no name`},
		{"a family of other bytes", &fakes{}, "verify fa\xffke", 2, `family "fa\xffke": this is no name`},
		{"an endless family", &fakes{}, "verify " + strings.Repeat("x", 129), 2, "this is no name"},
		{"empty precision", &fakes{}, "verify fake --precision=", 2, "--precision is empty"},
		{"unknown device", &fakes{}, "verify fake --device tpu", 2, `--device "tpu"`},
		{"device without number", &fakes{}, "verify fake --device cuda:", 2, `--device "cuda:"`},
		{"no batch", &fakes{}, "verify fake --batch 0", 2, "positive"},
		{"unknown mode", &fakes{}, "verify fake --mode learn", 2, `--mode "learn"`},
		{"steps without training", &fakes{}, "verify fake --steps 5", 2, "--steps is of --mode train"},
		{"momentum without training", &fakes{}, "record fake -o x --momentum 0.5", 2, "--momentum is of --mode train"},
		{"steps of both modes", &fakes{}, "verify fake --mode predict,train --steps 6", 0, ""},
		{"training of one image", &fakes{}, "verify fake --mode train --batch 1", 2, "two images or more"},
		{"training without steps", &fakes{}, "verify fake --mode train --steps 0", 2, "--steps: 0 steps"},
		{"training without momentum", &fakes{}, "verify fake --mode train --momentum 0", 2, "--momentum"},
		{"training in half precision", &fakes{}, "verify fake --mode train --precision fp16", 2, "in mode train there are fp32, bf16"},
		{"training, exact", &fakes{gpu: true}, "verify fake --mode train --steps 6", 0, ""},
		{"training differs", faulty(suitetest.Faults{Training: suitetest.Training{WarmupMoves: true}}), "verify fake --mode train --steps 6 --device cuda:0", 1, ""},
		{"record of training", &fakes{}, "record fake --mode train -o " + filepath.Join(t.TempDir(), "fake"), 0, ""},
		{"trace of training finds it", faulty(suitetest.Faults{NativeTrace: true, Training: suitetest.Training{NativeGradient: func(g []float64) { g[0]++ }}}),
			"trace fake --mode train --device cuda:0 --step 3", 1, ""},
		{"trace of training finds nothing", &fakes{}, "trace fake --mode train --device cuda:0", 0, ""},
		{"trace of an unknown step", &fakes{}, "trace fake --mode train --device cuda:0 --step 21", 2, "UNKNOWN_STEP"},
		{"negative timeout", &fakes{}, "verify fake --timeout -1s", 2, "negative"},
		{"no image size", &fakes{}, "verify fake --imgsz big", 2, `parity: --imgsz "big": it is a number, list or native; see parity verify --help`},
		{"a negative seed", &fakes{}, "verify fake --seed -1", 2, `parity: --seed "-1": it takes a whole number from 0 to 18446744073709551615; see parity verify --help`},
		{"no number", &fakes{}, "bench fake --rounds many", 2, `parity: --rounds "many": it takes a whole number; see parity bench --help`},
		{"an endless number", &fakes{}, "verify fake --batch 99999999999999999999", 2, `--batch "99999999999999999999": it takes a whole number, and none so large; see`},
		{"no fraction", &fakes{}, "predict fake x --conf high", 2, `--conf "high": it takes a number, as 0.5; see`},
		{"no classes", &fakes{}, "predict fake x --classes 1,two", 2, `--classes "1,two": it takes whole numbers, by commas; see`},
		{"a quote between", &fakes{}, `verify fake --task a"b`, 2, `--task "a\"b": it takes words, by commas, without quotes between; see`},
		{"no time", &fakes{}, "verify fake --timeout 5", 2, `--timeout "5": it takes a time, as 90s or 10m; see`},
		{"neither true nor false", &fakes{}, "verify fake --json=maybe", 2, `--json "maybe": it takes true or false; see`},
		{"no value", &fakes{}, "verify fake --seed", 2, "flag needs an argument: --seed; see parity verify --help"},
		{"no jobs", &fakes{}, "verify fake --jobs 0", 2, "--jobs 0: it takes 1 to 1024"},
		{"too many jobs", &fakes{}, "verify fake --jobs 99999999999", 2, "--jobs 99999999999: it takes 1 to 1024"},
		{"too many jobs of a selftest", &fakes{}, "selftest --jobs 1025", 2, "--jobs 1025: it takes 1 to 1024"},
		{"no repetition", &fakes{}, "verify fake --repeat 0", 2, "--repeat 0: it takes 1 to 100000"},
		{"too many repetitions", &fakes{}, "verify fake --repeat 99999999999", 2, "--repeat 99999999999: it takes 1 to 100000"},
		{"too many steps", &fakes{}, "verify fake --mode train --steps 99999999999", 2, "--steps: 99999999999 steps; 6 to 100000 are taken"},
		{"a warm-up without end", &fakes{}, "verify fake --mode train --warmup-steps 9223372036854775807 --plateau-steps 9223372036854775807", 2, "--warmup-steps: "},
		{"list of something", &fakes{}, "list yolo9", 2, "unknown command"},
		{"record without a folder", &fakes{}, "record fake", 2, "-o DIR"},
		{"record of two precisions", &fakes{}, "record fake -o x --precision fp32,bf16", 2, "one is needed"},
		{"trace finds it", faulty(suitetest.Faults{Native: suitetest.ULPs(1), NativeTrace: true}), "trace fake --device cuda:0", 1, ""},
		{"trace of an unknown probe", &fakes{}, "trace fake --device cuda:0 --probe zebra", 2, "UNKNOWN_PROBE"},
		{"trace of a step without training", &fakes{}, "trace fake --device cuda:0 --step 2", 2, "--step is of --mode train"},
		{"trace finds nothing", &fakes{}, "trace fake --device cuda:0", 0, ""},
		{"version", &fakes{}, "version", 0, ""},
		{"completion", &fakes{}, "completion bash", 0, ""},
		{"completion of an unknown shell", &fakes{}, "completion dosh", 2, `unknown command "dosh"`},
		{"bisect of an unknown probe", &fakes{}, "bisect fake -o x --probe zebra", 2, `--probe "zebra"; there are noise, twin, photo`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parity(t, c.fakes, strings.Fields(c.args)...)
			if got.status != c.status {
				t.Errorf("status %d instead of %d\n%s%s", got.status, c.status, got.stdout, got.stderr)
			}
			if !strings.Contains(got.stderr, c.says) {
				t.Errorf("stderr lacks %q: %s", c.says, got.stderr)
			}
			if got.fakes.Alive != 0 {
				t.Errorf("%d processes were left behind", got.fakes.Alive)
			}
		})
	}
}

// A family's name is kept from the shell that its command is pasted to.
func TestCommandsAreQuoted(t *testing.T) {
	got := parity(t, faulty(suitetest.Faults{Crash: errors.New("the disk is full")}), "verify", "fa;ke", "--device", "host", "--python", "/a b/python")
	if !strings.Contains(got.stdout, "\n  again: parity verify 'fa;ke' ") || !strings.Contains(got.stdout, " --python '/a b/python'\n") {
		t.Errorf("status %d: %s%s", got.status, got.stdout, got.stderr)
	}
}

// A native plugin that cannot be started is found before anything is recorded, where one is needed.
func TestNativePluginIsFoundFirst(t *testing.T) {
	good := pictures(t, map[string]string{"a.png": "one"})
	says := "PLUGIN_NOT_EXECUTABLE: it is a folder"
	for _, c := range []struct {
		args   string
		status int
	}{
		{"trace fake --device cuda:0", 3},
		{"trace fake --device cuda:0 --mode train", 3},
		{"bisect fake --device cuda:0 -o " + filepath.Join(t.TempDir(), "x"), 3},
		{"reduce fake --device cuda:0 -o " + filepath.Join(t.TempDir(), "x"), 3},
		{"ops fake --device host", 3},
		{"predict fake --device host " + good, 3},
		{"predict fake --device host --arm reference-eager " + good, 0},
		{"record fake --device host -o " + filepath.Join(t.TempDir(), "x"), 0},
	} {
		got := parity(t, &fakes{native: &host.Error{Reason: host.ReasonNotExecutable, Plugin: "predictor", Summary: "it is a folder"}}, strings.Fields(c.args)...)
		if got.status != c.status || strings.Contains(got.stderr, says) != (c.status == 3) || c.status == 3 && got.fakes.Processes != 0 {
			t.Errorf("%s: status %d, %d processes: %s", c.args, got.status, got.fakes.Processes, got.stderr)
		}
	}
}

// With --json stdout holds one object a cell and nothing else.
func TestJSON(t *testing.T) {
	dir := t.TempDir()
	got := parity(t, &fakes{}, "verify", "fake", "--precision", "fp32,bf16", "--precision", "fp16", "--json", "--output", dir)
	if got.status != 0 {
		t.Fatal(got.stderr)
	}
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), got.stdout)
	}
	for i, precision := range []string{"fp32", "bf16", "fp16"} {
		var r result.Result
		if err := json.Unmarshal([]byte(lines[i]), &r); err != nil {
			t.Fatal(err)
		}
		if r.Precision != precision || r.Verdict != result.Consistent || r.Environment["engine_build"] == "" {
			t.Errorf("%s %s %v", r.Precision, r.Verdict, r.Environment)
		}
		if _, err := os.Stat(filepath.Join(dir, r.Name())); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(got.stderr, "verifying on the device host") || !strings.Contains(got.stderr, "[3/3] fake batch 1 fp16 on host: step 1 of 7, recording") {
		t.Errorf("stderr: %s", got.stderr)
	}
}

// A cell that broke is on stdout, but not kept as a result.
func TestBrokenIsNotKept(t *testing.T) {
	dir := t.TempDir()
	got := parity(t, faulty(suitetest.Faults{Crash: errors.New("the disk is full")}), "verify", "fake", "--json", "--output", dir)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 0 || got.status != 3 || !strings.Contains(got.stdout, `"verdict":"broken"`) {
		t.Errorf("status %d, files %v, %v\n%s", got.status, files, err, got.stdout)
	}
}

// alarm interrupts when a text is written.
type alarm struct {
	bytes.Buffer
	at     string
	cancel context.CancelFunc
}

func (s *alarm) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.cancel()
	}
	return s.Buffer.Write(p)
}

// A signal that comes when all cells are finished changes nothing.
func TestInterruptAfterTheLastCell(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakes{}
	var out bytes.Buffer
	err := alarm{at: "2 of 2 cells are finished", cancel: cancel}
	a := &app{out: &out, err: &err, backend: func(o launch.Options) backend { f.options = o; return f }}
	status := a.run(ctx, []string{"verify", "fake", "--precision", "fp32,bf16"})
	if status != 0 || ctx.Err() == nil || strings.Contains(err.String(), "interrupted") || !strings.Contains(out.String(), "fp32: 1 of 1 consistent") {
		t.Errorf("status %d, %v\n%s%s", status, ctx.Err(), &out, &err.Buffer)
	}
}

func TestInterruptKeepsFinishedCells(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakes{}
	f.OnStart = func(processes int) {
		if processes == 8 { // two more than a cell takes
			f.Crash = context.Canceled
			cancel()
		}
	}
	got := parityUntil(ctx, f, "verify", "fake", "--precision", "fp32,bf16,fp16", "--output", dir)
	if got.status != 3 || f.Alive != 0 {
		t.Errorf("status %d, %d processes alive", got.status, f.Alive)
	}
	if !strings.Contains(got.stderr, "interrupted; 1 of 3 cells are finished") {
		t.Errorf("stderr: %s", got.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "classify-fake-s-8-b1-predict-fp32-host.json")); err != nil {
		t.Error(err)
	}
}

func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fake")
	got := parity(t, &fakes{}, "record", "fake", "-o", dir)
	if got.status != 0 || !strings.Contains(got.stdout, "2 operations, recording ") {
		t.Fatalf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	for _, name := range []string{"recording.pb", "recording.txt", "weights.safetensors"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFlagsReachTheLauncher(t *testing.T) {
	f := &fakes{}
	parity(t, f, "list", "--python", "/opt/python", "--predictor", "/opt/predictor", "--trainer", "/opt/trainer", "--timeout", "90s", "-v")
	if o := f.options; o.Python != "/opt/python" || o.Predictor != "/opt/predictor" || o.Trainer != "/opt/trainer" || o.Deadline.Seconds() != 90 || o.Log == nil {
		t.Errorf("%+v", o)
	}
}

// A command that shows a failure again is asked of the same plugins.
func TestCommandsNameThePlugins(t *testing.T) {
	broken := faulty(suitetest.Faults{Native: suitetest.ULPs(2), NativeTrace: true})
	broken.gpu = true
	got := parity(t, broken, "verify", "fake", "--predictor", "my engine", "--python=bin/python", "--json")
	var r result.Result
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatalf("%v\n%s", err, got.stderr)
	}
	const plugins = " --device cuda:0 --python bin/python --predictor 'my engine'"
	trace := r.Gates[gate.Native].Arms["native-eager"].Reproduce
	if !strings.HasSuffix(r.Reproduce, plugins) || trace != "parity trace"+strings.TrimPrefix(r.Reproduce, "parity verify")+" --probe noise" {
		t.Errorf("%s\n%s", r.Reproduce, trace)
	}
	got = parity(t, measuring(benchTimes), "bench", "fake", "--starts", "0", "--predictor", "my engine", "--python=bin/python", "--json")
	var b bench.Report
	if err := json.Unmarshal([]byte(got.stdout), &b); err != nil {
		t.Fatalf("%v\n%s", err, got.stderr)
	}
	const both = " --python bin/python --predictor 'my engine'"
	if !strings.HasSuffix(b.Command, both) || !strings.HasSuffix(b.Cells[0].Reproduce, both) {
		t.Errorf("%s\n%s", b.Command, b.Cells[0].Reproduce)
	}
}
