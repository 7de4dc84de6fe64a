// Package ci writes results in forms that other programs of continuous integration read: JUnit's XML, SARIF 2.1.0, and JSON
// lines.
package ci

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"samebits/parity/explain"
	"samebits/parity/gate"
	"samebits/parity/result"
)

// The elements of JUnit's XML that Jenkins, GitLab and GitHub's actions have in common.
type (
	testsuites struct {
		XMLName  xml.Name    `xml:"testsuites"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Suites   []testsuite `xml:"testsuite"`
	}
	testsuite struct {
		Name       string     `xml:"name,attr"`
		Tests      int        `xml:"tests,attr"`
		Failures   int        `xml:"failures,attr"`
		Errors     int        `xml:"errors,attr"`
		Skipped    int        `xml:"skipped,attr"`
		Properties []property `xml:"properties>property"`
		Cases      []testcase `xml:"testcase"`
	}
	property struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	testcase struct {
		ClassName string   `xml:"classname,attr"`
		Name      string   `xml:"name,attr"`
		Failure   *outcome `xml:"failure"`
		Error     *outcome `xml:"error"`
		Skipped   *outcome `xml:"skipped"`
	}
	outcome struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a suite for each result, with a case for each gate and one for the verdict: a cell that no gate judged fails, too.
func JUnit(w io.Writer, results []result.Result) error {
	all := testsuites{Name: "parity verify"}
	for _, r := range results {
		s := junitSuite(r)
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Name is what reports call a cell: the name of its file without its ending.
func Name(r result.Result) string { return strings.TrimSuffix(r.Name(), ".json") }

func junitSuite(r result.Result) testsuite {
	s := testsuite{Name: Name(r), Properties: []property{{"verdict", string(r.Verdict)}, {"reproduce", r.Reproduce}}}
	class := "parity." + Name(r)
	for _, id := range gate.Of(r.Mode, r.Gates) {
		f, judged := r.Gates[id]
		if !judged {
			continue
		}
		c := testcase{ClassName: class, Name: string(id)}
		switch f.Outcome {
		case gate.Failed:
			c.Failure = &outcome{clean(f.Detail), string(f.Reason), clean(text(string(f.Reason), f.Detail, f.Reproduce))}
			s.Failures++
		case gate.Skipped:
			c.Skipped = &outcome{Message: clean(string(f.Reason) + ": " + f.Detail)}
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	verdict := testcase{ClassName: class, Name: "verdict " + string(r.Verdict)}
	switch r.Verdict {
	case result.Exact, result.Consistent, result.Passed:
	case result.Broken:
		verdict.Error = &outcome{clean(r.Summary), string(r.Reason), clean(text(string(r.Reason), problems(r), r.Reproduce))}
		s.Errors++
	default:
		verdict.Failure = &outcome{clean(r.Summary), string(r.Reason), clean(text(string(r.Reason), problems(r), r.Reproduce))}
		s.Failures++
	}
	s.Cases = append(s.Cases, verdict)
	s.Tests = len(s.Cases)
	return s
}

// text is what a report says of a failure.
func text(reason, detail, reproduce string) string {
	var b strings.Builder
	if cause, known := explain.Of(reason); known {
		b.WriteString(cause.Saw + "\n")
	}
	if detail != "" {
		b.WriteString(detail + "\n")
	}
	if reproduce != "" {
		b.WriteString("reproduce: " + reproduce + "\n")
	}
	return b.String()
}

func problems(r result.Result) string {
	lines := []string{r.Summary}
	for _, p := range r.Problems {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", p.Reason, p.Path, p.Summary, p.Detail)))
	}
	return strings.Join(lines, "\n")
}

// clean leaves out what XML cannot hold: plugins' last lines may have anything.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c == utf8.RuneError || c < ' ' && c != '\n' && c != '\t' || c == 0xFFFE || c == 0xFFFF {
			return '?'
		}
		return c
	}, s)
}
