package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samebits/parity/launch"
)

// pictures writes files for the fakes.
func pictures(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPredict(t *testing.T) {
	good := pictures(t, map[string]string{"a.png": "one", "b.png": "two"})
	mixed := pictures(t, map[string]string{"a.png": "one", "b.png": "bad", "c.png": ""})
	torn := filepath.Join(pictures(t, map[string]string{"w.torn": "x"}), "w.torn")
	for _, c := range []struct {
		name   string
		args   []string
		status int
		lines  int
		says   string // on stderr
	}{
		{"all", []string{"fake", good}, 0, 2, "no --weights: they are random"},
		{"some", []string{"fake", mixed}, 1, 1, "b.png: UNREADABLE_IMAGE"},
		{"an empty file", []string{"fake", mixed}, 1, 1, "c.png: EMPTY_FILE"},
		{"limited", []string{"fake", mixed, "--limit", "1"}, 1, 1, "EMPTY_FILE"},
		{"none", []string{"fake", filepath.Join(good, "x*")}, 2, 0, "NO_MATCH"},
		{"on the host no graph is certified", []string{"fake", good}, 0, 2, "steps run eagerly"},
		{"demanded", []string{"fake", good, "--cuda-graph", "true"}, 2, 0, "parity: NO_GPU: fake-s classify predict 8 batch 1 fp32 has no SUPPORTS_CUDA_GRAPH here"},
		{"not asked for", []string{"fake", good, "--cuda-graph", "false"}, 0, 2, ""},
		{"torn weights", []string{"fake", good, "--weights", torn}, 2, 0, "BAD_WEIGHTS_FILE"},
		{"missing weights", []string{"fake", good, "--weights", torn + "x"}, 2, 0, "no such file"},
		{"no such arm", []string{"fake", good, "--arm", "native"}, 2, 0, "--arm"},
		{"contradiction", []string{"fake", good, "--arm", "native-eager", "--cuda-graph", "true"}, 2, 0, "contradicts"},
		{"no folder", []string{"fake", good, "--annotate"}, 2, 0, "--output"},
		{"a folder that cannot be made", []string{"fake", good, "--output", torn}, 2, 0, "--output " + torn + ": the folder cannot be made"},
		{"a score above one", []string{"fake", good, "--conf", "3"}, 2, 0, "--conf"},
		{"no source", []string{"fake"}, 2, 0, "at least 2 arg"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parity(t, &fakes{}, append([]string{"predict", "--device", "host"}, c.args...)...)
			lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
			if lines[0] == "" {
				lines = nil
			}
			if got.status != c.status || len(lines) != c.lines || !strings.Contains(got.stderr, c.says) {
				t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
			}
			for _, line := range lines {
				var said map[string]any
				if err := json.Unmarshal([]byte(line), &said); err != nil || said["family"] != "fake" || said["weights"] != "random" {
					t.Errorf("%v: %s", err, line)
				}
			}
			if got.fakes.Alive != 0 {
				t.Errorf("%d processes are left", got.fakes.Alive)
			}
		})
	}
	if got := parity(t, &fakes{}, "predict", "--device", "host", "fake", good, "--json=false", "--arm", "native-graph"); got.status != 0 ||
		!strings.Contains(got.stdout, "a.png: 8x8; native-graph, step") {
		t.Errorf("%d: %s%s", got.status, got.stdout, got.stderr)
	}
}

// What the table says of a family is said before anything is built, of the task that was asked for.
func TestPredictRefusesByTheTable(t *testing.T) {
	good := pictures(t, map[string]string{"a.png": "one"})
	table := []launch.Entry{{Family: "fake", Task: "classify", Size: "s"}, {Family: "fake", Task: "embed", Size: "s", Unpredictable: "it takes prompts"}}
	for _, c := range []struct {
		task   string
		status int
	}{{"", 0}, {"classify", 0}, {"embed", 2}} {
		got := parity(t, &fakes{table: table}, "predict", "fake", good, "--device", "host", "--task", c.task)
		if got.status != c.status {
			t.Errorf("%q: status %d, %s", c.task, got.status, got.stderr)
		}
		if want := "parity: family: NOT_PREDICTABLE: fake embed does not predict pictures here: it takes prompts\n"; c.status == 2 &&
			(!strings.Contains(got.stderr, want) || got.fakes.Processes != 0 || strings.Contains(got.stderr, "no --weights")) {
			t.Errorf("%q: %d processes, %s", c.task, got.fakes.Processes, got.stderr)
		}
	}
}

