package benchpage

import (
	"math"
)

// The plots' measures, in units of their SVGs.
const (
	plotWidth  = 960
	labelWidth = 300
	margin     = 24
	endWidth   = 130 // of what is written behind bars
	axisHeight = 34
	rowHeight  = 20
)

// scale brings a value to its place on the horizontal axis.
type scale func(x float64) float64

// linear leaves room for what is written behind bars.
func linear(high float64) scale {
	return func(x float64) float64 { return labelWidth + x/high*(plotWidth-labelWidth-endWidth) }
}

func logarithmic(low, high float64) scale {
	return func(x float64) float64 {
		return labelWidth + (math.Log(x)-math.Log(low))/(math.Log(high)-math.Log(low))*(plotWidth-labelWidth-margin)
	}
}

// tick is a mark on an axis.
type tick struct {
	X     float64
	Label string
}

// frame is what all plots have.
type frame struct {
	Width, Height, Bottom float64
	Left, LabelX          float64
	Ticks                 []tick
	TopLabels             float64 // where the ticks' labels stand once more; 0: nowhere
	Title, Description    string
}

func newFrame(title, description string, rows int, height float64) frame {
	bottom := float64(rows)*height + margin/2
	return frame{Width: plotWidth, Height: bottom + axisHeight, Bottom: bottom, Left: labelWidth, LabelX: labelWidth - 10, Title: title, Description: description}
}

// round keeps coordinates short.
func round(x float64) float64 { return math.Round(x*10) / 10 }

// niceTicks are multiples of 1, 2 or 5 times a power of ten from 0 to high.
func niceTicks(high float64, at scale, label func(float64) string) []tick {
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{0.1, 0.2, 0.5, 1} {
		if high/(step*part) <= 8 {
			step *= part
			break
		}
	}
	var ticks []tick
	for i := 0; float64(i)*step <= high*(1+1e-9); i++ {
		x := float64(i) * step
		ticks = append(ticks, tick{round(at(x)), label(x)})
	}
	return ticks
}
