package benchpage

import (
	"fmt"
	"math"
	"slices"

	"samebits/bridge/arm"
	"samebits/parity/bench"
	"samebits/parity/page"
)

// dotPlot has a row a cell, and in it a mark for each arm.
type dotPlot struct {
	page.Frame
	One  float64 // where the ratio is 1
	Rows []dotRow
}

type dotRow struct {
	Y         float64
	Label     string
	Link      string
	Precision string
	Dots      []dot
}

type dot struct {
	page.Series
	X, Y float64
	Text string
}

// manyRows are more than can be seen at once: the axis is labelled on top, too.
const manyRows = 25

// ratioTicks are where a logarithmic axis of ratios has its marks.
var ratioTicks = []float64{0.05, 0.1, 0.2, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 50}

// ratioOf gives a cell's ratio for an arm; 0: it has none.
type ratioOf func(c *bench.Cell, name string) float64

// stepPlot shows the arms' times as parts of PyTorch's graph's, or of its eager steps' where there is no graph.
func stepPlot(r *bench.Report) *dotPlot {
	base := arm.ReferenceGraph
	if !slices.Contains(r.Arms, base) {
		base = arm.ReferenceEager
	}
	names := slices.DeleteFunc(slices.Clone(r.Arms), func(name string) bool { return name == base })
	return newDotPlot(r, names, fmt.Sprintf("Step time as a part of %s's", base),
		fmt.Sprintf("Medians of all steps; left of 1 is faster than %s. The scale is logarithmic.", base),
		func(c *bench.Cell, name string) float64 { return c.StepRatio(name, base) })
}

// memoryPlot shows the peaks of native's device memory as parts of PyTorch's.
func memoryPlot(r *bench.Report) *dotPlot {
	pairs := map[string]string{arm.NativeGraph: arm.ReferenceGraph, arm.NativeEager: arm.ReferenceEager}
	return newDotPlot(r, []string{arm.NativeEager, arm.NativeGraph}, "Peak device memory as a part of PyTorch's",
		"native-graph beside reference-graph, native-eager beside reference-eager: what is allocated, not what PyTorch reserves; left of 1 is less. The scale is logarithmic.",
		func(c *bench.Cell, name string) float64 { return c.MemoryRatio(name, pairs[name]) })
}

// newDotPlot sorts cells by the last of the arms; nil: there is nothing to show.
func newDotPlot(r *bench.Report, names []string, title, description string, of ratioOf) *dotPlot {
	type entry struct {
		cell   *bench.Cell
		number int
		key    float64
	}
	var entries []entry
	low, high := 0.8, 1.25
	for i := range r.Cells {
		e := entry{&r.Cells[i], i, math.Inf(1)}
		found := false
		for _, name := range names {
			if x := of(e.cell, name); x > 0 {
				low, high, e.key, found = min(low, x/1.1), max(high, x*1.1), x, true
			}
		}
		if found {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return 0
	})
	at := page.Logarithmic(low, high)
	p := &dotPlot{Frame: page.NewFrame(title, description, len(entries), page.RowHeight), One: page.Round(at(1))}
	top := float64(page.Margin / 2)
	if len(entries) > manyRows {
		p.TopLabels, top = 16, 30
		p.Bottom, p.Height = p.Bottom+top, p.Height+top
	}
	for _, x := range ratioTicks {
		if x >= low && x <= high {
			p.Ticks = append(p.Ticks, page.Tick{X: page.Round(at(x)), Label: fmt.Sprintf("%g", x)})
		}
	}
	for i, e := range entries {
		row := dotRow{Y: top + (float64(i)+0.5)*page.RowHeight, Label: e.cell.Name(), Link: fmt.Sprintf("#cell-%d", e.number+1), Precision: e.cell.Precision}
		for _, name := range names {
			if x := of(e.cell, name); x > 0 {
				row.Dots = append(row.Dots, dot{page.SeriesOf(name), page.Round(at(x)), row.Y, fmt.Sprintf("%s, %s: %.3f", e.cell.Name(), name, x)})
			}
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}
