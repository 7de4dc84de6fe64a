package verifypage

import (
	"fmt"
	"math"

	"samebits/parity/page"
	"samebits/parity/report"
	"samebits/parity/result"
)

// memoryPlot shows what the arms took of the device.
type memoryPlot struct {
	page.Frame
	WeightsX float64 // where the size of the weights is; 0: it is not known
	Rows     []memoryRow
}

type memoryRow struct {
	page.Series
	Y, Top, Size  float64
	Width         float64 // of the peak
	Arena         float64 // width of the arena, at the right end of the peak
	ArenaX        float64
	ReservedX     float64 // 0: there is none
	EndX          float64
	Text, EndText string
}

func newMemoryPlot(r *result.Result) *memoryPlot {
	high, rows := float64(r.Weights), 0
	for _, name := range r.Arms {
		if m := r.Memory[name]; m.PeakBytes > 0 {
			high, rows = max(high, float64(m.PeakBytes), float64(m.ReservedBytes)), rows+1
		}
	}
	if rows == 0 {
		return nil
	}
	unit, name := float64(1<<20), "MiB"
	if high >= 10<<30 {
		unit, name = 1<<30, "GiB"
	}
	scale := page.Linear(high / unit)
	at := func(bytes int64) float64 { return page.Round(scale(float64(bytes) / unit)) }
	p := &memoryPlot{Frame: page.NewFrame("Device memory", "The most that each arm had allocated at once; of native arms the arena is marked in it. A thin line is what PyTorch's allocator held, the dashed line is the size of the weights.",
		rows, timeRowHeight)}
	p.Ticks = page.NiceTicks(high/unit, scale, func(x float64) string { return fmt.Sprintf("%g %s", math.Round(x*1e6)/1e6, name) })
	if r.Weights > 0 {
		p.WeightsX = at(r.Weights)
	}
	for _, name := range r.Arms {
		m := r.Memory[name]
		if m.PeakBytes <= 0 {
			continue
		}
		y := page.Margin/2 + (float64(len(p.Rows))+0.5)*timeRowHeight
		row := memoryRow{Series: page.SeriesOf(name), Y: y, Top: y - 9, Size: 18, EndText: report.Size(m.PeakBytes)}
		end := at(m.PeakBytes)
		row.Width = max(page.Round(end-page.LabelWidth), 0.5)
		row.Text = fmt.Sprintf("%s: peak %s", name, report.Size(m.PeakBytes))
		if m.ArenaBytes > 0 && m.ArenaBytes <= m.PeakBytes {
			row.ArenaX = at(m.PeakBytes - m.ArenaBytes)
			row.Arena = max(page.Round(end-row.ArenaX), 0.5)
			row.Text += ", arena " + report.Size(m.ArenaBytes)
		}
		row.EndX = end + 8
		if m.ReservedBytes > 0 {
			row.ReservedX = at(m.ReservedBytes)
			row.EndX = max(row.EndX, row.ReservedX+8)
			row.Text += ", reserved " + report.Size(m.ReservedBytes)
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}
