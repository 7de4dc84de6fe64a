package diff

import (
	"strings"
	"testing"

	"samebits/bridge/recording"
	. "samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/gate"
	"samebits/parity/result"
)

func sample() result.Result {
	return result.Result{Schema: 1, Task: "detect", Family: "yolo9", Size: "t", ImgSize: 640, Batch: 1, Mode: "predict", Precision: "fp32", Device: "cuda:0",
		Verdict: result.Exact, Gates: map[gate.ID]gate.Finding{gate.Native: {Outcome: gate.Passed, Arms: map[string]gate.Finding{"native-eager": {Outcome: gate.Passed}}}},
		Digests: result.Digests{Recording: strings.Repeat("ab", 32),
			Outputs: map[string]map[string]map[string]string{"native-eager": {"noise": {"logits": strings.Repeat("cd", 32)}}}},
		Timings: map[string]result.Timing{"native-eager": {MedianMS: 1.5}}, Environment: map[string]string{"driver": "580"}}
}

func TestResults(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *result.Result)
		equal  bool
		marked string // the line that differs
	}{
		{"the same", func(*result.Result) {}, true, ""},
		{"another GPU of the machine", func(r *result.Result) { r.Device = "cuda:1" }, true, ""},
		{"times", func(r *result.Result) { r.Timings["native-eager"] = result.Timing{MedianMS: 2} }, true, "  native-eager median"},
		{"memory", func(r *result.Result) {
			r.Memory = map[string]result.Memory{"native-eager": {PeakBytes: 5}}
		}, true, "  native-eager peak bytes"},
		{"environment", func(r *result.Result) { r.Environment["driver"] = "590" }, true, "  driver"},
		{"verdict", func(r *result.Result) { r.Verdict = result.Differs }, false, "* verdict"},
		{"a gate", func(r *result.Result) {
			r.Gates[gate.Native] = gate.Finding{Outcome: gate.Failed, Reason: gate.NativeDiffers}
		}, false, "* NATIVE"},
		{"a digest", func(r *result.Result) {
			r.Digests.Outputs["native-eager"]["noise"]["logits"] = strings.Repeat("00", 32)
		}, false, "* native-eager noise logits"},
		{"no digest", func(r *result.Result) { r.Digests.Outputs = nil }, false, "* native-eager noise logits"},
		{"a step", func(r *result.Result) { r.Digests.Steps = map[string][]string{"native-graph": {"1"}} }, false, "* native-graph step    1"},
		{"an input", func(r *result.Result) {
			r.Digests.Inputs = map[string]map[string]string{"noise": {"images": strings.Repeat("12", 32)}}
		}, false, "* input noise images"},
		{"weights", func(r *result.Result) { r.Digests.Weights = "34" }, false, "* weights"},
		{"an arm of a gate", func(r *result.Result) {
			r.Gates[gate.Native].Arms["native-eager"] = gate.Finding{Outcome: gate.Failed, Reason: gate.NativeDiffers}
		}, false, "* NATIVE native-eager"},
		{"no environment", func(r *result.Result) { r.Environment = nil }, true, "  driver"},
		{"cell", func(r *result.Result) { r.Precision = "bf16" }, false, "* precision"},
	} {
		b := sample()
		c.change(&b)
		found := Results(sample(), b)
		var text strings.Builder
		if err := found.Write(&text, "one", "other", false); err != nil {
			t.Fatal(err)
		}
		if found.Equal != c.equal || !strings.Contains(text.String(), c.marked) || c.equal == strings.Contains(text.String(), "different:") {
			t.Errorf("%s: %v\n%s", c.name, found.Equal, text.String())
		}
	}
}

// What is the same is counted, section by section, unless everything is wanted. Environments of either side are shown.
func TestWrite(t *testing.T) {
	a, b := sample(), sample()
	a.Environment, b.Environment["gpu"] = nil, strings.Repeat("long ", 20)
	for everything, want := range map[bool]string{
		false: "  10 of cell are the same", true: "  family",
	} {
		var text strings.Builder
		if err := Results(a, b).Write(&text, "one", "other", everything); err != nil {
			t.Fatal(err)
		}
		got := text.String()
		for _, line := range []string{want, "A is one\nB is other\nequal: ", "  gpu ", "long lo...\n", "  driver"} {
			if !strings.Contains(got, line) {
				t.Errorf("%v: it lacks %q\n%s", everything, line, got)
			}
		}
		if strings.Contains(got, " of cell are the same") == everything || strings.Contains(got, " 0 of ") {
			t.Errorf("%v:\n%s", everything, got)
		}
	}
}

