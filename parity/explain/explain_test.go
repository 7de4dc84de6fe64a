package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"samebits/parity/gate"
	"samebits/parity/result"
)

// reasons finds the constants of type Reason in the sources of package gate, and of those that it has from bridge/certificate.
func reasons(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../gate/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range append(files, "../../bridge/certificate/gates.go") {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is {
				return true
			}
			if name, is := spec.Type.(*ast.Ident); !is || name.Name != "Reason" {
				return true
			}
			for _, value := range spec.Values {
				if text, err := strconv.Unquote(value.(*ast.BasicLit).Value); err == nil {
					found = append(found, text)
				}
			}
			return true
		})
	}
	return found
}

func TestEveryReasonIsExplained(t *testing.T) {
	found := reasons(t)
	if len(found) < 30 {
		t.Fatalf("only %d reasons were found", len(found))
	}
	known := map[string]bool{}
	for _, reason := range found {
		known[reason] = true
		c, has := Of(reason)
		if !has || c.Saw == "" || len(c.Usually) == 0 || c.Look == "" {
			t.Errorf("%s has no explanation, or half of one: add it to table.go", reason)
		}
	}
	for reason := range causes {
		if !known[string(reason)] {
			t.Errorf("%s is explained and no gate has it", reason)
		}
	}
}

// docs/gates.md names reasons in its tables; all of them are real ones.
func TestDocumentedReasons(t *testing.T) {
	data, err := os.ReadFile("../../docs/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(string(data), -1)
	if len(rows) < 20 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, row := range rows {
		if slices.Contains(gate.Order(gate.Train), gate.ID(row[1])) {
			continue // a row of a table of gates
		}
		if _, has := causes[gate.Reason(row[1])]; !has {
			t.Errorf("%s is in docs/gates.md and has no explanation", row[1])
		}
	}
}

func TestResult(t *testing.T) {
	r := result.Result{Family: "fake", Size: "s", Task: "detect", Mode: gate.Predict, Verdict: result.Differs, Reproduce: "parity verify fake",
		Problems: []result.Problem{{Reason: "NEVER_HEARD_OF", Summary: "it broke", Path: "operations[3]"}},
		Gates: map[gate.ID]gate.Finding{
			gate.SameRecording: {Outcome: gate.Passed},
			gate.Replay: {Outcome: gate.Failed, Reason: gate.OutputDiffers, Arms: map[string]gate.Finding{
				"native-graph":    {Outcome: gate.Failed, Reason: gate.OutputNotWritten, Detail: "logits"},
				"reference-graph": {Outcome: gate.Passed}}},
			gate.Native: {Outcome: gate.Failed, Reason: gate.NativeDiffers, Detail: "x", Reproduce: "parity trace fake",
				Figures: map[string]any{"first_operation": map[string]string{"module": "model.2", "source": "nn.py:12"}}},
		}}
	all := Result(r)
	if len(all) != 3 || all[0].Arm != "native-graph" || all[0].Reason != "OUTPUT_NOT_WRITTEN" || all[0].Reproduce != "parity verify fake" ||
		all[1].Reproduce != "parity trace fake" || !strings.Contains(all[2].Here, "operations[3]") {
		t.Fatalf("%+v", all)
	}
	var b strings.Builder
	if err := Write(&b, r, all); err != nil {
		t.Fatal(err)
	}
	if all[1].Module != "model.2" || all[1].Source != "nn.py:12" || all[0].Module+all[0].Source != "" {
		t.Errorf("%+v", all)
	}
	for _, want := range []string{"  where: model.2 nn.py:12\n", "    - " + all[1].Usually[0][:40], "  next: " + all[1].Look[:40], "  here: logits\n", "REPLAY of native-graph: OUTPUT_NOT_WRITTEN", "usually:", "again: parity trace fake", "problem: NEVER_HEARD_OF"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if len([]rune(line)) > width+2 {
			t.Errorf("a line of %d: %s", len(line), line)
		}
	}
	r.Gates, r.Problems, r.Summary = nil, nil, "all bits agree"
	b.Reset()
	if err := Write(&b, r, Result(r)); err != nil || !strings.Contains(b.String(), "No gate failed. all bits agree") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// What is usual of a reason is said once, and looked up there the second time.
func TestSaidOnce(t *testing.T) {
	failed := gate.Finding{Outcome: gate.Failed, Reason: gate.NativeDiffers}
	r := result.Result{Mode: gate.Predict, Gates: map[gate.ID]gate.Finding{
		gate.Native: {Outcome: gate.Failed, Reason: gate.NativeDiffers, Arms: map[string]gate.Finding{"native-eager": failed, "native-graph": failed}}}}
	var b strings.Builder
	if err := Write(&b, r, Result(r)); err != nil {
		t.Fatal(err)
	}
	c, _ := Of(string(gate.NativeDiffers))
	if strings.Count(b.String(), "  usually:\n") != 1 || strings.Count(b.String(), "  next: as above\n") != 1 || strings.Count(b.String(), "  next: "+c.Look[:30]) != 1 {
		t.Error(b.String())
	}
}

// The command is the arm's own, else the gate's, else the result's.
func TestReproduce(t *testing.T) {
	arms := map[string]gate.Finding{"a": {Outcome: gate.Failed, Reason: gate.NativeDiffers, Reproduce: "of the arm"}, "b": {Outcome: gate.Failed, Reason: gate.NativeDiffers}}
	r := result.Result{Mode: gate.Predict, Reproduce: "of the result", Gates: map[gate.ID]gate.Finding{
		gate.Replay: {Outcome: gate.Failed, Reason: gate.OutputDiffers, Arms: arms},
		gate.Native: {Outcome: gate.Failed, Reason: gate.NativeDiffers, Arms: arms, Reproduce: "of the gate"}}}
	var got []string
	for _, e := range Result(r) {
		got = append(got, string(e.Gate)+" "+e.Arm+": "+e.Reproduce)
	}
	if want := []string{"REPLAY a: of the arm", "REPLAY b: of the result", "NATIVE a: of the arm", "NATIVE b: of the gate"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestProblemsOfOneReasonStandTogether(t *testing.T) {
	r := result.Result{Problems: []result.Problem{{Reason: "DYNAMIC_OPERATION", Summary: "one"}, {Reason: "H2D_IN_REGION", Summary: "two"},
		{Reason: "DYNAMIC_OPERATION", Summary: "three"}}}
	var b strings.Builder
	if err := Write(&b, r, Result(r)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\n2 problems: DYNAMIC_OPERATION\n", "\n  here: one\n  here: three\n", "\nproblem: H2D_IN_REGION\n", "\n  here: two\n"} {
		if strings.Count(b.String(), line) != 1 {
			t.Errorf("%q is not there once:\n%s", line, b.String())
		}
	}
	if n := strings.Count(b.String(), "  usually:\n"); n != 2 {
		t.Errorf("what is usual is said %d times", n)
	}
}
