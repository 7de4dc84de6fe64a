package benchpage

import (
	"fmt"
	"math"

	"samebits/parity/bench"
	"samebits/parity/page"
	"samebits/parity/report"
)

// stackPlot shows the stages of first predictions.
type stackPlot struct {
	page.Frame
	Rows []stackRow
}

type stackRow struct {
	Y, Top, Size float64
	Label, End   string
	EndX         float64
	Parts        []stackPart
}

type stackPart struct {
	X, Width float64
	Shade    int
	Text     string
	Label    string // where there is room for it
	LabelX   float64
}

func newStackPlot(c *bench.Cell) *stackPlot {
	high, rows := 0.0, 0
	for _, f := range c.First {
		if f.MS > 0 {
			high, rows = max(high, f.MS, total(f)), rows+1
		}
	}
	if rows == 0 {
		return nil
	}
	at := page.Linear(high)
	p := &stackPlot{Frame: page.NewFrame("Time from the start of a process to its first prediction", "The stages of the last process that was started of each kind; the number is the median of all.", rows, boxRowHeight)}
	p.Ticks = page.NiceTicks(high, at, func(x float64) string { return fmt.Sprintf("%g s", math.Round(x)/1000) })
	for i := range c.First {
		f := &c.First[i]
		if f.MS == 0 {
			continue
		}
		y := page.Margin/2 + (float64(len(p.Rows))+0.5)*boxRowHeight
		row := stackRow{Y: y, Top: y - 9, Size: 18, Label: f.Name, End: report.Seconds(f.MS)}
		if x := c.FirstRatio(f.Name, bench.FirstReference); x > 0 && f.Name != bench.FirstReference {
			row.End += fmt.Sprintf(" (%.3f)", x)
		}
		sum := 0.0
		for n, s := range f.Stages {
			part := stackPart{X: page.Round(at(sum)), Shade: n % 5, Text: fmt.Sprintf("%s: %s %s", f.Name, s.Name, report.Seconds(s.MS))}
			sum += s.MS
			part.Width = max(page.Round(at(sum)-part.X), 0.5)
			if part.Width > float64(7*len(s.Name)+8) {
				part.Label, part.LabelX = s.Name, part.X+part.Width/2
			}
			row.Parts = append(row.Parts, part)
		}
		row.EndX = page.Round(at(max(sum, f.MS))) + 8
		p.Rows = append(p.Rows, row)
	}
	return p
}

func total(f bench.First) float64 {
	sum := 0.0
	for _, s := range f.Stages {
		sum += s.MS
	}
	return sum
}
