package ci

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"samebits/parity/explain"
	"samebits/parity/gate"
	"samebits/parity/result"
)

func samples() []result.Result {
	of := func(family string, verdict result.Verdict, reason gate.Reason, gates map[gate.ID]gate.Finding) result.Result {
		return result.Result{Schema: 1, Task: "detect", Family: family, Size: "t", ImgSize: 640, Batch: 1, Mode: gate.Predict, Precision: "fp32", Profile: "exact-1",
			Device: "cuda:0", Verdict: verdict, Reason: reason, Summary: "in short", Gates: gates, Reproduce: "parity verify " + family}
	}
	passed := gate.Finding{Outcome: gate.Passed}
	differs := of("yolo9", result.Differs, gate.NativeDiffers, map[gate.ID]gate.Finding{gate.Reproduces: passed,
		gate.Replay: gate.Skip(gate.NoGPU, "none"),
		gate.Native: {Outcome: gate.Failed, Reason: gate.NativeDiffers, Arms: map[string]gate.Finding{
			"native-eager": {Outcome: gate.Failed, Reason: gate.NativeDiffers, Detail: "3 < 4 & \"so\" on in model.0 at yolo9/nn.py:12: 1 ULP", Reproduce: "parity trace yolo9"},
			"native-graph": {Outcome: gate.Failed, Reason: gate.NativeDiffers, Detail: "logits"}}},
		gate.Seam: {Outcome: gate.Failed, Reason: gate.SeamDiffers}})
	broken := of("dfine", result.Broken, "PLUGIN_CRASHED", map[gate.ID]gate.Finding{gate.Native: gate.Skip(gate.NotReached, "it broke")})
	broken.Problems = []result.Problem{{Reason: "PLUGIN_CRASHED", Summary: "signal \x1b[31m 11 \xff"}, {Reason: "SOMETHING_NEW", Summary: "x"}}
	return []result.Result{of("resnet", result.Exact, "", map[gate.ID]gate.Finding{gate.Native: passed}), differs, broken}
}

// element is any XML element.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e element) count(name string) (n int) {
	for _, c := range e.Children {
		if c.XMLName.Local == name {
			n++
		}
		n += c.count(name)
	}
	return n
}

// The structure that readers of JUnit's XML rely on: which elements may stand in which, which attributes they must have,
// and counts that are right.
var junit = map[string]struct {
	children []string
	required []string
	numbers  []string
}{
	"testsuites": {[]string{"testsuite"}, []string{"name", "tests", "failures", "errors"}, []string{"tests", "failures", "errors", "skipped"}},
	"testsuite":  {[]string{"properties", "testcase"}, []string{"name", "tests", "failures", "errors"}, []string{"tests", "failures", "errors", "skipped"}},
	"properties": {[]string{"property"}, nil, nil},
	"property":   {nil, []string{"name"}, nil},
	"testcase":   {[]string{"failure", "error", "skipped"}, []string{"name", "classname"}, nil},
	"failure":    {nil, []string{"type"}, nil},
	"error":      {nil, []string{"type"}, nil},
	"skipped":    {nil, nil, nil},
}

func checkJUnit(e element) error {
	rule, known := junit[e.XMLName.Local]
	if !known {
		return fmt.Errorf("there is no element %s", e.XMLName.Local)
	}
	for _, name := range rule.required {
		if e.attr(name) == "" {
			return fmt.Errorf("%s has no %s", e.XMLName.Local, name)
		}
	}
	counted := map[string]string{"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
	for _, name := range rule.numbers {
		if n, err := strconv.Atoi(e.attr(name)); err != nil || n != e.count(counted[name]) {
			return fmt.Errorf("%s %s: %s=%q and there are %d", e.XMLName.Local, e.attr("name"), name, e.attr(name), e.count(counted[name]))
		}
	}
	if e.XMLName.Local == "testcase" && len(e.Children) > 1 {
		return errors.New("a case has more than one outcome")
	}
	for _, c := range e.Children {
		if !strings.Contains(" "+strings.Join(rule.children, " ")+" ", " "+c.XMLName.Local+" ") {
			return fmt.Errorf("%s may not stand in %s", c.XMLName.Local, e.XMLName.Local)
		}
		if err := checkJUnit(c); err != nil {
			return err
		}
	}
	return nil
}

func TestJUnit(t *testing.T) {
	for _, results := range [][]result.Result{nil, samples()} {
		var b strings.Builder
		if err := JUnit(&b, results); err != nil {
			t.Fatal(err)
		}
		var root element
		d := xml.NewDecoder(strings.NewReader(b.String()))
		if err := d.Decode(&root); err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			if _, err = d.Token(); !errors.Is(err, io.EOF) {
				t.Errorf("something follows the root: %v", err)
			}
		}
		if err := checkJUnit(root); err != nil {
			t.Errorf("%v\n%s", err, b.String())
		}
		if results == nil {
			continue
		}
		if root.attr("failures") != "3" || root.attr("errors") != "1" || root.attr("skipped") != "2" || root.attr("tests") != "9" {
			t.Errorf("%v\n%s", root.Attrs, b.String())
		}
	}
}

