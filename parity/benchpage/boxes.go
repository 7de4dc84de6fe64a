package benchpage

import (
	"fmt"
	"math"

	"samebits/parity/bench"
	"samebits/parity/page"
	"samebits/parity/report"
)

// boxPlot shows the spread of each arm's steps.
type boxPlot struct {
	page.Frame
	Rows []boxRow
}

type boxRow struct {
	page.Series
	Y, Top, Size   float64 // of the box
	MinX, Q1, Q3   float64
	Median, Width  float64
	Medians        []float64 // of the rounds
	Text, ShortEnd string
	EndX           float64
}

const boxRowHeight = 34

func newBoxPlot(c *bench.Cell, base string) *boxPlot {
	high := 0.0
	rows := 0
	for _, a := range c.Arms {
		if a.Step == nil {
			continue
		}
		rows++
		high = max(high, a.Step.Q3MS)
		for _, r := range a.Rounds {
			high = max(high, r.MedianMS)
		}
	}
	if rows == 0 {
		return nil
	}
	at := page.Linear(high)
	p := &boxPlot{Frame: page.NewFrame("Time of a step", "From the least to the third quartile: a line from the least, a box around the middle half of all steps with the median in it, and a point for the median of each round. Milliseconds.", rows, boxRowHeight)}
	p.Ticks = page.NiceTicks(high, at, func(x float64) string { return fmt.Sprintf("%g ms", math.Round(x*1e6)/1e6) })
	for i := range c.Arms {
		a := &c.Arms[i]
		if a.Step == nil {
			continue
		}
		s := a.Step
		y := page.Margin/2 + (float64(len(p.Rows))+0.5)*boxRowHeight
		row := boxRow{Series: page.SeriesOf(a.Name), Y: y, Top: y - 8, Size: 16, MinX: page.Round(at(s.MinMS)), Q1: page.Round(at(s.Q1MS)), Q3: page.Round(at(s.Q3MS)),
			Median: page.Round(at(s.MedianMS)), ShortEnd: report.Millis(s.MedianMS)}
		row.Width = max(page.Round(row.Q3-row.Q1), 1)
		end := max(s.Q3MS, s.MedianMS)
		for _, r := range a.Rounds {
			row.Medians = append(row.Medians, page.Round(at(r.MedianMS)))
			end = max(end, r.MedianMS)
		}
		row.EndX = page.Round(at(end)) + 8
		row.Text = fmt.Sprintf("%s: median %s, least %s, quartiles %s and %s", a.Name, report.Millis(s.MedianMS), report.Millis(s.MinMS), report.Millis(s.Q1MS), report.Millis(s.Q3MS))
		if x := c.StepRatio(a.Name, base); x > 0 && a.Name != base {
			row.ShortEnd += fmt.Sprintf(" (%.3f)", x)
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}
