// Package explain says in plain words what the gates of a result saw, what usually causes that, and how to see it again.
package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"samebits/parity/gate"
	"samebits/parity/result"
)

// Explanation is one thing that is wrong with a cell.
type Explanation struct {
	Gate      gate.ID  `json:"gate,omitempty"` // empty: a problem that no gate found
	Arm       string   `json:"arm,omitempty"`
	Reason    string   `json:"reason"`
	Saw       string   `json:"saw"`
	Here      string   `json:"here"` // what this result has of it
	Usually   []string `json:"usually"`
	Look      string   `json:"look"`
	Module    string   `json:"module,omitempty"` // of the operation that differs first, where a trace found it
	Source    string   `json:"source,omitempty"` // its line: file.py:12
	Reproduce string   `json:"reproduce"`
}

// Of gives what stands behind a reason, of a gate or of a problem.
func Of(reason string) (Cause, bool) {
	if c, known := causes[gate.Reason(reason)]; known {
		return c, true
	}
	c, known := breakdowns[reason]
	return c, known
}

// Result explains every gate that failed, in their order and arm by arm, then the problems.
func Result(r result.Result) []Explanation {
	all := []Explanation{}
	add := func(id gate.ID, arm string, f gate.Finding, reproduce string) {
		if f.Reproduce != "" {
			reproduce = f.Reproduce
		}
		e := Explanation{Gate: id, Arm: arm, Reason: string(f.Reason), Here: f.Detail, Reproduce: reproduce}
		e.Module, e.Source = origin(f.Figures)
		all = append(all, explained(e))
	}
	for _, id := range gate.Of(r.Mode, r.Gates) {
		f := r.Gates[id]
		if f.Outcome != gate.Failed {
			continue
		}
		again := f.Reproduce
		if again == "" {
			again = r.Reproduce
		}
		if len(f.Arms) == 0 {
			add(id, "", f, again)
			continue
		}
		for _, arm := range slices.Sorted(maps.Keys(f.Arms)) {
			if a := f.Arms[arm]; a.Outcome == gate.Failed {
				add(id, arm, a, again)
			}
		}
	}
	for _, p := range r.Problems {
		here := p.Summary
		for _, more := range []string{p.Path, p.Detail} {
			if more != "" {
				here += "; " + more
			}
		}
		all = append(all, explained(Explanation{Reason: p.Reason, Here: here, Reproduce: r.Reproduce}))
	}
	return all
}

// origin finds where the operation comes from that figures name. They are a struct, or what JSON made of one.
func origin(figures any) (module, source string) {
	var named struct {
		First struct{ Module, Source string } `json:"first_operation"`
	}
	data, err := json.Marshal(figures)
	if err != nil || json.Unmarshal(data, &named) != nil {
		return "", "" // figures that name no operation
	}
	return named.First.Module, named.First.Source
}

func explained(e Explanation) Explanation {
	c, known := Of(e.Reason)
	if !known {
		c = Cause{Saw: "A plugin or the suite refused or broke; no gate judged it."}
	}
	e.Saw, e.Usually, e.Look = c.Saw, c.Usually, c.Look
	return e
}

// width of the text.
const width = 110

// Write writes explanations as text. Problems of one reason stand together, and what is usual of a reason is said once.
func Write(w io.Writer, r result.Result, all []Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s-%s %s %s %d batch %d %s on %s: %s\n", r.Family, r.Size, r.Task, r.Mode, r.ImgSize, r.Batch, r.Precision, r.Device, r.Verdict)
	if len(all) == 0 {
		fmt.Fprintf(&b, "No gate failed. %s\n", r.Summary)
	}
	said, problems := map[string]bool{}, byReason(all)
	for _, e := range all {
		name, here := string(e.Gate), []string{e.Here}
		if name == "" {
			if name, here = "problem", problems[e.Reason]; here == nil {
				continue
			}
			delete(problems, e.Reason)
			if len(here) > 1 {
				name = fmt.Sprintf("%d problems", len(here))
			}
		}
		if e.Arm != "" {
			name += " of " + e.Arm
		}
		fmt.Fprintf(&b, "\n%s: %s\n", name, e.Reason)
		paragraph(&b, "  ", "  ", e.Saw)
		for _, text := range here {
			if text != "" {
				paragraph(&b, "  here: ", "        ", text)
			}
		}
		if said[e.Reason] && len(e.Usually) > 0 {
			e.Usually, e.Look = nil, "as above"
		}
		said[e.Reason] = true
		for i, cause := range e.Usually {
			if i == 0 {
				b.WriteString("  usually:\n")
			}
			paragraph(&b, "    - ", "      ", cause)
		}
		if e.Module != "" || e.Source != "" {
			fmt.Fprintf(&b, "  where: %s\n", strings.TrimSpace(e.Module+" "+e.Source))
		}
		if e.Look != "" {
			paragraph(&b, "  next: ", "        ", e.Look)
		}
		if e.Reproduce != "" {
			fmt.Fprintf(&b, "  again: %s\n", e.Reproduce)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// byReason gives what a result has of the problems that no gate found.
func byReason(all []Explanation) map[string][]string {
	here := map[string][]string{}
	for _, e := range all {
		if e.Gate == "" {
			here[e.Reason] = append(here[e.Reason], e.Here)
		}
	}
	return here
}

// paragraph breaks a text into lines.
func paragraph(b *strings.Builder, first, rest, text string) {
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) > width:
			b.WriteString(line + "\n")
			line = rest + word
		default:
			line += " " + word
		}
	}
	b.WriteString(line + "\n")
}
