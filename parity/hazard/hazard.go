// Package hazard lists what is known to go wrong when work of a GPU is captured and replayed, each case with the report that
// it comes from, and with families that have exactly this fault. The suite must refuse them, and certify their twins.
package hazard

import (
	"slices"
	"strings"

	"samebits/parity/gate"
	"samebits/parity/result"
)

// Case is one case of public reports.
type Case struct {
	ID      string // C16
	Section string // A to F
	Title   string
	Threads []string // below https://github.com/
	Plants  []Plant
	// LeftOut says why there is no family with this fault: of what it is, and what looks after it.
	LeftOut string
}

// Sections are what the letters stand for.
var Sections = map[string]string{
	"A": "host values and host state frozen at capture",
	"B": "random numbers",
	"C": "buffers, aliasing, lifetimes",
	"D": "streams, devices, threads, collectives",
	"E": "libraries, kernels, hardware",
	"F": "control flow, shapes, keys, engagement, failure handling",
}

// URLs are the addresses of the reports.
func (c Case) URLs() []string {
	urls := make([]string, len(c.Threads))
	for i, t := range c.Threads {
		urls[i] = "https://github.com/" + t
	}
	return urls
}

// Plant is a family with a fault, in the table of the reference plugin.
type Plant struct {
	Family    string
	Precision string // empty: fp32
	Verdict   result.Verdict
	Reasons   []gate.Reason // one of them
	OnGPU     gate.Reason   // what it is there instead; empty: the same
	NeedsGPU  bool          // the fault is one of real graphs, or of memory of the device
	Untried   bool          // it has not been seen on a GPU yet: goldens/selftest has no line of it
}

// Task is the task of all planted families.
const Task = "planted"

// Twin is the same family without the fault.
func (p Plant) Twin() string { return p.Family + "@twin" }

// Wants is what the suite must say of the fault.
func (p Plant) Wants(onGPU bool) []gate.Reason {
	if onGPU && p.OnGPU != "" {
		return []gate.Reason{p.OnGPU}
	}
	return p.Reasons
}

// Found reports whether the suite found the fault, and for the right reason.
func (p Plant) Found(r result.Result, onGPU bool) bool {
	return r.Verdict == p.Verdict && slices.Contains(p.Wants(onGPU), r.Reason)
}

// Healthy reports whether the suite certifies a twin.
func Healthy(r result.Result, onGPU bool) bool {
	if onGPU {
		return r.Verdict == result.Exact
	}
	return r.Verdict == result.Consistent
}

// Choose gives the cases with these ids, and those of these sections; all where nobody names any. unknown are names that no
// case has.
func Choose(ids, sections []string) (chosen []Case, unknown []string) {
	has := func(of []string, name string) bool {
		return slices.ContainsFunc(of, func(s string) bool { return strings.EqualFold(s, name) })
	}
	for _, c := range Cases {
		if len(ids)+len(sections) == 0 || has(ids, c.ID) || has(sections, c.Section) {
			chosen = append(chosen, c)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(Cases, func(c Case) bool { return strings.EqualFold(c.ID, id) }) {
			unknown = append(unknown, id)
		}
	}
	for _, s := range sections {
		if _, known := Sections[strings.ToUpper(s)]; !known {
			unknown = append(unknown, s)
		}
	}
	return chosen, unknown
}
