// Package benchpage writes the report of a bench as one HTML page: tables and plots that need no network, no script to be
// read, and nothing beside the file.
package benchpage

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/parity/bench"
	"samebits/parity/matrix"
	"samebits/parity/page"
	"samebits/parity/report"
)

//go:embed page.html cell.html plots.html
var files embed.FS

//go:embed style.css
var style string

//go:embed script.js
var script string

// document is what the template shows.
type document struct {
	*bench.Report
	page.Head
	HostNote   string
	Where      []fact
	Headlines  []headline
	Precisions []string
	Steps      *dotPlot // of all arms beside PyTorch's graph
	Memory     *dotPlot
	Legend     []page.Series
	Columns    []string // of the table of all cells, behind the cell's name
	Details    []cellView
}

type fact struct{ Name, Value string }

// headline is a ratio over all cells.
type headline struct {
	Value, What, Detail string
	Good                bool
}

// cellView is what the page shows of one cell.
type cellView struct {
	*bench.Cell
	ID     string
	Values []value // of the table of all cells
	Arms   []armView
	Box    *boxPlot
	Rounds *roundPlot
	Firsts *stackPlot
}

// value is a cell of a table, with the number to sort by.
type value struct {
	Text string
	Sort float64
}

type armView struct {
	*bench.Arm
	page.Series
	Values []string
}

// armColumns are the titles of an arm's values.
var armColumns = []string{"median", "least", "quartiles", "IQR", "steps", "device peak", "reserved", "arena", "process on the GPU", "host peak", "launches in a step", "bits of eager PyTorch"}

// ArmColumns is for the template.
func (document) ArmColumns() []string { return armColumns }

var templates = template.Must(page.Templates(template.FuncMap{
	"seconds": report.Seconds,
	"same": func(same *bool) string {
		switch {
		case same == nil:
			return "-"
		case *same:
			return "the same"
		}
		return "other"
	},
	"number": func(x float64) string {
		if x == 0 {
			return "-" // it was not said
		}
		return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
	},
}).ParseFS(files, "*.html"))

// Write writes the page.
func Write(w io.Writer, r *bench.Report) error {
	title := fmt.Sprintf("parity bench: %d cells on %s", len(r.Cells), r.Device)
	if len(r.Cells) == 1 {
		title = "parity bench: 1 cell on " + r.Device
	}
	p := document{Report: r, Head: page.NewHead(title, style, script), HostNote: bench.HostNote}
	p.fill()
	return templates.ExecuteTemplate(w, "page.html", p)
}

func (p *document) fill() {
	p.Where = where(p.Report)
	p.Headlines = headlines(p.Report)
	for _, name := range p.Report.Arms {
		p.Legend = append(p.Legend, page.SeriesOf(name))
	}
	p.Columns = append(slices.Clone(p.Report.Arms), "graph / graph", "memory / memory", "first / first", "outcome")
	for i := range p.Cells {
		c := &p.Cells[i]
		if !slices.Contains(p.Precisions, c.Precision) {
			p.Precisions = append(p.Precisions, c.Precision)
		}
		p.Details = append(p.Details, p.view(c, i))
	}
	p.Steps = stepPlot(p.Report)
	p.Memory = memoryPlot(p.Report)
}

// where lists what the figures depend on.
func where(r *bench.Report) []fact {
	facts := []fact{{"device", r.Device}}
	for _, key := range matrix.Decisive {
		if v := r.Environment[key]; v != "" {
			facts = append(facts, fact{strings.TrimPrefix(key, "host."), v})
		}
	}
	steps := fmt.Sprintf("as many steps as fill %g s", r.Settings.Seconds)
	if r.Settings.Iterations > 0 {
		steps = fmt.Sprintf("%d steps", r.Settings.Iterations)
	}
	facts = append(facts, fact{"measured", fmt.Sprintf("%d rounds of %s in each arm", r.Settings.Rounds, steps)}, fact{"begun", r.Began})
	watched := "by " + r.Monitor.Program
	if r.Monitor.Problem != "" {
		watched = "by nobody: " + r.Monitor.Problem
	}
	return append(facts, fact{"clocks, power, temperature watched", watched}, fact{"command", r.Command})
}

// headlines are the ratios over all cells, of all precisions where there are several.
func headlines(r *bench.Report) []headline {
	var all []headline
	for _, x := range r.Ratios {
		several := slices.ContainsFunc(r.Ratios, func(other bench.Ratio) bool {
			return other.Precision == "" && other.What == x.What && other.Of == x.Of && other.To == x.To
		})
		if x.Precision != "" && several || !strings.HasPrefix(x.Of, "native") {
			continue
		}
		detail := "one cell"
		if x.Cells > 1 {
			detail = fmt.Sprintf("geomean of %d cells; %.3f to %.3f", x.Cells, x.Least, x.Most)
		}
		all = append(all, headline{fmt.Sprintf("%.3f", x.Geomean), fmt.Sprintf("%s of %s, as a part of %s", x.What, x.Of, x.To), detail, x.Geomean <= 1})
	}
	return all
}

func (p *document) view(c *bench.Cell, number int) cellView {
	v := cellView{Cell: c, ID: fmt.Sprintf("cell-%d", number+1)}
	base := report.BenchBase(c)
	for i := range c.Arms {
		a := &c.Arms[i]
		view := armView{Arm: a, Series: page.SeriesOf(a.Name)}
		if a.Step != nil {
			m := a.Memory
			view.Values = []string{report.Millis(a.Step.MedianMS), report.Millis(a.Step.MinMS),
				fmt.Sprintf("%s to %s", report.Millis(a.Step.Q1MS), report.Millis(a.Step.Q3MS)), report.Millis(a.Step.IQRMS), fmt.Sprint(a.Step.Steps),
				report.Size(m.PeakBytes), report.Size(m.ReservedBytes), report.Size(m.ArenaBytes), report.Size(m.DeviceBytes), report.Size(m.MaxRSSBytes),
				report.Launches(a), bits(a)}
		}
		v.Arms = append(v.Arms, view)
	}
	v.Values = p.row(c)
	v.Box, v.Rounds, v.Firsts = newBoxPlot(c, base), newRoundPlot(c), newStackPlot(c)
	return v
}

// row gives a cell's values in the table of all.
func (p *document) row(c *bench.Cell) []value {
	var row []value
	for _, name := range p.Report.Arms {
		switch a := c.Arm(name); {
		case a != nil && a.Step != nil:
			row = append(row, value{report.Millis(a.Step.MedianMS), a.Step.MedianMS})
		case a != nil:
			row = append(row, value{string(a.Outcome), -1})
		default:
			row = append(row, value{"-", -1})
		}
	}
	for _, x := range []float64{c.StepRatio(arm.NativeGraph, arm.ReferenceGraph), c.MemoryRatio(arm.NativeGraph, arm.ReferenceGraph),
		c.FirstRatio(bench.FirstWarm, bench.FirstReference)} {
		if x == 0 {
			row = append(row, value{"-", -1})
			continue
		}
		row = append(row, value{fmt.Sprintf("%.3f", x), x})
	}
	return append(row, value{string(c.Outcome), float64(c.Exit())})
}

func bits(a *bench.Arm) string {
	switch {
	case a.Bits == nil:
		return "-"
	case a.Bits.Same:
		return "the same"
	case a.Bits.Demanded:
		return "other: wrong"
	}
	return fmt.Sprintf("other, by at most %.2g", a.Bits.MaxAbs)
}
