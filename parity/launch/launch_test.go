package launch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"samebits/bridge/host"
)

// script makes an executable file.
func script(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// launcher looks in one root, with a PATH of its own and no other variables.
func launcher(t *testing.T, o Options, root string, env map[string]string) *Launcher {
	t.Helper()
	t.Setenv("PATH", filepath.Join(root, "path"))
	l := New(o)
	l.roots = []string{root}
	l.getenv = func(key string) string { return env[key] }
	return l
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	inVenv := script(t, filepath.Join(root, ".venv/bin/python"), "")
	inPath := script(t, filepath.Join(root, "path/python3"), "")
	beside := script(t, filepath.Join(root, "bin/samebits-predictor"), "")
	trainer := script(t, filepath.Join(root, "bin/samebits-trainer"), "")
	other := script(t, filepath.Join(root, "other"), "")
	empty := t.TempDir()
	for _, c := range []struct {
		name    string
		options Options
		root    string
		env     map[string]string
		want    [3]string // Python, predictor, trainer
	}{
		{"beside the program", Options{}, root, nil, [3]string{inVenv, beside, trainer}},
		{"by options", Options{Python: other, Predictor: other, Trainer: other}, root,
			map[string]string{PythonVariable: "/missing", TrainerVariable: "/missing"}, [3]string{other, other, other}},
		{"by variables", Options{}, root, map[string]string{PythonVariable: other, PredictorVariable: other, TrainerVariable: other},
			[3]string{other, other, other}},
		{"by a name in PATH", Options{Python: "python3"}, root, nil, [3]string{inPath, beside, trainer}},
		{"nothing there", Options{}, empty, nil, [3]string{}},
		{"a file that is missing", Options{Python: "/missing/python", Predictor: "/missing/predictor", Trainer: "/missing/trainer"}, root, nil,
			[3]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := launcher(t, c.options, c.root, c.env)
			for i, find := range []func() (string, error){l.Python, l.Predictor, l.Trainer} {
				got, err := find()
				if got != c.want[i] {
					t.Errorf("got %q, want %q", got, c.want[i])
				}
				var missing *host.Error
				if c.want[i] == "" && (!errors.As(err, &missing) || missing.Reason != host.ReasonMissing) {
					t.Errorf("error %v", err)
				}
			}
		})
	}
}

// What can be found but not started is no plugin, whoever named it.
func TestFindsPrograms(t *testing.T) {
	root := t.TempDir()
	for name, c := range map[string]struct {
		text   string
		mode   os.FileMode
		reason string
	}{
		"notes":       {"#!/bin/sh\n", 0o644, host.ReasonNotExecutable},
		"text":        {"some text", 0o755, host.ReasonFormat},
		"interpreter": {"#!/nowhere/sh\n", 0o755, host.ReasonInterpreter},
	} {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		for plugin, l := range map[string]*Launcher{
			"predictor": launcher(t, Options{Predictor: path}, root, nil), "trainer": launcher(t, Options{}, root, map[string]string{TrainerVariable: path}),
		} {
			find, build := l.Predictor, l.EngineBuild
			if plugin == "trainer" {
				find, build = l.Trainer, l.TrainerBuild
			}
			_, err := find()
			_, buildErr := build()
			for _, err := range []error{err, buildErr} {
				var broken *host.Error
				if !errors.As(err, &broken) || broken.Reason != c.reason || broken.Plugin != plugin || !strings.Contains(err.Error(), path) {
					t.Errorf("%s %s: %v", plugin, name, err)
				}
			}
		}
	}
}

