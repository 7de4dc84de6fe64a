package bench_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"samebits/bridge/host"
	"samebits/parity/bench"
	"samebits/parity/suite/suitetest"
)

func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.json")
	kept := report(t, suitetest.Faults{}, "cuda:0")
	broken := report(t, suitetest.Faults{Dead: &host.Error{Reason: host.ReasonMissing, Plugin: "reference"}}, "cuda:0").Cells[0]
	broken.Family = "other"
	kept.Cells = append(kept.Cells, broken)
	kept.Environment["torch"] = "2.11.0+cu130" // as PyTorch says it; the package's version is 2.11.0
	if err := kept.Write(path); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		change    func(r *bench.Report)
		different string
	}{
		{"the same", func(*bench.Report) {}, ""},
		{"a version that is told in short", func(r *bench.Report) { r.Environment["torch"] = "2.11.0" }, ""},
		{"another version", func(r *bench.Report) { r.Environment["torch"] = "2.11.1" }, "torch was 2.11.0+cu130, now 2.11.1"},
		{"a further key", func(r *bench.Report) { r.Environment["libreyolo"] = "1" }, ""},
		{"another GPU", func(r *bench.Report) { r.Environment["gpu"] = "H100" }, "gpu was fake, now H100"},
		{"another device", func(r *bench.Report) { r.Device = "cuda:1" }, "it is of cuda:0"},
		{"more rounds", func(r *bench.Report) { r.Settings.Rounds++ }, "other settings"},
		{"no compiler", func(r *bench.Report) { r.Arms = bench.Arms(true, false) }, "other arms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := bench.Report{Schema: bench.Schema, Device: "cuda:0", Arms: bench.Arms(true, true), Settings: settings(),
				Environment: map[string]string{"gpu": "fake"}}
			c.change(&r)
			different, err := r.Resume(path)
			if err != nil || !strings.Contains(different, c.different) || (different == "") != (c.different == "") {
				t.Errorf("%q, %v", different, err)
			}
			if want := map[bool]int{true: 1, false: 0}[c.different == ""]; len(r.Cells) != want {
				t.Errorf("%d cells", len(r.Cells))
			}
		})
	}
}

func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bench.json")
	for _, name := range []string{"bench-1.json", "bench-2.json"} {
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		aside, err := bench.SetAside(path)
		if data, _ := os.ReadFile(filepath.Join(dir, name)); err != nil || filepath.Base(aside) != name || string(data) != name {
			t.Errorf("%s, %v: %q", aside, err, data)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("it is still there")
		}
	}
}

func TestResumeFromNothing(t *testing.T) {
	dir := t.TempDir()
	r := bench.Report{}
	if different, err := r.Resume(filepath.Join(dir, "none.json")); different != "" || err != nil {
		t.Errorf("%q, %v", different, err)
	}
	for name, text := range map[string]string{"torn.json": `{"schema": 1, "cel`, "other.json": `{"schema": 9}`} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Resume(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHas(t *testing.T) {
	r := bench.Report{Cells: []bench.Cell{{Task: "detect", Family: "yolo9", Size: "t", ImgSize: 640, Batch: 1, Precision: "fp32"}}}
	for key, want := range map[bench.Key]bool{
		{Task: "detect", Family: "yolo9", Size: "t", ImgSize: 640, Batch: 1, Precision: "fp32"}: true,
		{Family: "yolo9", Batch: 1, Precision: "fp32"}:                                          true,
		{Family: "yolo9", Size: "c", Batch: 1, Precision: "fp32"}:                               false,
		{Family: "yolo9", Batch: 2, Precision: "fp32"}:                                          false,
		{Family: "yolo9", Batch: 1, Precision: "bf16"}:                                          false,
	} {
		if r.Has(key) != want {
			t.Errorf("%+v: %v", key, !want)
		}
	}
}
