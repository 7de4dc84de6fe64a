package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

// files writes pictures of the fakes: any text is one.
func files(t *testing.T, texts ...string) []Picture {
	t.Helper()
	dir := t.TempDir()
	var pictures []Picture
	for i, text := range texts {
		name := fmt.Sprintf("%02d.png", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, Picture{filepath.Join(dir, name), name})
	}
	return pictures
}

func refusal(reason string) error {
	return &host.CallError{Plugin: "predictor", Problems: diag.Problems{{Reason: reason, Summary: "aten::nobody"}}}
}

func options(name string) Options {
	return Options{Arm: name, Cell: suite.Cell{Family: "fake", Precision: "fp32", Profile: "exact-1", Device: "host"}}
}

// answers runs and gives what came of each picture: its sum, or the reason why there is none.
func answers(t *testing.T, s *suitetest.Starter, o Options, pictures []Picture) ([]string, error) {
	t.Helper()
	p, err := Open(t.Context(), s, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		p.Close()
		if s.Alive != 0 {
			t.Errorf("%d processes are left", s.Alive)
		}
	}()
	var all []string
	err = p.Run(t.Context(), pictures, func(o Outcome) error {
		if o.Picture != pictures[len(all)] {
			t.Errorf("picture %d is %s", len(all), o.Picture.Path)
		}
		if o.Problem != nil {
			all = append(all, o.Problem.Reason)
			return nil
		}
		var line struct {
			Image, Arm string
			Sum        float64
			MS         map[string]float64
		}
		if err := json.Unmarshal(o.Line, &line); err != nil {
			t.Fatalf("%v: %s", err, o.Line)
		}
		if line.Image != o.Picture.Path || line.Sum == 0 || line.MS["preprocess"] != 1 || line.MS["postprocess"] == 0 {
			t.Errorf("%s", o.Line)
		}
		all = append(all, fmt.Sprintf("%s %.3f", line.Arm, line.Sum))
		return nil
	})
	return all, err
}

func TestEachPictureHasItsAnswer(t *testing.T) {
	var texts []string
	for i := range 20 {
		texts = append(texts, strings.Repeat("x", i%3+1)+fmt.Sprint(i))
	}
	texts[7], texts[11] = "twice"+texts[7], "bad"
	pictures := files(t, texts...)
	var before []string
	for _, name := range []string{arm.ReferenceEager, arm.NativeEager, arm.NativeGraph} {
		s := &suitetest.Starter{}
		got, err := answers(t, s, options(name), pictures)
		if err != nil || len(got) != len(pictures) || s.Processes != 2 {
			t.Fatalf("%s: %v, %d answers of %d processes", name, err, len(got), s.Processes)
		}
		if got[11] != "UNREADABLE_IMAGE" {
			t.Errorf("%s: a bad picture gives %s", name, got[11])
		}
		if !strings.HasPrefix(got[0], name+" ") {
			t.Errorf("%s ran as %s", name, got[0])
		}
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], name+" ")
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(got))); len(distinct) != len(pictures) {
			t.Errorf("%s: answers of different pictures are equal: %v", name, got)
		}
		if before != nil && !slices.Equal(got, before) {
			t.Errorf("%s gives %v, the one before %v", name, got, before)
		}
		before = got
	}
}

// A line says what predicted: with weights of no file they are random.
func TestLine(t *testing.T) {
	for weights, want := range map[string]string{"": Random, "a.pt": "a.pt"} {
		b := &batch{Predictor: &Predictor{Cell: suite.Cell{Family: "fake", Size: "s", Task: "classify", Precision: "fp32", Device: "host"}, options: Options{Weights: weights}},
			ms: map[string]float64{"step": 2.5}, arm: arm.NativeGraph}
		line, err := b.line(Picture{Path: "a.png"}, result{Width: 3, Height: 4, Answer: json.RawMessage(`{"top": 1}`)}, 2)
		if want := `{"image":"a.png","width":3,"height":4,"family":"fake","size":"s","task":"classify","precision":"fp32","weights":"` + want +
			`","device":"host","arm":"native-graph","ms":{"step":1.25},"top": 1}`; err != nil || string(line) != want {
			t.Errorf("%v: %s", err, line)
		}
		if line, err := b.line(Picture{}, result{Answer: json.RawMessage(`{}`)}, 1); err != nil || !json.Valid(line) {
			t.Errorf("%v: %s", err, line)
		}
	}
}

func TestWhatGoesWrong(t *testing.T) {
	pictures := files(t, "a", "b", "c", "d", "e")
	refused := refusal("UNKNOWN_OPERATION")
	crashed := &host.Error{Reason: host.ReasonCrashed, Plugin: "predictor"}
	for _, c := range []struct {
		name   string
		faults suitetest.Faults
		want   []string // reasons of pictures; nil: the run ends with reason
		reason string
	}{
		{"a picture is refused in the end", suitetest.Faults{Pictures: suitetest.Pictures{RefusesPicture: "02.png"}},
			[]string{"", "", "POSTPROCESS_FAILED", "", ""}, ""},
		{"the native engine does not know the family", suitetest.Faults{Refuses: refused}, nil, "UNKNOWN_OPERATION"},
		{"the arm crashes", suitetest.Faults{Crash: crashed}, nil, host.ReasonCrashed},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := answers(t, &suitetest.Starter{Faults: c.faults}, options(arm.NativeEager), pictures)
			if c.want == nil {
				problems, _ := diag.Of(err)
				if len(problems) == 0 || problems[0].Reason != c.reason || len(got) > 0 {
					t.Errorf("%v: %v", got, err)
				}
				return
			}
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("%v: %v", got, err)
			}
			for i, reason := range c.want {
				if reason != "" && got[i] != reason {
					t.Errorf("picture %d: %s, not %s", i, got[i], reason)
				}
			}
		})
	}
}