func TestPythonPath(t *testing.T) {
	bundle, repository, bare := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{filepath.Join(bundle, "python/samebits_reference"), filepath.Join(repository, "plugins/reference/samebits_reference")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for root, want := range map[string]string{
		bundle: "PYTHONPATH=" + bundle + "/python", repository: "PYTHONPATH=" + repository + "/plugins/reference", bare: "",
	} {
		if got := strings.Join(launcher(t, Options{}, root, nil).pythonEnvironment(), " "); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

func TestFamiliesAndInspect(t *testing.T) {
	root := t.TempDir()
	script(t, filepath.Join(root, ".venv/bin/python"), `
if [ "$1" = -m ]; then
	echo '{"family": "resnet", "task": "classify", "size": "18", "imgsz": 640, "native": 224, "more": 1}'
	echo '{"family": "yolo9", "task": "detect", "size": "t", "imgsz": 640, "native": 640}'
else
	echo '{"path": "p", "version": "3.12.0", "packages": {"torch": "2.11.0"}, "libraries": ["/a/lib", "/b/lib"]}'
fi`)
	l := launcher(t, Options{}, root, nil)
	entries, err := l.Families(t.Context())
	if err != nil || len(entries) != 2 || entries[0].Native != 224 || entries[1].Family != "yolo9" {
		t.Errorf("%v, %v", entries, err)
	}
	info, err := l.Inspect(t.Context())
	if err != nil || info.Packages["torch"] != "2.11.0" {
		t.Errorf("%v, %v", info, err)
	}
	if got := l.nativeEnvironment(); len(got) != 1 || got[0] != "SAMEBITS_TORCH_LIB=/a/lib:/b/lib" {
		t.Errorf("native environment %v", got)
	}
	l = launcher(t, Options{}, root, map[string]string{librariesVariable: "/mine"})
	if got := l.nativeEnvironment(); len(got) != 1 || got[0] != "SAMEBITS_TORCH_LIB=/mine" {
		t.Errorf("native environment %v", got)
	}
	l = launcher(t, Options{}, root, map[string]string{librariesVariable: "/mine", "SAMEBITS_PLAN_CACHE": "0",
		"SAMEBITS_CACHE": "/kept", "LD_LIBRARY_PATH": "/theirs"})
	want := []string{"SAMEBITS_CACHE=/kept", "SAMEBITS_PLAN_CACHE=0", "SAMEBITS_TORCH_LIB=/mine"}
	if got := l.nativeEnvironment(); !slices.Equal(got, want) {
		t.Errorf("native environment %v, want %v", got, want)
	}
}

func TestDevices(t *testing.T) {
	root := t.TempDir()
	script(t, filepath.Join(root, "bin/samebits-predictor"), `
echo '[{"name": "host", "environment": [{"Key": "host.cpu", "Value": "x"}]}, {"name": "cuda:0", "problem": "no driver"}]'`)
	devices, err := launcher(t, Options{}, root, nil).Devices(t.Context())
	if err != nil || len(devices) != 2 || devices[0].Environment[0].Value != "x" || devices[1].Problem != "no driver" {
		t.Errorf("%v, %v", devices, err)
	}
}

// A digest is of all that it names, or none.
func TestNoBuild(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "a folder"), 0o755), os.MkdirAll(filepath.Join(root, "python/samebits_reference"), 0o755)); err != nil {
		t.Fatal(err)
	}
	l := launcher(t, Options{Trainer: filepath.Join(root, "a folder")}, root, nil)
	if build, err := l.TrainerBuild(); err == nil || build != "" || !strings.Contains(err.Error(), "PLUGIN_NOT_EXECUTABLE") {
		t.Errorf("a folder: %q, %v", build, err)
	}
	if build, err := l.ReferenceBuild(); !errors.Is(err, os.ErrNotExist) || build != "" {
		t.Errorf("half a plugin: %q, %v", build, err)
	}
}

