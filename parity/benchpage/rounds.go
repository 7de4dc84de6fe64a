package benchpage

import (
	"fmt"
	"math"

	"samebits/parity/bench"
	"samebits/parity/page"
	"samebits/parity/report"
)

// roundPlot shows how the arms' medians moved from round to round, each as a part of its own over all.
type roundPlot struct {
	page.Frame
	One   float64 // where the ratio is 1
	Marks []mark  // of the vertical axis
	Lines []roundLine
}

type mark struct {
	Y     float64
	Label string
}

type roundLine struct {
	page.Series
	Points string
	Dots   []dot
}

const roundPlotHeight = 150

func newRoundPlot(c *bench.Cell) *roundPlot {
	rounds, spread := 0, 0.01
	for _, a := range c.Arms {
		if a.Step == nil {
			continue
		}
		rounds = max(rounds, len(a.Rounds))
		for _, r := range a.Rounds {
			spread = max(spread, math.Abs(r.MedianMS/a.Step.MedianMS-1)*1.1)
		}
	}
	if rounds < 2 {
		return nil
	}
	p := &roundPlot{Frame: page.Frame{Width: page.PlotWidth, Height: roundPlotHeight + page.AxisHeight, Bottom: roundPlotHeight, Left: page.LabelWidth, LabelX: page.LabelWidth - 10, Title: "Medians of the rounds",
		Description: "Each arm's median in a round as a part of its median over all rounds: lines that lean together are the machine, not an arm."}}
	x := func(round int) float64 {
		return page.LabelWidth + (float64(round)-0.5)/float64(rounds)*(page.PlotWidth-page.LabelWidth-page.Margin)
	}
	y := func(ratio float64) float64 {
		return roundPlotHeight/2 - (ratio-1)/spread*(roundPlotHeight/2-page.Margin/2)
	}
	p.One = y(1)
	for _, at := range []float64{1 + spread, 1, 1 - spread} {
		p.Marks = append(p.Marks, mark{page.Round(y(at)), fmt.Sprintf("%+.1f %%", (at-1)*100)})
	}
	for i := 1; i <= rounds; i++ {
		p.Ticks = append(p.Ticks, page.Tick{X: page.Round(x(i)), Label: fmt.Sprintf("round %d", i)})
	}
	for i := range c.Arms {
		a := &c.Arms[i]
		if a.Step == nil {
			continue
		}
		line := roundLine{Series: page.SeriesOf(a.Name)}
		for _, r := range a.Rounds {
			d := dot{line.Series, page.Round(x(r.Round)), page.Round(y(r.MedianMS / a.Step.MedianMS)),
				fmt.Sprintf("%s, round %d: %s, as number %d of the round", a.Name, r.Round, report.Millis(r.MedianMS), r.Place)}
			line.Points += fmt.Sprintf("%g,%g ", d.X, d.Y)
			line.Dots = append(line.Dots, d)
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}
