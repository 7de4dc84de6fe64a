// Package result holds what the suite says of one cell, and keeps it as JSON. docs/results.md describes the fields;
// goldens/results/schema.json is their schema.
package result

import (
	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/parity/gate"
	"samebits/parity/schedule"
)

// Schema is the version of the format.
const Schema = 1

// Verdict is the word for a whole cell.
type Verdict string

// The verdicts.
const (
	// Exact: every gate passed and every arm gives the same bits on a GPU.
	Exact Verdict = "exact"
	// Consistent: on the device host, native's graph gives native's eager bits, and native is no worse than PyTorch against
	// double precision. Only a GPU can give Exact.
	Consistent Verdict = "consistent"
	// Passed: the gates that were asked for passed. Nothing is said of the others.
	Passed Verdict = "passed"
	// EagerNoise: the eager reference does not reproduce itself, so no arm is blamed.
	EagerNoise Verdict = "eager-noise"
	// Differs: an arm gives other bits.
	Differs Verdict = "differs"
	// Refused: the cell cannot be judged, for the reason given.
	Refused Verdict = "refused"
	// Broken: the verification itself broke: a plugin is missing, crashed or hung. It says nothing of the cell.
	Broken Verdict = "broken"
)

// Result is the outcome of one cell.
type Result struct {
	Schema    int    `json:"schema"`
	Task      string `json:"task"`
	Family    string `json:"family"`
	Size      string `json:"size"`
	ImgSize   int64  `json:"imgsz"`
	Batch     int64  `json:"batch"`
	Mode      string `json:"mode"`
	Precision string `json:"precision"`
	Profile   string `json:"profile"`
	Seed      uint64 `json:"seed"`
	Device    string `json:"device"` // cuda:0, host

	Training *Training `json:"training,omitempty"` // of mode train
	Seam     *Seam     `json:"seam,omitempty"`     // where the step is a segment of the family's forward

	Asked []gate.ID `json:"asked,omitempty"` // the gates that were judged alone; none: all were

	Verdict  Verdict     `json:"verdict"`
	Reason   gate.Reason `json:"reason,omitempty"` // of every verdict but exact and consistent
	Summary  string      `json:"summary"`          // one line for people
	Problems []Problem   `json:"problems,omitempty"`

	Arms        []string                 `json:"arms"` // those that ran, in their order
	Gates       map[gate.ID]gate.Finding `json:"gates"`
	Digests     Digests                  `json:"digests"`
	Timings     map[string]Timing        `json:"timings"`                 // by arm
	Weights     int64                    `json:"weights_bytes,omitempty"` // of the parameters, buffers and constants that a step reads
	Memory      map[string]Memory        `json:"memory,omitempty"`        // by arm, where the arm counts it
	Processes   []Process                `json:"processes,omitempty"`     // in the order in which they were started
	Launches    *Launches                `json:"launches,omitempty"`      // of a step of the native arms
	Environment map[string]string        `json:"environment"`
	Reproduce   string                   `json:"reproduce"` // the command that makes this result again
}

// Memory is what an arm took of its device from the build of its model until it was ready to step, its capture among it; of
// an eager arm with its steps.
type Memory struct {
	PeakBytes     int64 `json:"peak_bytes"`               // the most that was allocated at once
	ReservedBytes int64 `json:"reserved_bytes,omitempty"` // the most that a caching allocator held; none: there is no such allocator
	ArenaBytes    int64 `json:"arena_bytes,omitempty"`    // the part of the peak that all results share; of native arms
}

// Process says when the process of an arm, or of the recorder, did what.
type Process struct {
	Arm    string  `json:"arm"` // or recorder
	Phases []Phase `json:"phases"`
}

// Phase is a number of calls of a kind, one right after the other.
type Phase struct {
	Name   string  `json:"phase"`               // start, build, record, load, prepare, steps, situations, trace, measure
	At     float64 `json:"at_ms"`               // since the cell's begin
	Took   float64 `json:"took_ms"`             // from the begin of the first to the end of the last
	Waited float64 `json:"waited_ms,omitempty"` // the part of it in which the process waited for its turn
	Calls  int     `json:"calls"`
}

// Training is what a training run was made of.
type Training struct {
	schedule.Recipe
	Classes    int64 `json:"classes"`               // labels are below it
	ShortBatch int64 `json:"short_batch,omitempty"` // of the gate PARTIAL
}

// Seam says where a cell's captured segment ends. What comes behind it runs eagerly, and the gate SEAM proves the seam.
type Seam = certificate.Cut

// Problem is one thing that is wrong, as diag.Problem has it.
type Problem struct {
	Reason  string `json:"reason"`
	Summary string `json:"summary"`
	Detail  string `json:"detail,omitempty"`
	Path    string `json:"path,omitempty"`
}

// Problems turns problems into their form in a result.
func Problems(ps diag.Problems) []Problem {
	all := make([]Problem, len(ps))
	for i, p := range ps {
		all[i] = Problem{p.Reason, p.Summary, p.Detail, p.Path}
	}
	return all
}

// Digests names everything that went in and came out. docs/digests.md shows how to make them again with b3sum.
type Digests = certificate.Digests

// Timing is how long a step took inside an arm's process, transfers left out.
type Timing = certificate.Timing

// Judged reports whether the verdict says something of the cell.
func (r Result) Judged() bool { return r.Verdict != Broken }