func TestARunEndsEarly(t *testing.T) {
	pictures := files(t, "a", "b", "c", "d", "e", "f", "g", "h")
	p, err := Open(t.Context(), &suitetest.Starter{}, options(arm.NativeEager))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	full := errors.New("the disk is full")
	seen := 0
	err = p.Run(t.Context(), pictures, func(Outcome) error { seen++; return full })
	if !errors.Is(err, full) || seen != 1 {
		t.Errorf("%d pictures: %v", seen, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Run(ctx, pictures, func(Outcome) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestAGraphNeedsItsCertificate(t *testing.T) {
	no := diag.New("NO_CERTIFICATE", "", "nobody certified it")
	for _, c := range []struct {
		name   string
		arm    string
		demand bool
		why    error
		want   string // the arm as it ran; empty: refused
	}{
		{"certified", arm.NativeGraph, true, nil, arm.NativeGraph},
		{"not certified", arm.NativeGraph, false, no, arm.NativeEager},
		{"not certified, and demanded", arm.NativeGraph, true, no, ""},
		{"of PyTorch", arm.ReferenceGraph, false, no, arm.ReferenceEager},
		{"no graph", arm.NativeEager, true, no, arm.NativeEager},
		{"nobody knows", arm.NativeGraph, false, errors.New("the disk is gone"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(c.arm)
			asked, warned := 0, 0
			o.Demand, o.Warn = c.demand, func(string, ...any) { warned++ }
			o.Certified = func(_ context.Context, cell suite.Cell, recording string) error {
				asked++
				if cell.Task != "classify" || cell.ImgSize != 8 || cell.Size != "s" || cell.Batch != 1 || len(recording) != 64 {
					t.Errorf("asked for %v, %s", cell, recording)
				}
				return c.why
			}
			got, err := answers(t, &suitetest.Starter{}, o, files(t, "a", "b", "c"))
			if (err != nil) != (c.want == "") || err == nil && len(got) != 3 {
				t.Fatalf("%v, %v", got, err)
			}
			for _, answer := range got {
				if !strings.HasPrefix(answer, c.want+" ") {
					t.Errorf("%v", got)
				}
			}
			if err != nil && err.Error() != c.why.Error() {
				t.Errorf("%v", err)
			}
			if wants := c.arm != arm.NativeEager; (asked == 1) != wants || (warned == 1) != (wants && c.why != nil && c.want != "") {
				t.Errorf("asked %d times, warned %d times", asked, warned)
			}
		})
	}
}

func TestPlacesAreTakenAgain(t *testing.T) {
	a, err := (&suitetest.Starter{}).Reference(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := pool{arm: a}
	take := func(n int64) place {
		l, err := p.take(t.Context(), n)
		if err != nil || int64(len(l.data)) < n || l.region.Length < n {
			t.Fatalf("%d bytes: %d, %v", n, len(l.data), err)
		}
		return l
	}
	small, large := take(1000), take(100_000)
	if small.region.Offset == large.region.Offset {
		t.Error("two places are one")
	}
	p.put(large, small)
	if again := take(990); again.region != small.region {
		t.Errorf("%v, not the smallest that does: %v", again.region, small.region)
	}
	if again := take(99_000); again.region != large.region {
		t.Errorf("%v, not %v", again.region, large.region)
	}
	for _, n := range []int64{0, 1, 64, 65, 4095, 4097, 1 << 30, 1<<30 + 1} {
		if r := rounded(n); r < n || r > max(n+n/4, n+64) {
			t.Errorf("%d is rounded to %d", n, r)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"b.png", "a.JPG", "notes.txt", "deep/b.png", "deep/er/c.webp", "odd\xff.png", "none/notes.txt", "b.png-2"} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "empty.png"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		sources []string
		want    []string // names
		reasons []string
	}{
		{[]string{dir}, []string{"a.JPG", "b.png", "b.png-2", "c.webp"}, []string{"EMPTY_FILE", "BAD_NAME"}},
		{[]string{in("b.png"), in("deep")}, []string{"b.png", "b.png-2", "c.webp"}, nil},
		{[]string{in("*.png")}, []string{"b.png"}, []string{"EMPTY_FILE", "BAD_NAME"}},
		{[]string{in("notes.txt")}, []string{"notes.txt"}, nil},
		{[]string{in("b.png-2"), in("b.png"), in("deep"), in("b.png")}, []string{"b.png-2", "b.png", "b.png-3", "c.webp", "b.png-4"}, nil},
		{[]string{in("x*"), in("[")}, nil, []string{"NO_MATCH", "BAD_PATTERN"}},
		{[]string{in("none"), in("missing.png"), os.DevNull}, nil, []string{"EMPTY_FOLDER", "NO_SUCH_FILE", "NO_FILE"}},
		{[]string{in("notes.txt/b.png"), in("*.none")}, nil, []string{"UNREADABLE_FILE", "NO_MATCH"}},
	} {
		pictures, problems := Find(c.sources)
		for _, p := range problems {
			if p.Reason == "NO_FILE" && p.Summary != "it is no file but a device" {
				t.Errorf("%v", p)
			}
		}
		var names, reasons []string
		for _, p := range pictures {
			names = append(names, p.Name)
		}
		for _, p := range problems {
			if reasons = append(reasons, p.Reason); p.Path == "" {
				t.Errorf("%v says not where", p)
			}
		}
		if !slices.Equal(names, c.want) || !slices.Equal(reasons, c.reasons) {
			t.Errorf("%v: %v, %v", c.sources, names, reasons)
		}
	}
}
