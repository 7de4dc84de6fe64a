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
	if err := kept.Write(path); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		change    func(r *bench.Report)
		different string
	}{
		{"the same", func(*bench.Report) {}, ""},
		{"a further key", func(r *bench.Report) { r.Environment["torch"] = "2.11" }, ""},
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
