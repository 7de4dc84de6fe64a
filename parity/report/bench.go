package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"samebits/bridge/arm"
	"samebits/parity/bench"
	"samebits/parity/result"
)

// BenchCell writes what was measured of one cell: a line an arm, a line a first prediction, and what is to be borne in mind.
func BenchCell(w io.Writer, c *bench.Cell, device string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s\n", c.Name(), device, c.Outcome)
	benchProblems(&b, "", c.Problems)
	benchArms(&b, c)
	benchFirst(&b, c)
	for _, a := range c.Arms {
		benchProblems(&b, a.Name+" ", a.Problems)
		if a.Outcome == bench.Differs {
			fmt.Fprintf(&b, "  %s gives other bits than eager PyTorch: its times are of another computation; parity verify says where\n", a.Name)
		}
		if a.Note != "" {
			fmt.Fprintf(&b, "  %s: %s\n", a.Name, a.Note)
		}
	}
	for _, f := range c.First {
		benchProblems(&b, "first prediction of "+f.Name+" ", f.Problems)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func benchProblems(b *strings.Builder, of string, problems []result.Problem) {
	for _, p := range problems {
		fmt.Fprintf(b, "  %sproblem %s: %s\n", of, p.Reason, p.Summary)
		if p.Detail != "" {
			fmt.Fprintf(b, "    %s\n", p.Detail)
		}
	}
}

func benchArms(b *strings.Builder, c *bench.Cell) {
	base := BenchBase(c)
	width := longest(c.Arms, func(a bench.Arm) string { return a.Name })
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows := 0
	for i := range c.Arms {
		a := &c.Arms[i]
		if a.Step == nil {
			continue
		}
		if rows == 0 {
			fmt.Fprintf(t, "\tmedian\tleast\tIQR\tsteps\tof %s\tdevice peak\treserved\tprocess on GPU\thost peak\tlaunches\tbits\t\n", base)
		}
		rows++
		ratio := "-"
		if x := c.StepRatio(a.Name, base); x > 0 {
			ratio = fmt.Sprintf("%.3f", x)
		}
		fmt.Fprintf(t, "%-*s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", width, a.Name, Millis(a.Step.MedianMS), Millis(a.Step.MinMS),
			Millis(a.Step.IQRMS), a.Step.Steps, ratio, Size(a.Memory.PeakBytes), Size(a.Memory.ReservedBytes), Size(a.Memory.DeviceBytes),
			Size(a.Memory.MaxRSSBytes), Launches(a), bitsWord(a))
	}
	_ = t.Flush() // a strings.Builder never fails
}

// longest is the width of the longest name: names stand on the left of numbers that stand on the right.
func longest[Item any](items []Item, name func(Item) string) int {
	width := 0
	for _, item := range items {
		width = max(width, len(name(item)))
	}
	return width
}

// BenchBase names the arm that others are compared with: PyTorch's graph, or its eager steps where there is none.
func BenchBase(c *bench.Cell) string {
	if a := c.Arm(arm.ReferenceGraph); a != nil && a.Step != nil {
		return arm.ReferenceGraph
	}
	return arm.ReferenceEager
}

// Launches writes what one step sends to the device.
func Launches(a *bench.Arm) string {
	if a.Launches == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %s", a.Launches, a.LaunchUnit)
}

func bitsWord(a *bench.Arm) string {
	switch {
	case a.Bits == nil:
		return "-"
	case a.Bits.Same:
		return "same"
	}
	return "other"
}

func benchFirst(b *strings.Builder, c *bench.Cell) {
	width := longest(c.First, func(f bench.First) string { return f.Name })
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i := range c.First {
		f := &c.First[i]
		if f.MS == 0 {
			continue
		}
		var stages []string
		for _, s := range f.Stages {
			stages = append(stages, fmt.Sprintf("%s %s", s.Name, Seconds(s.MS)))
		}
		ratio := ""
		if x := c.FirstRatio(f.Name, bench.FirstReference); x > 0 && f.Name != bench.FirstReference {
			ratio = fmt.Sprintf("%.3f", x)
		}
		fmt.Fprintf(t, "first prediction, %-*s\t%s\t%s\thost peak %s\t(%s)\t\n", width, f.Name, Seconds(f.MS), ratio, Size(f.MaxRSS), strings.Join(stages, ", "))
	}
	_ = t.Flush() // a strings.Builder never fails
}

// BenchSummary writes a line a cell and the ratios over all.
func BenchSummary(w io.Writer, r *bench.Report) error {
	var b strings.Builder
	if !r.GPUFigures {
		fmt.Fprintf(&b, "%s\n", bench.HostNote)
	}
	if r.Monitor.Problem != "" {
		fmt.Fprintf(&b, "nobody watched clocks, power and temperature: %s\n", r.Monitor.Problem)
	}
	if len(r.Cells) > 1 {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		width := longest(r.Cells, func(c bench.Cell) string { return c.Name() })
		fmt.Fprintf(t, "%-*s", width, "cell")
		for _, name := range r.Arms {
			fmt.Fprintf(t, "\t%s", name)
		}
		fmt.Fprintf(t, "\tgraph/graph\tmemory\tfirst\t\n")
		for i := range r.Cells {
			c := &r.Cells[i]
			fmt.Fprintf(t, "%-*s", width, c.Name())
			for _, name := range r.Arms {
				fmt.Fprintf(t, "\t%s", stepOf(c, name))
			}
			fmt.Fprintf(t, "\t%s\t%s\t%s\t\n", part(c.StepRatio(arm.NativeGraph, arm.ReferenceGraph)),
				part(c.MemoryRatio(arm.NativeGraph, arm.ReferenceGraph)), part(c.FirstRatio(bench.FirstWarm, bench.FirstReference)))
		}
		_ = t.Flush() // a strings.Builder never fails
	}
	for _, x := range r.Ratios {
		of := x.Precision
		if of == "" {
			of = "all precisions"
		}
		if x.Cells == 1 {
			fmt.Fprintf(&b, "%s, %s: %s is %.3f of %s\n", x.What, of, x.Of, x.Geomean, x.To)
			continue
		}
		fmt.Fprintf(&b, "%s, %s: %s is %.3f of %s (geomean of %d cells; least %.3f, most %.3f: %s)\n", x.What, of, x.Of, x.Geomean, x.To,
			x.Cells, x.Least, x.Most, x.MostOf)
	}
	if line := environment(r.Environment); line != "" {
		fmt.Fprintf(&b, "on %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func stepOf(c *bench.Cell, name string) string {
	a := c.Arm(name)
	switch {
	case a == nil && len(c.Problems) > 0:
		return string(c.Outcome)
	case a == nil:
		return "-"
	case a.Step == nil:
		return string(a.Outcome)
	}
	return Millis(a.Step.MedianMS)
}

func part(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", x)
}

// Millis writes a time of a step.
func Millis(ms float64) string {
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 10:
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.3f ms", ms)
}

// Seconds writes a time of a process.
func Seconds(ms float64) string {
	if ms < 100 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.2f s", ms/1000)
}

// Size writes an amount of memory; none is a dash.
func Size(bytes int64) string {
	switch {
	case bytes == 0:
		return "-"
	case bytes >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 10<<20:
		return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20))
}