func TestPredictInterrupted(t *testing.T) {
	texts := map[string]string{}
	for i := range 20 {
		texts[fmt.Sprintf("%02d.png", i)] = fmt.Sprint(i)
	}
	dir := pictures(t, texts)

	ctx, cancel := context.WithCancel(t.Context())
	f := &fakes{}
	f.OnStart = func(int) {
		f.Dead = fmt.Errorf("plugin reference: Build: %w", context.Canceled)
		cancel()
	}
	got := parityUntil(ctx, f, "predict", "fake", dir, "--device", "host", "--arm", "reference-eager")
	if got.status != 3 || !strings.HasSuffix(got.stderr, "parity: interrupted\n") || strings.Contains(got.stderr, "canceled") || f.Alive != 0 {
		t.Errorf("while it builds: status %d, %d alive: %s", got.status, f.Alive, got.stderr)
	}

	ctx, cancel = context.WithCancel(t.Context())
	var stderr bytes.Buffer
	out := alarm{at: "03.png", cancel: cancel}
	a := &app{out: &out, err: &stderr, backend: func(o launch.Options) backend { return &fakes{options: o} }}
	status := a.run(ctx, []string{"predict", "fake", dir, "--device", "host"})
	lines := strings.Count(out.String(), "\n")
	if status != 3 || lines >= 20 || !strings.HasSuffix(stderr.String(), fmt.Sprintf("\ninterrupted; %d of 20 pictures are finished\n", lines)) {
		t.Errorf("while it predicts: status %d, %d lines: %s", status, lines, stderr.String())
	}
}

func TestInWords(t *testing.T) {
	for line, want := range map[string]string{
		`{"image":"a","width":2,"height":3,"arm":"x","ms":{"step":1.25},"detections":[{"name":"cat"},{"name":"dog"},{"name":"cat"}]}`: "a: 2x3, 3 detections (2 cat, 1 dog); x, step 1.2 ms",
		`{"image":"a","width":2,"height":3,"arm":"x","ms":{},"points":[]}`:                                                            "a: 2x3, 0 points; x, step 0.0 ms",
		`{"image":"a","width":2,"height":3,"arm":"x","ms":{},"top5":[{"name":"cat","score":0.5}]}`:                                    "a: 2x3, cat 0.50; x, step 0.0 ms",
		`{"image":"a","width":2,"height":3,"arm":"x","ms":{},"texts":[{"text":"STOP"}]}`:                                              `a: 2x3, "STOP"; x, step 0.0 ms`,
	} {
		if got := inWords([]byte(line)); got != want {
			t.Errorf("%s\n%s", got, want)
		}
	}
}

// The photographs with the real plugins: PyTorch's eager step and the native graph's on the host see the same class.
func TestPredictEndToEnd(t *testing.T) {
	if os.Getenv(launch.PythonVariable) == "" || testing.Short() {
		t.Skipf("needs an interpreter with PyTorch in %s, and some ten seconds", launch.PythonVariable)
	}
	root := t.TempDir()
	program := build(t, root, "parity", ".")
	build(t, root, "samebits-predictor", "../../plugins/predictor")
	bad := pictures(t, map[string]string{"bad.png": "no picture"})
	type answer struct {
		Image, Arm    string
		Width, Height int
		Top5          []struct {
			Class int
			Score float64
		}
	}
	predict := func(name string) []answer {
		t.Helper()
		cmd := exec.Command(program, "predict", "resnet", "goldens/images", bad, "--imgsz", "64", "--device", "host", "--arm", name)
		cmd.Dir = filepath.Join("..", "..") // where the reference plugin's packages are
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var status *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &status) || status.ExitCode() != 1 || !strings.Contains(stderr.String(), "bad.png: UNREADABLE_IMAGE") {
			t.Fatalf("%s: %v\n%s%s", name, err, stdout.String(), stderr.String())
		}
		var all []answer
		for decoder := json.NewDecoder(&stdout); decoder.More(); {
			var one answer
			if err := decoder.Decode(&one); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		return all
	}
	reference, native := predict("reference-eager"), predict("native-graph")
	if len(reference) != 2 || len(native) != 2 {
		t.Fatalf("%v\n%v", reference, native)
	}
	for i, want := range reference {
		got := native[i]
		if got.Image != want.Image || got.Width != want.Width || got.Height != want.Height || got.Arm != "native-graph" || len(got.Top5) != 5 {
			t.Errorf("%+v\n%+v", got, want)
		}
		for j := range got.Top5 {
			if got.Top5[j].Class != want.Top5[j].Class || abs(got.Top5[j].Score-want.Top5[j].Score) > 1e-4 {
				t.Errorf("%+v\n%+v", got, want)
				break
			}
		}
	}
	if reference[0].Top5[0].Score == reference[1].Top5[0].Score {
		t.Error("both photographs have the same score")
	}
}

func abs(x float64) float64 { return max(x, -x) }
