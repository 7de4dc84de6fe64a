package page

import (
	"math"
)

// The plots' measures, in units of their SVGs.
const (
	PlotWidth  = 960
	LabelWidth = 300
	Margin     = 24
	EndWidth   = 130 // of what is written behind bars
	AxisHeight = 34
	RowHeight  = 20
)

// Scale brings a value to its place on the horizontal axis.
type Scale func(x float64) float64

// Linear leaves room for what is written behind bars.
func Linear(high float64) Scale {
	return func(x float64) float64 { return LabelWidth + x/high*(PlotWidth-LabelWidth-EndWidth) }
}

// Logarithmic shows ratios.
func Logarithmic(low, high float64) Scale {
	return func(x float64) float64 {
		return LabelWidth + (math.Log(x)-math.Log(low))/(math.Log(high)-math.Log(low))*(PlotWidth-LabelWidth-Margin)
	}
}

// Tick is a mark on an axis.
type Tick struct {
	X     float64
	Label string
}

// Frame is what all plots have.
type Frame struct {
	Width, Height, Bottom float64
	Left, LabelX          float64
	Ticks                 []Tick
	TopLabels             float64 // where the ticks' labels stand once more; 0: nowhere
	Title, Description    string
}

// NewFrame is that of a plot with so many rows, each so high.
func NewFrame(title, description string, rows int, height float64) Frame {
	bottom := float64(rows)*height + Margin/2
	return Frame{Width: PlotWidth, Height: bottom + AxisHeight, Bottom: bottom, Left: LabelWidth, LabelX: LabelWidth - 10, Title: title, Description: description}
}

// Round keeps coordinates short.
func Round(x float64) float64 { return math.Round(x*10) / 10 }

// NiceTicks are multiples of 1, 2 or 5 times a power of ten from 0 to high. What no float can divide has none.
func NiceTicks(high float64, at Scale, label func(float64) string) []Tick {
	if !(high > 1e-300) || high > 1e300 {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{0.1, 0.2, 0.5, 1} {
		if high/(step*part) <= 8 {
			step *= part
			break
		}
	}
	var ticks []Tick
	for i := 0; float64(i)*step <= high*(1+1e-9) && i < 20; i++ {
		x := float64(i) * step
		ticks = append(ticks, Tick{Round(at(x)), label(x)})
	}
	return ticks
}
