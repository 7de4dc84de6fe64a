package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"samebits/parity/gate"
	"samebits/parity/result"
)

// trialLine is what --json prints of a case.
type trialLine struct {
	Case    string         `json:"case"`
	Section string         `json:"section"`
	Title   string         `json:"title"`
	Threads []string       `json:"threads"`
	Planted bool           `json:"planted"`
	Family  string         `json:"family,omitempty"`
	Verdict result.Verdict `json:"verdict"`
	Reason  gate.Reason    `json:"reason"`
	Wants   []gate.Reason  `json:"wants,omitempty"`
	Summary string         `json:"summary,omitempty"`
	Twin    result.Verdict `json:"twin,omitempty"`
	OK      bool           `json:"ok"`
	Skipped string         `json:"skipped,omitempty"` // why nothing ran
}

func sayTrialJSON(w io.Writer, o *trialOutcome) error {
	line := trialLine{Case: o.of.ID, Section: o.of.Section, Title: o.of.Title, Threads: o.of.URLs(), Planted: o.plant != nil, OK: o.ok(), Skipped: o.of.LeftOut}
	if o.plant != nil {
		line.Family, line.Wants = o.plant.Family, o.plant.Wants(o.onGPU)
	}
	switch {
	case o.skipped:
		line.Skipped = "it needs a GPU"
	case !o.done():
		line.Skipped = "interrupted before it was finished"
	case o.plant != nil:
		line.Verdict, line.Reason, line.Summary, line.Twin = o.faulty.Verdict, o.faulty.Reason, o.faulty.Summary, o.twin.Verdict
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(line)
}

// trialTable is the table of outcomes. Its rows are written one by one, so its columns are made for what is to be seen.
type trialTable struct {
	out    io.Writer
	of     *trials
	widths [5]int
}

func newTrialTable(out io.Writer, of *trials) *trialTable {
	t := &trialTable{out: out, of: of}
	wide := func(column int, text string) { t.widths[column] = max(t.widths[column], len(text)) }
	for column, title := range trialColumns[:len(t.widths)] {
		wide(column, title)
	}
	for _, o := range of.outcomes {
		if o.plant == nil {
			continue
		}
		wide(0, o.of.ID)
		wide(1, o.plant.Family)
		wide(2, string(result.EagerNoise)) // the longest verdict
		for _, reason := range o.plant.Wants(o.onGPU) {
			wide(3, string(reason))
		}
		wide(4, string(result.EagerNoise))
	}
	return t
}

var trialColumns = []string{"CASE", "FAMILY", "VERDICT", "REASON", "TWIN", "OK"}

func (t *trialTable) head() error { return t.write(trialColumns...) }

func (t *trialTable) write(words ...string) error {
	var line strings.Builder
	for column, word := range words {
		if column == len(words)-1 {
			line.WriteString(word)
			break
		}
		fmt.Fprintf(&line, "%-*s  ", t.widths[column], word)
	}
	_, err := fmt.Fprintln(t.out, line.String())
	return err
}

// row writes the line of an outcome; a case that is left out has none.
func (t *trialTable) row(o *trialOutcome) error {
	switch {
	case o.plant == nil:
		return nil
	case o.skipped:
		return t.write(o.of.ID, o.plant.Family, "needs a GPU")
	case !o.done():
		return t.write(o.of.ID, o.plant.Family, "not finished")
	}
	word := "no"
	if o.ok() {
		word = "yes"
	}
	return t.write(o.of.ID, o.plant.Family, string(o.faulty.Verdict), string(o.faulty.Reason), string(o.twin.Verdict), word)
}

// end writes behind the table what is left out, what is wrong, and a summary.
func (t *trialTable) end() error {
	var good, skipped int
	var left []string
	for _, o := range t.of.outcomes {
		switch {
		case o.plant == nil:
			left = append(left, fmt.Sprintf("%-5s %s", o.of.ID, o.of.LeftOut))
		case o.skipped:
			skipped++
		case o.ok():
			good++
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(t.out, "\nleft out:\n%s\n", strings.Join(left, "\n"))
	}
	for _, o := range t.of.outcomes {
		o.complain(t.out)
	}
	finished, faults := t.of.count()
	unfinished := ""
	if finished < faults {
		unfinished = fmt.Sprintf("%d are not finished; ", faults-finished)
	}
	_, err := fmt.Fprintf(t.out, "\n%d of %d faults on %s were found, and their twins certified; %s%d faults need a GPU, %d cases are left out\n",
		good, faults, t.of.device, unfinished, skipped, len(left))
	return err
}

// complain says what is wrong with one, and how to see it again.
func (o *trialOutcome) complain(w io.Writer) {
	if o.ok() || !o.done() {
		return
	}
	if !o.found() {
		fmt.Fprintf(w, "\n%s %s: not %s for %v\n  %s %s: %s\n  %s\n", o.of.ID, o.plant.Family, o.plant.Verdict, o.plant.Wants(o.onGPU),
			o.faulty.Verdict, o.faulty.Reason, o.faulty.Summary, o.faulty.Reproduce)
	}
	if !o.healthy() {
		fmt.Fprintf(w, "\n%s %s: not certified\n  %s %s: %s\n  %s\n", o.of.ID, o.plant.Twin(), o.twin.Verdict, o.twin.Reason, o.twin.Summary, o.twin.Reproduce)
	}
}
