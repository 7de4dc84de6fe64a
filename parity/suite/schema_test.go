package suite_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"samebits/bridge/host"
	"samebits/goldens"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

func schema() *jsonschema.Schema { return goldens.MustCompile(goldens.ResultSchema) }

func check(s *jsonschema.Schema, data []byte) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(document)
}

// Whatever the suite says obeys the schema.
func TestResultsObeySchema(t *testing.T) {
	s := schema()
	for name, c := range map[string]struct {
		faults suitetest.Faults
		device string
	}{
		"exact":       {suitetest.Faults{}, "cuda:0"},
		"consistent":  {suitetest.Faults{Native: suitetest.ULPs(1)}, suite.HostDevice},
		"worse":       {suitetest.Faults{Native: suitetest.ULPs(1 << 12)}, suite.HostDevice},
		"differs":     {suitetest.Faults{Native: suitetest.ULPs(1), NativeTrace: true}, "cuda:0"},
		"stale":       {suitetest.Faults{Stale: true}, "cuda:0"},
		"noise":       {suitetest.Faults{Noise: true}, "cuda:0"},
		"noise found": {suitetest.Faults{OwnWeights: true}, "cuda:0"},
		"not engaged": {suitetest.Faults{FallsBack: true}, "cuda:0"},
		"unseen":      {suitetest.Faults{InputIgnored: true}, "cuda:0"},
		"scalar":      {suitetest.Faults{ScalarFromStep: true}, "cuda:0"},
		"other shape": {suitetest.Faults{OtherShape: true}, "cuda:0"},
		"crash":       {suitetest.Faults{Crash: &host.Error{Reason: host.ReasonCrashed, Plugin: "predictor", Summary: "ended"}}, "cuda:0"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := verify(t, c.faults, c.device)
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := check(s, data); err != nil {
				t.Errorf("%v\n%s", err, data)
			}
		})
	}
}

func TestTrainingResultsObeySchema(t *testing.T) {
	s := schema()
	for name, c := range map[string]struct {
		faults suitetest.Faults
		device string
	}{
		"exact":       {suitetest.Faults{}, "cuda:0"},
		"consistent":  {suitetest.Faults{}, suite.HostDevice},
		"differs":     {suitetest.Faults{Training: suitetest.Training{NativeGradient: gradientULPs(1)}, NativeTrace: true}, "cuda:0"},
		"stale":       {inTraining(suitetest.Training{StaleHyper: "all"}), "cuda:0"},
		"short":       {inTraining(suitetest.Training{ShortPoisons: true}), "cuda:0"},
		"momentum":    {inTraining(suitetest.Training{MomentumLost: true}), "cuda:0"},
		"noise":       {suitetest.Faults{Noise: true}, "cuda:0"},
		"not engaged": {suitetest.Faults{FallsBack: true}, "cuda:0"},
		"unseen":      {inTraining(suitetest.Training{TargetsIgnored: true}), "cuda:0"},
		"zeros":       {inTraining(suitetest.Training{ZeroGradient: true}), "cuda:0"},
		"moves":       {inTraining(suitetest.Training{RecordMoves: true}), "cuda:0"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := train(t, c.faults, c.device)
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := check(s, data); err != nil {
				t.Errorf("%v\n%s", err, data)
			}
		})
	}
}

// What would be a lie does not pass the schema.
func TestSchemaRefuses(t *testing.T) {
	s := schema()
	good, _ := verify(t, suitetest.Faults{}, "cuda:0")
	trained, _ := train(t, suitetest.Faults{}, "cuda:0")
	for name, spoil := range map[string]func(*result.Result){
		"training without its steps":         func(r *result.Result) { r.Digests.Steps = nil },
		"training that does not say what of": func(r *result.Result) { r.Training = nil },
		"training with a gate missing":       func(r *result.Result) { delete(r.Gates, gate.Resume) },
		"training with a gate that failed":   func(r *result.Result) { r.Gates[gate.State] = gate.Finding{Outcome: gate.Failed, Reason: "X"} },
		"prediction with gates of training":  func(r *result.Result) { r.Mode, r.Training, r.Digests.Steps = gate.Predict, nil, nil },
		"a mode that is none":                func(r *result.Result) { r.Mode = "learn" },
	} {
		refuse(t, s, name, trained, spoil)
	}
	for name, spoil := range map[string]func(*result.Result){
		"exact on the host":             func(r *result.Result) { r.Device = suite.HostDevice },
		"exact with a gate that failed": func(r *result.Result) { r.Gates[gate.Replay] = gate.Finding{Outcome: gate.Failed, Reason: "X"} },
		"exact with a gate skipped":     func(r *result.Result) { r.Gates[gate.Native] = gate.Skip(gate.NotReached, "") },
		"exact with a gate missing":     func(r *result.Result) { delete(r.Gates, gate.Engaged) },
		"exact of three arms":           func(r *result.Result) { r.Arms = r.Arms[:3] },
		"a failure without a reason":    func(r *result.Result) { r.Verdict = result.Differs },
		"a word that is no verdict":     func(r *result.Result) { r.Verdict = "fine" },
		"a digest cut short":            func(r *result.Result) { r.Digests.Recording = "abc" },
	} {
		refuse(t, s, name, good, spoil)
	}
}

func refuse(t *testing.T, s *jsonschema.Schema, name string, good result.Result, spoil func(*result.Result)) {
	t.Helper()
	data, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	var r result.Result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	spoil(&r)
	if data, err = json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	if check(s, data) == nil {
		t.Errorf("%s: the schema takes it", name)
	}
}

// The results that are kept in the repository obey the schema and have their right names.
func TestKeptResults(t *testing.T) {
	s := schema()
	files, err := filepath.Glob("../../goldens/results/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "schema.json" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(s, data); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var r result.Result
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		if r.Name() != filepath.Base(file) {
			t.Errorf("%s: by what it says its name is %s", file, r.Name())
		}
	}
}