// What is wrong is said in the case, without what XML cannot hold.
func TestJUnitSays(t *testing.T) {
	var b strings.Builder
	if err := JUnit(&b, samples()); err != nil {
		t.Fatal(err)
	}
	var root testsuites
	if err := xml.Unmarshal([]byte(b.String()), &root); err != nil {
		t.Fatal(err)
	}
	cases := map[string]testcase{}
	for _, s := range root.Suites {
		for _, c := range s.Cases {
			cases[s.Name+" "+c.Name] = c
		}
		if len(s.Properties) != 2 || s.Properties[0].Value == "" || !strings.HasPrefix(s.Properties[1].Value, "parity verify ") {
			t.Errorf("%+v", s.Properties)
		}
	}
	of := func(sample int, name string) testcase { return cases[Name(samples()[sample])+" "+name] }
	seen, _ := explain.Of(string(gate.SeamDiffers))
	if f := of(1, "SEAM").Failure; f == nil || f.Type != string(gate.SeamDiffers) || f.Text != seen.Saw+"\n" {
		t.Errorf("%+v", f)
	}
	if s := of(1, "REPLAY").Skipped; s == nil || s.Message != "NO_GPU: none" {
		t.Errorf("%+v", s)
	}
	if f := of(1, "verdict differs").Failure; f == nil || f.Message != "in short" || !strings.HasSuffix(f.Text, "in short\nreproduce: parity verify yolo9\n") {
		t.Errorf("%+v", f)
	}
	if e := of(2, "verdict broken").Error; e == nil || !strings.Contains(e.Text, "PLUGIN_CRASHED : signal ?[31m 11 ?\n") || !strings.Contains(e.Text, "SOMETHING_NEW") {
		t.Errorf("%+v", e)
	}
	if c := of(0, "verdict exact"); c.Failure != nil || c.Error != nil || c.Name == "" {
		t.Errorf("%+v", c)
	}
	if got := clean("a\tb\nc\x00d\x1fe\xfff\ufffeg\uffffh <&> ü"); got != "a\tb\nc?d?e?f?g?h <&> ü" {
		t.Errorf("%q", got)
	}
}

// object walks to a member that must be there.
func object[T any](t *testing.T, from map[string]any, name string) T {
	t.Helper()
	v, is := from[name].(T)
	if !is {
		t.Fatalf("%s is %T", name, from[name])
	}
	return v
}

// checkSARIF holds a log to what SARIF 2.1.0 demands of the objects that it has.
func checkSARIF(t *testing.T, text string) (results []any) {
	t.Helper()
	var log map[string]any
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		t.Fatal(err)
	}
	if object[string](t, log, "version") != "2.1.0" || !strings.HasSuffix(object[string](t, log, "$schema"), "sarif-schema-2.1.0.json") {
		t.Error("version or schema")
	}
	for _, r := range object[[]any](t, log, "runs") {
		run := r.(map[string]any)
		driver := object[map[string]any](t, object[map[string]any](t, run, "tool"), "driver")
		object[string](t, driver, "name")
		rules := object[[]any](t, driver, "rules")
		seen := map[string]bool{}
		for _, r := range rules {
			rule := r.(map[string]any)
			id := object[string](t, rule, "id")
			if seen[id] {
				t.Errorf("two rules %s", id)
			}
			seen[id] = true
			for _, name := range []string{"shortDescription", "help"} {
				if object[string](t, object[map[string]any](t, rule, name), "text") == "" {
					t.Errorf("%s of %s is empty", name, id)
				}
			}
		}
		for _, i := range object[[]any](t, run, "invocations") {
			object[bool](t, i.(map[string]any), "executionSuccessful")
		}
		results = object[[]any](t, run, "results")
		fingerprints := map[string]bool{}
		for _, r := range results {
			one := r.(map[string]any)
			id, at := object[string](t, one, "ruleId"), int(object[float64](t, one, "ruleIndex"))
			if at < 0 || at >= len(rules) || rules[at].(map[string]any)["id"] != id {
				t.Errorf("%s is not rule %d", id, at)
			}
			if level := object[string](t, one, "level"); !slices.Contains([]string{"none", "note", "warning", "error"}, level) {
				t.Errorf("level %s", level)
			}
			if object[string](t, object[map[string]any](t, one, "message"), "text") == "" {
				t.Errorf("%s says nothing", id)
			}
			print := object[string](t, object[map[string]any](t, one, "partialFingerprints"), "cell/v1")
			if fingerprints[print] {
				t.Errorf("two results %s have one fingerprint", id)
			}
			fingerprints[print] = true
			for _, l := range object[[]any](t, one, "locations") {
				checkLocation(t, l.(map[string]any))
			}
		}
	}
	return results
}

func checkLocation(t *testing.T, location map[string]any) {
	t.Helper()
	for _, l := range object[[]any](t, location, "logicalLocations") {
		object[string](t, l.(map[string]any), "fullyQualifiedName")
	}
	if location["physicalLocation"] == nil {
		return
	}
	physical := object[map[string]any](t, location, "physicalLocation")
	uri := object[string](t, object[map[string]any](t, physical, "artifactLocation"), "uri")
	if _, err := url.Parse(uri); err != nil {
		t.Error(err)
	}
	if object[float64](t, object[map[string]any](t, physical, "region"), "startLine") < 1 {
		t.Error("lines are counted from 1")
	}
}

func TestSARIF(t *testing.T) {
	var b strings.Builder
	if err := SARIF(&b, samples(), "1.0"); err != nil {
		t.Fatal(err)
	}
	if results := checkSARIF(t, b.String()); len(results) != 5 { // native twice, seam, two problems
		t.Errorf("%d results\n%s", len(results), b.String())
	}
	if !strings.Contains(b.String(), `"uri": "yolo9/nn.py"`) || !strings.Contains(b.String(), `"executionSuccessful": false`) {
		t.Error(b.String())
	}
	b.Reset()
	if err := SARIF(&b, nil, ""); err != nil {
		t.Fatal(err)
	}
	if results := checkSARIF(t, b.String()); len(results) != 0 {
		t.Error(b.String())
	}
}

func TestLines(t *testing.T) {
	var b strings.Builder
	for _, r := range samples() {
		if err := Line(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for line := range strings.Lines(b.String()) {
		var r result.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Family != samples()[n].Family {
			t.Errorf("%v: %s", err, line)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d lines", n)
	}
}
