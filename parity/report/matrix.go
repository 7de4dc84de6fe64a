package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"samebits/parity/gate"
	"samebits/parity/matrix"
	"samebits/parity/result"
)

// MatrixText writes a table of many results for a terminal, and what is wrong with those that are not good.
func MatrixText(w io.Writer, t matrix.Table) error {
	var b strings.Builder
	columns := Columns(t)
	lines := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range columns {
		fmt.Fprintf(lines, "%s\t", strings.ToUpper(c.Title))
	}
	precisions := t.Precisions()
	fmt.Fprintln(lines, strings.ToUpper(strings.Join(precisions, "\t")))
	t.Rows(func(row matrix.Row, cells map[string]matrix.Cell) {
		for _, c := range columns {
			fmt.Fprintf(lines, "%s\t", c.Value(row))
		}
		fmt.Fprintln(lines, strings.Join(verdicts(cells, precisions), "\t"))
	})
	_ = lines.Flush() // a strings.Builder never fails
	for _, total := range t.Totals {
		fmt.Fprintln(&b, totalText(total))
	}
	if hasRatios(t) {
		b.WriteString("Beside a verdict: the time of native's graph as a part of PyTorch's.\n")
	}
	if line := memoryText(t); line != "" {
		b.WriteString(line + ".\n")
	}
	for _, c := range t.Cells {
		if !c.Good() {
			fmt.Fprintf(&b, "%s: %s %s: %s\n  again: %s\n", cellName(c), c.Verdict, c.Reason, c.Summary, c.Reproduce)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// MatrixMarkdown writes the same as a page.
func MatrixMarkdown(w io.Writer, t matrix.Table) error {
	var b strings.Builder
	b.WriteString("# The matrix\n\nMade by `parity matrix` from the results of `parity verify`; docs/results.md explains the verdicts.")
	if hasRatios(t) {
		b.WriteString(" Beside a\nverdict stands the time of native's graph as a part of PyTorch's.")
	}
	b.WriteString("\n\n")
	for _, total := range t.Totals {
		fmt.Fprintf(&b, "- %s\n", totalText(total))
	}
	if line := memoryText(t); line != "" {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	b.WriteString("\n")
	columns, precisions := Columns(t), t.Precisions()
	var titles, values []string
	for _, c := range columns {
		titles = append(titles, c.Title)
	}
	titles = append(titles, precisions...)
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
	t.Rows(func(row matrix.Row, cells map[string]matrix.Cell) {
		values = values[:0]
		for _, c := range columns {
			values = append(values, c.Value(row))
		}
		values = append(values, verdicts(cells, precisions)...)
		fmt.Fprintf(&b, "| %s |\n", strings.Join(values, " | "))
	})
	for i, c := range slices.DeleteFunc(slices.Clone(t.Cells), matrix.Cell.Good) {
		if i == 0 {
			b.WriteString("\n## Not good\n\n")
		}
		fmt.Fprintf(&b, "- %s: %s `%s`: %s. Again: `%s`\n", cellName(c), c.Verdict, c.Reason, escape(c.Summary), c.Reproduce)
	}
	for i, e := range t.Environments {
		if i == 0 {
			b.WriteString("\n## Where\n\n")
		}
		fmt.Fprintf(&b, "- %d cells: %s\n", e.Cells, environment(e.Settings))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escape keeps text from being taken for Markdown.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "\n", " ").Replace(text)
}

// Column is what the rows of a table say before their verdicts.
type Column struct {
	Title string
	Value func(matrix.Row) string
}

// Columns leaves those out in which all rows are as usual.
func Columns(t matrix.Table) []Column {
	all := []struct {
		Column
		usual string
	}{
		{Column{"mode", func(r matrix.Row) string { return r.Mode }}, gate.Predict},
		{Column{"task", func(r matrix.Row) string { return r.Task }}, ""},
		{Column{"family", func(r matrix.Row) string { return r.Family }}, ""},
		{Column{"size", func(r matrix.Row) string { return r.Size }}, ""},
		{Column{"imgsz", func(r matrix.Row) string { return fmt.Sprint(r.ImgSize) }}, ""},
		{Column{"batch", func(r matrix.Row) string { return fmt.Sprint(r.Batch) }}, ""},
		{Column{"seed", func(r matrix.Row) string { return fmt.Sprint(r.Seed) }}, "0"},
		{Column{"profile", func(r matrix.Row) string { return r.Profile }}, "exact-1"},
		{Column{"device", func(r matrix.Row) string { return r.Device }}, "cuda"},
	}
	var columns []Column
	for _, c := range all {
		unusual := slices.ContainsFunc(t.Cells, func(cell matrix.Cell) bool { return c.Value(cell.Row) != c.usual })
		if c.usual == "" || unusual {
			columns = append(columns, c.Column)
		}
	}
	return columns
}

// verdicts gives a row's verdicts, each with its ratio of times.
func verdicts(cells map[string]matrix.Cell, precisions []string) []string {
	var all []string
	for _, p := range precisions {
		c, there := cells[p]
		switch {
		case !there:
			all = append(all, "-")
		case c.Ratio() > 0:
			all = append(all, fmt.Sprintf("%s %.2f", c.Verdict, c.Ratio()))
		default:
			all = append(all, string(c.Verdict))
		}
	}
	return all
}

func hasRatios(t matrix.Table) bool {
	return slices.ContainsFunc(t.Cells, func(c matrix.Cell) bool { return c.Ratio() > 0 })
}

// Totals writes a line for each mode and precision.
func Totals(t matrix.Table) []string {
	var lines []string
	for _, total := range t.Totals {
		lines = append(lines, totalText(total))
	}
	return lines
}

// memoryText says in how many cells native's graph takes no more device memory than PyTorch's, and where it takes most.
func memoryText(t matrix.Table) string {
	counted, within := 0, 0
	var most matrix.Cell
	for _, c := range t.Cells {
		if ratio := c.MemoryRatio(); ratio > 0 {
			counted++
			if ratio <= 1 {
				within++
			}
			if ratio > most.MemoryRatio() {
				most = c
			}
		}
	}
	if counted == 0 {
		return ""
	}
	return fmt.Sprintf("Native's graph takes no more device memory than PyTorch's in %d of %d cells; at most it takes %.3f of it, in %s", within, counted,
		most.MemoryRatio(), cellName(most))
}

func totalText(total matrix.Total) string {
	name := total.Precision
	if total.Mode == gate.Train {
		name = "training in " + name
	}
	var parts []string
	for _, v := range []result.Verdict{result.Exact, result.Consistent, result.Passed, result.Differs, result.EagerNoise, result.Refused, result.Broken} {
		n := total.Verdicts[v]
		switch {
		case n > 0 && len(parts) == 0:
			parts = append(parts, fmt.Sprintf("%d of %d %s", n, total.Cells, v))
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return name + ": " + strings.Join(parts, ", ")
}

func cellName(c matrix.Cell) string {
	return Title(result.Result{Family: c.Family, Size: c.Size, Task: c.Task, Mode: c.Mode, ImgSize: c.ImgSize, Batch: c.Batch,
		Precision: c.Precision, Device: c.Device})
}
