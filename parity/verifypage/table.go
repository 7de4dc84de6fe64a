package verifypage

import (
	"fmt"

	"samebits/parity/matrix"
	"samebits/parity/report"
	"samebits/parity/result"
)

// table is the matrix: a row for each family, task and size, a column for each precision.
type table struct {
	Columns    []string
	Precisions []string
	Rows       []*tableRow

	cells []matrix.Cell
	value []report.Column
}

type tableRow struct {
	row    matrix.Row
	Values []value
	Marks  []marks // by precision
}

// value is a cell of a table, with what it is sorted by.
type value struct {
	Text, Sort string
	Head       bool // it names the row
}

// marks are the results of one precision: one, unless several machines have verified the cell.
type marks struct {
	Sort  string
	Cells []*cellView
}

func newTable(all []result.Result) table {
	m := matrix.NewTable(all) // in the order of all
	t := table{Precisions: m.Precisions(), cells: m.Cells, value: report.Columns(m)}
	for _, c := range t.value {
		t.Columns = append(t.Columns, c.Title)
	}
	return t
}

// add puts a cell into its row. Cells come in the order of the table.
func (t *table) add(number int, c *cellView) {
	row := t.cells[number].Row
	if n := len(t.Rows); n == 0 || t.Rows[n-1].row != row {
		r := &tableRow{row: row, Marks: make([]marks, len(t.Precisions))}
		for _, column := range t.value {
			text := column.Value(row)
			r.Values = append(r.Values, value{text, text, column.Title == "family"})
		}
		t.Rows = append(t.Rows, r)
	}
	r := t.Rows[len(t.Rows)-1]
	for i, p := range t.Precisions {
		if p == c.Precision {
			r.Marks[i].Cells = append(r.Marks[i].Cells, c)
			r.Marks[i].Sort = fmt.Sprintf("%d.%s", c.Verdict.Exit(), ratioText(c.Ratio))
		}
	}
}

// ratioText writes a ratio; none is empty.
func ratioText(x float64) string {
	if x <= 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", x)
}