func TestNoInspection(t *testing.T) {
	root := t.TempDir()
	l := launcher(t, Options{}, root, nil)
	var broken *host.Error
	if _, err := l.Inspect(t.Context()); !errors.As(err, &broken) || broken.Reason != host.ReasonMissing {
		t.Errorf("no Python: %v", err)
	}
	python := filepath.Join(root, ".venv/bin/python")
	for text, want := range map[string]string{"echo hello": "what Python says of itself", "echo no encodings >&2; exit 1": "no encodings"} {
		script(t, python, text)
		if _, err := l.Inspect(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNoDevices(t *testing.T) {
	root := t.TempDir()
	l := launcher(t, Options{}, root, nil)
	var missing *host.Error
	if _, err := l.Devices(t.Context()); !errors.As(err, &missing) || missing.Reason != host.ReasonMissing {
		t.Errorf("no program: %v", err)
	}
	program := filepath.Join(root, "bin/samebits-predictor")
	script(t, program, "echo hello")
	if _, err := l.Devices(t.Context()); err == nil || !strings.Contains(err.Error(), "what the native engine says of its devices") {
		t.Errorf("no JSON: %v", err)
	}
	script(t, program, "echo '[]'; echo no driver >&2; exit 3")
	if _, err := l.Devices(t.Context()); err == nil || !strings.Contains(err.Error(), "no driver") {
		t.Errorf("it failed: %v", err)
	}
}

func TestFailures(t *testing.T) {
	root := t.TempDir()
	python := filepath.Join(root, ".venv/bin/python")
	for _, c := range []struct{ name, text, says string }{
		{"fails", "echo 'no module named torch' >&2; exit 1", "no module named torch"},
		{"prints something else", "echo hello", "table of families"},
	} {
		script(t, python, c.text)
		_, err := launcher(t, Options{}, root, nil).Families(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	script(t, python, "exec /bin/sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var broken *host.Error
	if _, err := launcher(t, Options{}, root, nil).Families(ctx); !errors.As(err, &broken) || broken.Reason != host.ReasonInterrupted {
		t.Errorf("interrupted: %v", err)
	}
	_, err := runWithin(t.Context(), 20*time.Millisecond, "reference", nil, python, "-c")
	if !errors.As(err, &broken) || broken.Reason != host.ReasonHung || broken.Summary != "it did not end within 20ms, so it was killed" {
		t.Errorf("hangs: %v", err)
	}
	if err := os.Chmod(python, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := launcher(t, Options{}, root, nil).Families(t.Context()); !errors.As(err, &broken) || broken.Reason != host.ReasonStart {
		t.Errorf("not executable: %v", err)
	}
}

// Starting goes through the host, which says what is wrong with a program.
func TestStart(t *testing.T) {
	root := t.TempDir()
	script(t, filepath.Join(root, "bin/samebits-predictor"), "echo garbage")
	_, err := launcher(t, Options{Predictor: filepath.Join(root, "bin/samebits-predictor")}, root, nil).Native(t.Context(), nil)
	var broken *host.Error
	if !errors.As(err, &broken) || broken.Plugin != "predictor" {
		t.Errorf("error %v", err)
	}
	_, err = launcher(t, Options{Trainer: filepath.Join(root, "bin/samebits-predictor")}, root, nil).NativeTrainer(t.Context(), nil)
	if !errors.As(err, &broken) || broken.Plugin != "trainer" {
		t.Errorf("error %v", err)
	}
}

func TestEngineBuild(t *testing.T) {
	root := t.TempDir()
	script(t, filepath.Join(root, "bin/samebits-predictor"), "")
	build, err := launcher(t, Options{}, root, nil).EngineBuild()
	if err != nil || len(build) != 64 {
		t.Errorf("%q, %v", build, err)
	}
	if _, err := launcher(t, Options{}, t.TempDir(), nil).EngineBuild(); err == nil {
		t.Error("no error without a program")
	}
}

// Where no process can fork plugins they are started one by one, and that is said once.
func TestNoForks(t *testing.T) {
	root := t.TempDir()
	script(t, filepath.Join(root, ".venv/bin/python"), `echo "$2 $SAMEBITS_THREADS $OMP_WAIT_POLICY" >>`+root+`/started; [ "$2" = samebits_reference.zygote ] && echo "no torch" >&2; exit 7`)
	l := launcher(t, Options{}, root, nil)
	var warnings []error
	l.Tune(Tuning{Fork: true, Threads: 3, Warn: func(err error) { warnings = append(warnings, err) }})
	for range 2 {
		_, err := l.Reference(t.Context())
		var broken *host.Error
		if !errors.As(err, &broken) || broken.Reason != host.ReasonExited {
			t.Errorf("error %v", err)
		}
	}
	if _, err := l.ReferenceFromScratch(t.Context()); err == nil {
		t.Error("no error")
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "no torch") {
		t.Errorf("warnings %v", warnings)
	}
	started, err := os.ReadFile(filepath.Join(root, "started"))
	if want := "samebits_reference.zygote 3 passive\n" + strings.Repeat("samebits_reference 3 passive\n", 3); err != nil || string(started) != want {
		t.Errorf("%v, started %s", err, started)
	}
	l.Close()
	l.Close()
}

// One process that cannot import in time is no news where the others cannot either; where they can, it is said once.
func TestForksThatAreTooSlow(t *testing.T) {
	example := filepath.Join(t.TempDir(), "example")
	if out, err := exec.Command("go", "build", "-o", example, "../../plugins/example").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name, plugin string
		deadline     time.Duration
		warnings     int
	}{{"all are", "exec sleep 60", 100 * time.Millisecond, 0}, {"the zygote alone is", "exec " + example, 3 * time.Second, 1}} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			script(t, filepath.Join(root, ".venv/bin/python"), `[ "$2" = samebits_reference.zygote ] && exec /bin/sleep 60; PATH=/bin:/usr/bin; `+c.plugin)
			l := launcher(t, Options{Deadline: c.deadline}, root, nil)
			var warnings []error
			l.Tune(Tuning{Fork: true, Warn: func(err error) { warnings = append(warnings, err) }})
			for range 2 {
				a, err := l.Reference(t.Context())
				if err == nil {
					a.Stop()
				}
				var broken *host.Error
				if late := errors.As(err, &broken) && broken.Reason == host.ReasonStartDeadline; late != (c.warnings == 0) {
					t.Errorf("error %v", err)
				}
			}
			if len(warnings) != c.warnings || c.warnings > 0 && !strings.Contains(warnings[0].Error(), "PLUGIN_START_DEADLINE: did not answer within 3s") {
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

func TestReferenceBuild(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"samebits_reference/arms.py": "a", "samebits_reference/notes.txt": "b", "samebits_wire/serve.py": "c"} {
		path := filepath.Join(root, "python", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := launcher(t, Options{}, root, nil)
	first, err := l.ReferenceBuild()
	if err != nil || len(first) != 64 {
		t.Fatalf("%q, %v", first, err)
	}
	for _, c := range []struct {
		name    string
		changes bool
	}{{"samebits_reference/notes.txt", false}, {"samebits_wire/serve.py", true}} { // the one that changes nothing first
		if err := os.WriteFile(filepath.Join(root, "python", c.name), []byte("changed"), 0o644); err != nil {
			t.Fatal(err)
		}
		if now, err := l.ReferenceBuild(); err != nil || (now != first) != c.changes {
			t.Errorf("%s: %q, %v", c.name, now, err)
		}
	}
	if none, err := launcher(t, Options{}, t.TempDir(), nil).ReferenceBuild(); err != nil || none != "" {
		t.Errorf("%q, %v", none, err)
	}
}
