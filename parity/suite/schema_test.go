package suite

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
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(goldens.ResultSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(s *jsonschema.Schema, data []byte) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(document)
}

// Whatever the suite says obeys the schema.
func TestResultsObeySchema(t *testing.T) {
	s := schema(t)
	for name, c := range map[string]struct {
		faults faults
		device string
	}{
		"exact":       {faults{}, "cuda:0"},
		"consistent":  {faults{native: ulps(1)}, HostDevice},
		"worse":       {faults{native: ulps(1 << 12)}, HostDevice},
		"differs":     {faults{native: ulps(1), nativeTrace: true}, "cuda:0"},
		"stale":       {faults{stale: true}, "cuda:0"},
		"noise":       {faults{noise: true}, "cuda:0"},
		"not engaged": {faults{fallsBack: true}, "cuda:0"},
		"unseen":      {faults{inputIgnored: true}, "cuda:0"},
		"scalar":      {faults{scalarFromStep: true}, "cuda:0"},
		"other shape": {faults{otherShape: true}, "cuda:0"},
		"crash":       {faults{crash: &host.Error{Reason: host.ReasonCrashed, Plugin: "predictor", Summary: "ended"}}, "cuda:0"},
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

// What would be a lie does not pass the schema.
func TestSchemaRefuses(t *testing.T) {
	s := schema(t)
	good, _ := verify(t, faults{}, "cuda:0")
	for name, spoil := range map[string]func(*result.Result){
		"exact on the host":             func(r *result.Result) { r.Device = HostDevice },
		"exact with a gate that failed": func(r *result.Result) { r.Gates[gate.Replay] = gate.Finding{Outcome: gate.Failed, Reason: "X"} },
		"exact with a gate skipped":     func(r *result.Result) { r.Gates[gate.Native] = gate.Skip(gate.NotReached, "") },
		"exact with a gate missing":     func(r *result.Result) { delete(r.Gates, gate.Engaged) },
		"exact of three arms":           func(r *result.Result) { r.Arms = r.Arms[:3] },
		"a failure without a reason":    func(r *result.Result) { r.Verdict = result.Differs },
		"a word that is no verdict":     func(r *result.Result) { r.Verdict = "fine" },
		"a digest cut short":            func(r *result.Result) { r.Digests.Recording = "abc" },
	} {
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
}

// The results that are kept in the repository obey the schema and have their right names.
func TestKeptResults(t *testing.T) {
	s := schema(t)
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
