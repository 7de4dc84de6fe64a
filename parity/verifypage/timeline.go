package verifypage

import (
	"fmt"
	"math"
	"slices"

	"samebits/parity/page"
	"samebits/parity/report"
	"samebits/parity/result"
)

// timeline shows when each process of a cell did what.
type timeline struct {
	page.Frame
	Rows   []timeRow
	Legend []shade
}

type timeRow struct {
	Y          float64
	Label, End string
	EndX       float64
	Parts      []timePart
	Words      []string // by the legend's phases
}

type timePart struct {
	X, Width float64
	Class    string
	Text     string
	Label    string // where there is room for it
	LabelX   float64
}

// shade is how a phase is drawn.
type shade struct{ Name, Class string }

// phaseNames are those of the suite, in their order; another one is drawn as the last.
var phaseNames = []string{"start", "build", "record", "load", "prepare", "steps", "situations", "trace", "measure", "other"}

func shadeOf(phase string) shade {
	at := slices.Index(phaseNames, phase)
	if at < 0 {
		at = len(phaseNames) - 1
	}
	return shade{phaseNames[at], "phase-" + phaseNames[at]}
}

const timeRowHeight = 30

func newTimeline(processes []result.Process) *timeline {
	high := 0.0
	for _, p := range processes {
		for _, ph := range p.Phases {
			high = max(high, ph.At+ph.Took)
		}
	}
	if !(high > 1e-3) || high > 1e12 { // less than a microsecond, more than years
		return nil
	}
	at := page.Linear(high)
	t := &timeline{Frame: page.NewFrame("When which process ran", "Calls of the suite on each arm's process, in seconds since the cell's begin. The table has the numbers.", len(processes), timeRowHeight)}
	t.Ticks = page.NiceTicks(high, at, func(x float64) string { return fmt.Sprintf("%g s", math.Round(x)/1000) })
	seen := map[string]int{}
	used := map[shade]bool{}
	for _, p := range processes {
		y := page.Margin/2 + (float64(len(t.Rows))+0.5)*timeRowHeight
		row := timeRow{Y: y, Label: p.Arm}
		if seen[p.Arm]++; seen[p.Arm] > 1 {
			row.Label = fmt.Sprintf("%s (%d)", p.Arm, seen[p.Arm])
		}
		end := 0.0
		for _, ph := range p.Phases {
			if ph.At < 0 || ph.Took < 0 {
				continue
			}
			s := shadeOf(ph.Name)
			used[s] = true
			part := timePart{X: page.Round(at(ph.At)), Class: s.Class, Text: ph.Name + " " + report.Seconds(ph.Took)}
			part.Width = max(page.Round(at(ph.At+ph.Took)-part.X), 0.5)
			if part.Width > float64(7*len(ph.Name)+8) {
				part.Label, part.LabelX = ph.Name, page.Round(part.X+part.Width/2)
			}
			end = max(end, ph.At+ph.Took)
			row.Parts = append(row.Parts, part)
		}
		row.End, row.EndX = report.Seconds(end), page.Round(at(end))+8
		t.Rows = append(t.Rows, row)
	}
	for _, name := range phaseNames {
		if s := shadeOf(name); used[s] {
			t.Legend = append(t.Legend, s)
		}
	}
	for i, p := range processes {
		for _, s := range t.Legend {
			t.Rows[i].Words = append(t.Rows[i].Words, phaseWords(p, s))
		}
	}
	return t
}

// phaseWords says how long a process was in a phase.
func phaseWords(p result.Process, s shade) string {
	var took, waited float64
	calls := 0
	for _, ph := range p.Phases {
		if shadeOf(ph.Name) == s {
			took, waited, calls = took+ph.Took, waited+ph.Waited, calls+ph.Calls
		}
	}
	switch {
	case calls == 0:
		return "-"
	case waited > 0:
		return fmt.Sprintf("%s, %s waiting (%d)", report.Seconds(took), report.Seconds(waited), calls)
	}
	return fmt.Sprintf("%s (%d)", report.Seconds(took), calls)
}
