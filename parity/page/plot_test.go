package page

import (
	"fmt"
	"math"
	"testing"
)

func TestTicks(t *testing.T) {
	for high, want := range map[float64]string{1: "[0 0.2 0.4 0.6 0.8 1]", 14.1: "[0 2 4 6 8 10 12 14]", 0.031: "[0 0.005 0.01 0.015 0.02 0.025 0.03]", 8000: "[0 1000 2000 3000 4000 5000 6000 7000 8000]"} {
		var labels []string
		for _, tick := range NiceTicks(high, Linear(high), func(x float64) string { return fmt.Sprintf("%g", math.Round(x*1e6)/1e6) }) {
			labels = append(labels, tick.Label)
		}
		if got := fmt.Sprint(labels); got != want {
			t.Errorf("%v: %v", high, got)
		}
	}
}

// A file may hold any number: none may draw for ever, or far away.
func TestTicksOfAnything(t *testing.T) {
	for _, high := range []float64{0, -1, 5e-324, 1e-310, 1e-299, 1, 1e300, math.MaxFloat64, math.Inf(1), math.NaN()} {
		ticks := NiceTicks(high, Linear(high), func(float64) string { return "" })
		if len(ticks) > 12 {
			t.Errorf("%v: %d ticks", high, len(ticks))
		}
		for _, tick := range ticks {
			if !(tick.X >= LabelWidth && tick.X <= PlotWidth) {
				t.Errorf("%v: a tick at %v", high, tick.X)
			}
		}
	}
}

// The ends of an axis lie at its ends, and one in the middle between them.
func TestScales(t *testing.T) {
	for _, c := range []struct {
		name           string
		at             Scale
		low, mid, high float64
		left, right    float64
	}{
		{"linear", Linear(8), 0, 4, 8, LabelWidth, PlotWidth - EndWidth},
		{"logarithmic", Logarithmic(0.25, 4), 0.25, 1, 4, LabelWidth, PlotWidth - Margin},
	} {
		if l, m, r := c.at(c.low), c.at(c.mid), c.at(c.high); l != c.left || r != c.right || math.Abs(m-(l+r)/2) > 1e-9 {
			t.Errorf("%s: %v, %v, %v", c.name, l, m, r)
		}
	}
	f := NewFrame("title", "description", 3, 20)
	if f.Bottom != 72 || f.Height != 72+AxisHeight || f.Width != PlotWidth || !(f.LabelX < f.Left) {
		t.Errorf("%+v", f)
	}
}
