package ops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/diag"
	"samebits/parity/compare"
	"samebits/parity/result"
	"samebits/parity/values"
)

// Schema is the version of a report's JSON.
const Schema = 1

// Outcome is the word for one operation.
type Outcome string

// The outcomes.
const (
	// Exact: native gives PyTorch's bits on all values.
	Exact Outcome = "exact"
	// Consistent: on the device host alone; see docs/ops.md.
	Consistent Outcome = "consistent"
	// Differs: native gives other bits, or on the device host is further off than it may be.
	Differs Outcome = "differs"
	// Refused: native does not run it.
	Refused Outcome = "refused"
	// Broken: an arm crashed or hung.
	Broken Outcome = "broken"
	// Skipped: there is nothing to compare, or nothing to compare with.
	Skipped Outcome = "skipped"
)

// Report is what a Check found.
type Report struct {
	Schema      int               `json:"schema"`
	Device      string            `json:"device"`
	Seed        uint64            `json:"seed"`
	Values      []values.Kind     `json:"values"`
	Environment map[string]string `json:"environment"`
	Seconds     float64           `json:"seconds"`
	Operations  []Row             `json:"operations"`
	Findings    []Finding         `json:"findings"`
}

// Finding is the outcome of one distinct operation.
type Finding struct {
	ID         string   `json:"id"`
	Operation  string   `json:"operation"`
	Signature  string   `json:"signature"`
	Outcome    Outcome  `json:"outcome"`
	Reason     string   `json:"reason,omitempty"`
	Detail     string   `json:"detail,omitempty"`
	Calls      int      `json:"calls"`
	Recordings []string `json:"recordings"`
	Module     string   `json:"module,omitempty"` // of the first call
	Source     string   `json:"source,omitempty"`

	Differences []Difference `json:"differences,omitempty"`
	Rounding    []Rounding   `json:"rounding,omitempty"` // of consistent ones
	Reproduce   string       `json:"reproduce,omitempty"`

	noise, otherNaN, otherTie bool
	unmeasured                *diag.Problem // in double precision
}

// Difference is one tensor that differs, on values of one kind.
type Difference struct {
	Values values.Kind `json:"values"`
	Tensor string      `json:"tensor"` // result 0, self as it was written
	// Beside: the tensor itself is right, and memory between its elements is not. Then At is a place in memory.
	Beside    bool            `json:"beside,omitempty"`
	Bits      compare.Figures `json:"bits"`
	At        []int64         `json:"at"` // index of the first element that differs
	Reference string          `json:"reference"`
	Native    string          `json:"native"`
	Operands  []Element       `json:"operands,omitempty"` // what lies at that index, broadcast
	Rounding  *Rounding       `json:"rounding,omitempty"` // on the device host, where an error was measured
}

// Element is one element of an argument.
type Element struct {
	Argument string `json:"argument"`
	Value    string `json:"value"`
}

// Rounding is the distance from double precision of a tensor that differs, as the gate NATIVE measures it.
type Rounding struct {
	Values    values.Kind   `json:"values"`
	Tensor    string        `json:"tensor"`
	Limit     float64       `json:"limit"`
	Floor     float64       `json:"floor"`
	Reference compare.Error `json:"reference"`
	Native    compare.Error `json:"native"`
}

func (d Difference) String() string {
	s := fmt.Sprintf("%s values, %s: %v", d.Values, d.Tensor, d.Bits)
	if d.Beside {
		s = fmt.Sprintf("%s values, beside %s: %v", d.Values, d.Tensor, d.Bits)
	}
	if r := d.Rounding; r != nil {
		s += fmt.Sprintf("; against double precision off by %.3g (mean %.3g, %d lost), PyTorch by %.3g (mean %.3g, %d lost)",
			r.Native.Max, r.Native.Mean, r.Native.Lost, r.Reference.Max, r.Reference.Mean, r.Reference.Lost)
	}
	return s
}

// Row sums up all signatures of one operation.
type Row struct {
	Operation  string `json:"operation"`
	Signatures int    `json:"signatures"`
	Compared   int    `json:"compared"`
	Exact      int    `json:"exact"`
	Consistent int    `json:"consistent"`
	Differing  int    `json:"differing"`
	Refused    int    `json:"refused"`
	Broken     int    `json:"broken"`
	Skipped    int    `json:"skipped"`
}

func (r *Row) add(o Outcome) {
	r.Signatures++
	switch o {
	case Exact:
		r.Exact++
	case Consistent:
		r.Consistent++
	case Differs:
		r.Differing++
	case Refused:
		r.Refused++
	case Broken:
		r.Broken++
	case Skipped:
		r.Skipped++
	}
	r.Compared = r.Exact + r.Consistent + r.Differing
}

// SumUp fills in Operations: those with something wrong first, the worst at the top.
func (r *Report) SumUp() {
	rows := map[string]*Row{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if rows[f.Operation] == nil {
			rows[f.Operation] = &Row{Operation: f.Operation}
		}
		rows[f.Operation].add(f.Outcome)
	}
	r.Operations = []Row{}
	for _, row := range rows {
		r.Operations = append(r.Operations, *row)
	}
	slices.SortFunc(r.Operations, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Differing, a.Differing), cmp.Compare(b.Broken, a.Broken), cmp.Compare(b.Refused, a.Refused),
			strings.Compare(a.Operation, b.Operation))
	})
}

// Total is the sum of all rows.
func (r *Report) Total() Row {
	total := Row{Operation: "all"}
	for i := range r.Findings {
		total.add(r.Findings[i].Outcome)
	}
	return total
}

// Exit is the exit status, as result.Exit gives it for cells.
func (r *Report) Exit() int {
	status := result.ExitExact
	for i := range r.Findings {
		switch r.Findings[i].Outcome {
		case Differs:
			status = max(status, result.ExitDiffers)
		case Refused:
			status = max(status, result.ExitRefused)
		case Broken:
			status = max(status, result.ExitInfrastructure)
		}
	}
	return status
}
