package result

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"samebits/parity/gate"
)

func TestExit(t *testing.T) {
	for _, c := range []struct {
		verdicts []Verdict
		want     int
	}{
		{nil, 0},
		{[]Verdict{Exact, Consistent}, 0},
		{[]Verdict{Exact, Differs}, 1},
		{[]Verdict{EagerNoise}, 1},
		{[]Verdict{Differs, Refused, Exact}, 2},
		{[]Verdict{Refused, Broken, Differs}, 3},
		{[]Verdict{"unheard-of"}, 3},
	} {
		var all []Result
		for _, v := range c.verdicts {
			all = append(all, Result{Verdict: v})
		}
		if got := Exit(all); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.verdicts, got, c.want)
		}
	}
}

func TestKeep(t *testing.T) {
	r := Result{Schema: Schema, Task: "detect", Family: "yolo9", Size: "t", ImgSize: 640, Batch: 4, Mode: "predict", Precision: "bf16",
		Profile: "exact-1", Device: "cuda:1", Verdict: Exact, Gates: map[gate.ID]gate.Finding{gate.Native: {Outcome: gate.Passed}}}
	path, err := r.Keep(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := filepath.Base(path), "detect-yolo9-t-640-b4-predict-bf16-cuda.json"; got != want {
		t.Errorf("name %s, want %s", got, want)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, r) {
		t.Errorf("read back %+v", back)
	}
	r.Seed, r.Profile = 7, "exact-2"
	if !strings.HasSuffix(r.Name(), "-cuda-s7-exact-2.json") {
		t.Errorf("name %s", r.Name())
	}
	if _, err := r.Keep(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("no error for a folder that is missing")
	}
}
