package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"samebits/bridge/arm"
	"samebits/bridge/host"
	"samebits/goldens"
	"samebits/parity/bench"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

func schema() *jsonschema.Schema { return goldens.MustCompile(goldens.BenchSchema) }

func obeys(s *jsonschema.Schema, r bench.Report) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(document)
}

// report is that of one cell with these faults.
func report(t testing.TB, faults suitetest.Faults, device string) bench.Report {
	t.Helper()
	cell, _ := measure(t, faults, device, nil)
	onGPU := device != suite.HostDevice
	r := bench.Report{Schema: bench.Schema, Command: "parity bench fake", Began: time.Now().Format(time.RFC3339), Device: device, GPUFigures: onGPU,
		Arms: bench.Arms(onGPU, true), Settings: settings(), Environment: map[string]string{"gpu": "fake"}, Cells: []bench.Cell{cell}}
	r.SumUp()
	return r
}

// Whatever a bench says obeys the schema.
func TestReportsObeySchema(t *testing.T) {
	s := schema()
	broken := &host.Error{Reason: host.ReasonCrashed, Plugin: "predictor", Summary: "ended"}
	for name, c := range map[string]struct {
		faults suitetest.Faults
		device string
	}{
		"measured":        {suitetest.Faults{Bench: suitetest.Bench{Milliseconds: times, Compiled: suitetest.ULPs(5)}}, "cuda:0"},
		"host":            {suitetest.Faults{Native: suitetest.ULPs(1)}, suite.HostDevice},
		"differs":         {suitetest.Faults{Native: suitetest.ULPs(1)}, "cuda:0"},
		"other shape":     {suitetest.Faults{OtherShape: true}, "cuda:0"},
		"native crashed":  {suitetest.Faults{Crash: broken}, "cuda:0"},
		"no recording":    {suitetest.Faults{OtherPrecision: true}, "cuda:0"},
		"an arm broke":    {suitetest.Faults{Bench: suitetest.Bench{MeasureFails: map[string]error{arm.ReferenceGraph: broken}}}, "cuda:0"},
		"a first broke":   {suitetest.Faults{Bench: suitetest.Bench{FirstFails: broken}}, "cuda:0"},
		"a first differs": {suitetest.Faults{Bench: suitetest.Bench{FirstDiffers: true}}, "cuda:0"},
		"nothing":         {suitetest.Faults{Dead: broken}, "cuda:0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(t, c.faults, c.device)
			if err := obeys(s, r); err != nil {
				data, _ := json.MarshalIndent(r, "", " ")
				t.Errorf("%v\n%s", err, data)
			}
		})
	}
}

// What would be a lie does not pass the schema.
func TestSchemaRefuses(t *testing.T) {
	s := schema()
	for name, spoil := range map[string]func(r *bench.Report){
		"figures of the host as those of a GPU": func(r *bench.Report) { r.Device = suite.HostDevice },
		"a GPU whose figures are none":          func(r *bench.Report) { r.GPUFigures = false },
		"measured without times":                func(r *bench.Report) { r.Cells[0].Arms[0].Step = nil },
		"measured with other bits":              func(r *bench.Report) { r.Cells[0].Arms[4].Bits.Same = false },
		"differs without saying in what":        func(r *bench.Report) { r.Cells[0].Arms[4].Outcome, r.Cells[0].Arms[4].Bits = bench.Differs, nil },
		"broken without a reason":               func(r *bench.Report) { r.Cells[0].Arms[4].Outcome = bench.Broken },
		"a cell measured but for an arm":        func(r *bench.Report) { r.Cells[0].Arms[4].Outcome = bench.Refused },
		"a step that took no time":              func(r *bench.Report) { r.Cells[0].Arms[4].Step.MinMS = 0 },
		"a first prediction without a time":     func(r *bench.Report) { r.Cells[0].First[0].Times = nil },
		"an arm that is none":                   func(r *bench.Report) { r.Cells[0].Arms[4].Name = "native-fast" },
		"a ratio of no cell":                    func(r *bench.Report) { r.Ratios[0].Cells = 0 },
		"no rounds":                             func(r *bench.Report) { r.Settings.Rounds = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := report(t, suitetest.Faults{}, "cuda:0")
			if err := obeys(s, r); err != nil {
				t.Fatal(err)
			}
			if spoil(&r); obeys(s, r) == nil {
				t.Error("the schema takes it")
			}
		})
	}
}

// The reports that are kept in the repository obey the schema, and their ratios are those of their cells.
func TestKeptReports(t *testing.T) {
	s := schema()
	files, err := filepath.Glob("../../goldens/bench/*.json")
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
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := s.Validate(document); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		r, err := bench.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := json.Marshal(r.Ratios)
		r.SumUp()
		if again, _ := json.Marshal(r.Ratios); !bytes.Equal(said, again) {
			t.Errorf("%s: ratios %s, of its cells %s", file, said, again)
		}
	}
}
