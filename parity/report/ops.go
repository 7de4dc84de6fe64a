package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"samebits/parity/ops"
)

// mostShown is how many failing signatures of one operation are shown; JSON has all.
const mostShown = 3

// Ops writes what a comparison of operations found: a table, what failed first, then what is wrong with it.
func Ops(w io.Writer, r *ops.Report) error {
	var b strings.Builder
	opsTable(&b, r)
	shown := map[string]int{}
	for _, row := range r.Operations {
		for i := range r.Findings {
			f := &r.Findings[i]
			if f.Operation != row.Operation || f.Outcome != ops.Differs && f.Outcome != ops.Broken {
				continue
			}
			if shown[f.Operation]++; shown[f.Operation] <= mostShown {
				opsFinding(&b, f)
			}
		}
		if n := shown[row.Operation] - mostShown; n > 0 {
			fmt.Fprintf(&b, "\n%s: %d more; --json has all of them\n", row.Operation, n)
		}
	}
	reasons(&b, r, ops.Refused)
	reasons(&b, r, ops.Skipped)
	fmt.Fprintf(&b, "\n%s\n", opsVerdict(r))
	if line := environment(r.Environment); line != "" {
		fmt.Fprintf(&b, "on %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// opsTable leaves out operations that are skipped altogether: views, as a rule.
func opsTable(b *strings.Builder, r *ops.Report) {
	total := r.Total()
	rows := slices.DeleteFunc(slices.Clone(r.Operations), func(row ops.Row) bool { return row.Skipped == row.Signatures })
	columns := []struct {
		head string
		of   func(ops.Row) int
		left bool // out of the table
	}{
		{"SIGNATURES", func(r ops.Row) int { return r.Signatures }, false},
		{"COMPARED", func(r ops.Row) int { return r.Compared }, false},
		{"EXACT", func(r ops.Row) int { return r.Exact }, false},
		{"CONSISTENT", func(r ops.Row) int { return r.Consistent }, total.Consistent == 0},
		{"DIFFERING", func(r ops.Row) int { return r.Differing }, false},
		{"REFUSED", func(r ops.Row) int { return r.Refused }, false},
		{"BROKEN", func(r ops.Row) int { return r.Broken }, total.Broken == 0},
		{"SKIPPED", func(r ops.Row) int { return r.Skipped }, false},
	}
	width := len("OPERATION")
	for _, row := range rows {
		width = max(width, len(row.Operation))
	}
	line := func(first string, cell func(i int) any) {
		fmt.Fprintf(b, "%-*s", width, first)
		for i, c := range columns {
			if !c.left {
				fmt.Fprintf(b, "  %*v", len(c.head), cell(i))
			}
		}
		b.WriteByte('\n')
	}
	line("OPERATION", func(i int) any { return columns[i].head })
	for _, row := range append(rows, total) {
		line(row.Operation, func(i int) any { return columns[i].of(row) })
	}
}

func opsFinding(b *strings.Builder, f *ops.Finding) {
	fmt.Fprintf(b, "\n%s %s\n  %s\n", f.Outcome, f.ID, f.Signature)
	calls := many(f.Calls, "call") + " in " + many(len(f.Recordings), "recording")
	if f.Module != "" || f.Source != "" {
		calls += ", first in " + strings.TrimSpace(f.Module+" "+f.Source)
	}
	fmt.Fprintf(b, "  %s\n", calls)
	if f.Outcome == ops.Broken {
		fmt.Fprintf(b, "  %s: %s\n", f.Reason, f.Detail)
	}
	for _, d := range f.Differences {
		fmt.Fprintf(b, "  %v\n    first at %v: PyTorch %s, native %s\n", d, d.At, d.Reference, d.Native)
		for _, e := range d.Operands {
			fmt.Fprintf(b, "      %s there: %s\n", e.Argument, e.Value)
		}
	}
	fmt.Fprintf(b, "  again: %s\n", f.Reproduce)
}

func many(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// reasons lists why signatures were refused or skipped: a line a reason, and of refusals a line an operation, too.
func reasons(b *strings.Builder, r *ops.Report, outcome ops.Outcome) {
	count, first := map[string]int{}, map[string]*ops.Finding{}
	var order []string
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Outcome != outcome {
			continue
		}
		key := f.Reason
		if outcome == ops.Refused || f.Detail != "" && strings.HasPrefix(f.Detail, "PyTorch: ") {
			key = f.Operation + " " + f.Reason
		}
		if count[key]++; count[key] == 1 {
			order, first[key] = append(order, key), f
		}
	}
	slices.SortStableFunc(order, func(x, y string) int { return count[y] - count[x] })
	for i, key := range order {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "%s: %d %s: %s\n", outcome, count[key], key, first[key].Detail)
	}
}

// opsVerdict is the last line.
func opsVerdict(r *ops.Report) string {
	total := r.Total()
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{total.Exact, "exact"}, {total.Consistent, "consistent"}, {total.Differing, "differ"}, {total.Refused, "refused"},
		{total.Broken, "broken"}, {total.Skipped, "skipped"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing to compare"}
	}
	kinds := make([]string, len(r.Values))
	for i, k := range r.Values {
		kinds[i] = string(k)
	}
	return fmt.Sprintf("%s of %s: %s; %s values, seed %d, on %s, %.0f s", many(total.Signatures, "signature"), many(len(r.Operations), "operation"),
		strings.Join(parts, ", "), strings.Join(kinds, ", "), r.Seed, r.Device, r.Seconds)
}
