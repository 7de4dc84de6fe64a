package bench

import (
	"cmp"
	"math"
	"slices"

	"samebits/bridge/arm"
)

// Ratio compares two arms over all cells that have figures of both.
type Ratio struct {
	What      string  `json:"what"` // step, device memory, first prediction
	Of        string  `json:"of"`
	To        string  `json:"to"`
	Precision string  `json:"precision"` // empty: of all
	Cells     int     `json:"cells"`
	Geomean   float64 `json:"geomean"`
	Least     float64 `json:"least"`
	Most      float64 `json:"most"`
	MostOf    string  `json:"most_of"` // the cell of Most
}

// What ratios are of.
const (
	StepTime     = "step time"
	DeviceMemory = "peak device memory"
	FirstTime    = "time to the first prediction"
)

// The pairs whose times are compared: first the one that matters most.
var stepPairs = [][2]string{
	{arm.NativeGraph, arm.ReferenceGraph},
	{arm.NativeGraph, arm.ReferenceCompile},
	{arm.NativeGraph, arm.ReferenceEager},
	{arm.NativeEager, arm.ReferenceEager},
	{arm.ReferenceCompile, arm.ReferenceGraph},
}

var memoryPairs = [][2]string{
	{arm.NativeGraph, arm.ReferenceGraph},
	{arm.NativeEager, arm.ReferenceEager},
}

var firstPairs = [][2]string{
	{FirstWarm, FirstReference},
	{FirstCold, FirstReference},
}

// comparable finds an arm whose figures can be compared: one that gave other bits than it claims did another computation.
func (c *Cell) comparable(name string) *Arm {
	a := c.Arm(name)
	if a == nil || a.Outcome == Differs {
		return nil
	}
	return a
}

// StepRatio is the median of one arm as a part of another's; 0 where one is missing.
func (c *Cell) StepRatio(of, to string) float64 {
	a, b := c.comparable(of), c.comparable(to)
	if a == nil || b == nil || a.Step == nil || b.Step == nil {
		return 0
	}
	return quotient(a.Step.MedianMS, b.Step.MedianMS)
}

// MemoryRatio is the peak of device memory of one arm as a part of another's; 0 where one is missing.
func (c *Cell) MemoryRatio(of, to string) float64 {
	a, b := c.comparable(of), c.comparable(to)
	if a == nil || b == nil {
		return 0
	}
	return quotient(float64(a.Memory.PeakBytes), float64(b.Memory.PeakBytes))
}

// FirstRatio is the time of one first prediction as a part of another's; 0 where one is missing.
func (c *Cell) FirstRatio(of, to string) float64 {
	a, b := c.FirstOf(of), c.FirstOf(to)
	if a == nil || b == nil || a.Outcome == Differs || b.Outcome == Differs {
		return 0
	}
	return quotient(a.MS, b.MS)
}

// quotient is 0 where a side is no figure: reports come from files, too.
func quotient(a, b float64) float64 {
	if x := a / b; a > 0 && b > 0 && !math.IsInf(x, 0) {
		return x
	}
	return 0
}

// precisionOrder is the usual one.
var precisionOrder = []string{"fp32", "bf16", "fp16"}

// SumUp makes the ratios of all cells anew: for each precision, and for all where there are several.
func (r *Report) SumUp() {
	precisions := precisionsOf(r.Cells)
	if len(precisions) > 1 {
		precisions = append(precisions, "")
	}
	r.Ratios = []Ratio{}
	for _, kind := range []struct {
		what  string
		pairs [][2]string
		of    func(c *Cell, of, to string) float64
	}{
		{StepTime, stepPairs, (*Cell).StepRatio}, {DeviceMemory, memoryPairs, (*Cell).MemoryRatio}, {FirstTime, firstPairs, (*Cell).FirstRatio},
	} {
		for _, pair := range kind.pairs {
			for _, precision := range precisions {
				ratio := Ratio{What: kind.what, Of: pair[0], To: pair[1], Precision: precision}
				if ratio.over(r.Cells, kind.of) {
					r.Ratios = append(r.Ratios, ratio)
				}
			}
		}
	}
}

// over fills in the figures, and reports whether there are any.
func (r *Ratio) over(cells []Cell, of func(c *Cell, of, to string) float64) bool {
	var all []float64
	var precisions []string
	for i := range cells {
		if r.Precision != "" && cells[i].Precision != r.Precision {
			continue
		}
		x := of(&cells[i], r.Of, r.To)
		if x == 0 {
			continue
		}
		if len(all) == 0 || x > r.Most {
			r.Most, r.MostOf = x, cells[i].Name()
		}
		all = append(all, x)
		if !slices.Contains(precisions, cells[i].Precision) {
			precisions = append(precisions, cells[i].Precision)
		}
	}
	if len(all) == 0 || r.Precision == "" && len(precisions) < 2 { // the one precision has a line of its own
		return false
	}
	r.Cells, r.Geomean, r.Least = len(all), geomean(all), slices.Min(all)
	return true
}

func precisionsOf(cells []Cell) []string {
	var found []string
	for i := range cells {
		if !slices.Contains(found, cells[i].Precision) {
			found = append(found, cells[i].Precision)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int {
		return cmp.Compare(slices.Index(precisionOrder, a), slices.Index(precisionOrder, b))
	})
	return found
}