func TestRecordings(t *testing.T) {
	a, b := ConvBNReLU(), ConvBNReLU()
	if c := Compare(a, b); !c.Equal || len(c.Differences) != 0 {
		t.Errorf("%+v", c)
	}
	b.Operations[0].Arguments[3].Items[0].Int++
	c := Compare(a, b)
	if c.Equal || len(c.Differences) != 1 || !strings.Contains(c.Differences[0].Where, "aten::convolution") || !strings.Contains(c.Differences[0].Where, " at ") {
		t.Fatalf("%+v", c)
	}
	var text strings.Builder
	if err := c.Write(&text, "one", "other"); err != nil || !strings.Contains(text.String(), "in aten::convolution") {
		t.Errorf("%v\n%s", err, text.String())
	}
	same := Compare(a, ConvBNReLU())
	weights := func(r *recording.Recording, seed uint64) *safetensors.File { return File(t, Weights(r, seed)) }
	same.CompareWeights(weights(a, 1), weights(a, 1))
	if !same.Equal {
		t.Errorf("%+v", same.Weights)
	}
	text.Reset()
	if err := same.Write(&text, "one", "other"); err != nil || !strings.HasSuffix(text.String(), "equal: the same bytes\n") {
		t.Errorf("%v\n%s", err, text.String())
	}
	seeded := ConvBNReLU()
	seeded.Header.Seed++
	seeded.Digest = "another"
	text.Reset()
	if err := Compare(a, seeded).Write(&text, "one", "other"); err != nil || !strings.HasSuffix(text.String(), "equal: the same operations; seed, environment or slots are others\n") {
		t.Errorf("%v\n%s", err, text.String())
	}
	same.CompareWeights(weights(a, 1), weights(a, 2))
	if same.Equal || len(same.Weights) == 0 {
		t.Errorf("%+v", same.Weights)
	}
	lacks := Compare(a, ConvBNReLU())
	lacks.CompareWeights(weights(a, 1), File(t, nil))
	if lacks.Equal || lacks.Weights[0].B != "none" || lacks.Weights[0].A == "none" {
		t.Errorf("%+v", lacks.Weights)
	}
}

// Of many differences the first are listed, and the others counted.
func TestMostPlaces(t *testing.T) {
	places := make([]Place, mostPlaces+3)
	for i := range places {
		places[i].Path = "weights/w"
	}
	var text strings.Builder
	c := Recordings{Digests: []string{"1", "2"}, Operations: []int{1, 1}, Differences: places[:mostPlaces], More: 7, Weights: places}
	if err := c.Write(&text, "one", "other"); err != nil || strings.Count(text.String(), "weights/w\n") != 2*mostPlaces ||
		!strings.Contains(text.String(), "and 7 more\n") || !strings.Contains(text.String(), "and 3 more\n") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// A line names the first differences of a repetition.
func TestMostNamed(t *testing.T) {
	for n, want := range map[int]string{3: "s a: - instead of x; s a: - instead of x; s a: - instead of x", 5: "s a: - instead of x; s a: - instead of x; s a: - instead of x; 2 more"} {
		one := Repetition{}
		for range n {
			one.Different = append(one.Different, Row{Section: "s", What: "a", A: "x"})
		}
		if got := one.differences(); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestRepeated(t *testing.T) {
	other, broken := sample(), sample()
	other.Digests.Outputs = map[string]map[string]map[string]string{"native-eager": {"noise": {"logits": strings.Repeat("ef", 32)}}}
	broken.Verdict, broken.Gates, broken.Digests = result.Broken, nil, result.Digests{}
	good := sample()
	for _, c := range []struct {
		name    string
		results []*result.Result
		same    bool
		of      int
		says    []string
	}{
		{"the same", []*result.Result{&good, &good, &good}, true, 1, []string{"3 repetitions: 3 exact; verdicts, gates and digests are the same in all"}},
		{"other bits under the same verdict", []*result.Result{&good, &other}, false, 1,
			[]string{"2           exact    digests native-eager noise logits: efefefefefefefef instead of cdcdcdcdcdcdcdcd", "2 exact; verdict, gates or digests are others in 1"}},
		{"the first broke", []*result.Result{&broken, &good, &good}, false, 2, []string{"OTHERWISE THAN IN 2", "1           broken   verdict verdict: broken instead of exact;", "1 broken, 2 exact"}},
		{"one is missing", []*result.Result{&good, nil, &good}, true, 1, []string{"3           exact", "2 of 3 repetitions: 2 exact; verdicts, gates and digests are the same in all"}},
		{"none is there", []*result.Result{nil, nil}, false, 0, []string{"0 of 2 repetitions\n"}},
		{"all broke", []*result.Result{&broken, &broken}, false, 0, []string{"2 broken; none says anything of the cell"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := Repeated(c.results)
			var b strings.Builder
			if err := all.Write(&b); err != nil {
				t.Fatal(err)
			}
			if all.Same() != c.same || all.Of != c.of {
				t.Errorf("same %t, of %d\n%s", all.Same(), all.Of, b.String())
			}
			for _, s := range c.says {
				if !strings.Contains(b.String(), s) {
					t.Errorf("it does not say %q:\n%s", s, b.String())
				}
			}
		})
	}
}
