package ci

import (
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"samebits/bridge/digest"
	"samebits/parity/explain"
	"samebits/parity/result"
)

// The schema that the file names.
const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

// The objects of SARIF 2.1.0 that are used here (sections 3.13 to 3.49).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		ShortDescription sarifMessage `json:"shortDescription"`
		Help             sarifMessage `json:"help"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool `json:"executionSuccessful"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		RuleIndex           int               `json:"ruleIndex"`
		Level               string            `json:"level"`
		Message             sarifMessage      `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
		Properties          map[string]string `json:"properties"`
	}
	sarifLocation struct {
		PhysicalLocation *sarifPhysical `json:"physicalLocation,omitempty"`
		LogicalLocations []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name               string `json:"name"`
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
)

// SARIF writes everything that is wrong with the results: a rule for each reason id, a result for each gate that failed, arm
// by arm, and for each problem.
func SARIF(w io.Writer, results []result.Result, version string) error {
	found := map[string][]sarifResult{}
	whole := true
	for _, r := range results {
		whole = whole && r.Judged()
		for _, e := range explain.Result(r) {
			found[e.Reason] = append(found[e.Reason], sarifOf(r, e))
		}
	}
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "parity", Version: version, Rules: []sarifRule{}}},
		Invocations: []sarifInvocation{{whole}}, Results: []sarifResult{}}
	for i, reason := range slices.Sorted(maps.Keys(found)) {
		cause, known := explain.Of(reason)
		if !known {
			cause.Saw = "A plugin or the suite refused or broke."
		}
		help := strings.TrimSpace(strings.Join(append([]string{"Usually:"}, cause.Usually...), "\n- ") + "\n\n" + cause.Look)
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{reason, sarifMessage{cause.Saw}, sarifMessage{help}})
		for _, one := range found[reason] {
			one.RuleIndex = i
			run.Results = append(run.Results, one)
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{sarifSchema, sarifVersion, []sarifRun{run}})
}

func sarifOf(r result.Result, e explain.Explanation) sarifResult {
	level := "error"
	if r.Verdict == result.Broken {
		level = "warning" // it says nothing of the cell
	}
	where := string(e.Gate)
	if e.Arm != "" {
		where += " of " + e.Arm
	}
	name := Name(r)
	message := strings.TrimSpace(name + ": " + where + " " + e.Reason + ": " + e.Here + "\nReproduce: " + e.Reproduce)
	return sarifResult{RuleID: e.Reason, Level: level, Message: sarifMessage{message},
		Locations:           []sarifLocation{{source("at " + e.Source + " " + e.Here), []sarifLogical{{r.Family, name, "module"}}}},
		PartialFingerprints: map[string]string{"cell/v1": digest.Bytes([]byte(strings.Join([]string{name, where, e.Reason}, "\x00")))},
		Properties:          map[string]string{"verdict": string(r.Verdict), "gate": string(e.Gate), "arm": e.Arm, "reproduce": e.Reproduce}}
}

var sourceLine = regexp.MustCompile(`\bat ([A-Za-z0-9_./-]+\.py):([1-9][0-9]{0,8})\b`)

// source finds the line of the family's code that a finding names.
func source(text string) *sarifPhysical {
	m := sourceLine.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	line, err := strconv.Atoi(m[2])
	if err != nil {
		return nil
	}
	return &sarifPhysical{sarifArtifact{m[1]}, &sarifRegion{line}}
}

// Line writes one result as a line of JSON, as --json does.
func Line(w io.Writer, r result.Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
