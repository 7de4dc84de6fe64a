// Package verifypage writes the results of verifications as one HTML page: the matrix of all cells, and of each cell its
// gates, what differs, times, memory, digests, environment, and the commands that show it again. The page needs no network,
// no script to be read, and nothing beside the file.
package verifypage

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"samebits/parity/gate"
	"samebits/parity/matrix"
	"samebits/parity/page"
	"samebits/parity/report"
	"samebits/parity/result"
)

//go:embed page.html cell.html plots.html
var files embed.FS

//go:embed style.css
var style string

//go:embed script.js
var script string

// Options are what a page says beside the results.
type Options struct {
	// Command makes the page again; empty: it is not said.
	Command string
	// Flag gives what a certificate says of a cell; nil: there is none.
	Flag func(result.Result) *Flag
}

// document is what the template shows.
type document struct {
	page.Head
	Command      string
	Tiles        []tile
	Totals       []string
	Filters      []filter
	Table        table
	Cells        []cellView
	Environments environments
	Gates        []gateText
}

// tile is a figure over all cells.
type tile struct {
	Value, What, Detail string
	Class               string // good, bad or none
}

// filter chooses cells by one of their words.
type filter struct {
	Name, Label string
	Words       []string
}

var templates = template.Must(page.Templates(template.FuncMap{
	"count": thousands, "ticks": ticks,
}).ParseFS(files, "*.html"))

// Write writes the page of results. It is the same for the same results, in whatever order they come.
func Write(w io.Writer, results []result.Result, o Options) error {
	all, err := normal(results)
	if err != nil {
		return err
	}
	d := document{Command: o.Command, Table: newTable(all)}
	cells := "cells"
	if len(all) == 1 {
		cells = "cell"
	}
	d.Head = page.NewHead(fmt.Sprintf("parity verify: %d %s", len(all), cells), style, script)
	d.Environments = newEnvironments(all)
	for i := range all {
		var flag *Flag
		if o.Flag != nil {
			flag = o.Flag(all[i])
		}
		d.Cells = append(d.Cells, d.newCell(&all[i], i, flag))
		d.Table.add(i, &d.Cells[i])
	}
	d.sumUp(all)
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "page.html", d); err != nil {
		return err
	}
	_, err = io.WriteString(w, clean(b.String()))
	return err
}

// normal gives results in the order of a matrix, all figures as a file has them, whether they come from one or not.
func normal(results []result.Result) ([]result.Result, error) {
	type entry struct {
		result.Result
		line []byte
	}
	entries := make([]entry, len(results))
	for i, r := range results {
		data, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		entries[i].line = data
		if err := json.Unmarshal(data, &entries[i].Result); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { // several of one cell by what they say
		return cmp.Or(matrix.Compare(a.Result, b.Result), bytes.Compare(a.line, b.line))
	})
	all := make([]result.Result, len(entries))
	for i := range entries {
		all[i] = entries[i].Result
	}
	return all, nil
}

// clean takes out what may not stand in HTML, and what makes text look like another: plugins' last lines may have anything.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c < ' ' && c != '\n' && c != '\t', c >= 0x7F && c < 0xA0, // control characters
			c >= 0x202A && c <= 0x202E, c >= 0x2066 && c <= 0x2069, c == 0x200E, c == 0x200F, c == 0x061C, // of direction
			c >= 0xFDD0 && c <= 0xFDEF, c&0xFFFE == 0xFFFE: // of nobody
			return utf8.RuneError
		}
		return c
	}, s)
}

// sumUp fills in what is said of all cells.
func (d *document) sumUp(all []result.Result) {
	t := matrix.NewTable(all)
	d.Totals = report.Totals(t)
	d.Tiles = tiles(t, d.Cells)
	of := func(name, label string, word func(c *cellView) string) {
		f := filter{Name: name, Label: label}
		for i := range d.Cells {
			if w := word(&d.Cells[i]); !slices.Contains(f.Words, w) {
				f.Words = append(f.Words, w)
			}
		}
		if len(f.Words) > 1 {
			d.Filters = append(d.Filters, f)
		}
	}
	of("verdict", "Verdict", func(c *cellView) string { return string(c.Verdict) })
	of("precision", "Precision", func(c *cellView) string { return c.Precision })
	of("mode", "Mode", func(c *cellView) string { return c.Mode })
	of("task", "Task", func(c *cellView) string { return c.Task })
	ids := map[gate.ID]bool{}
	for _, r := range all {
		for id := range r.Gates {
			ids[id] = true
		}
	}
	d.Gates = gateTexts(ids)
}

// tiles are the figures on top.
func tiles(t matrix.Table, cells []cellView) []tile {
	good, certified := 0, 0
	for i := range cells {
		if cells[i].Verdict.Exit() == result.ExitExact {
			good++
		}
		if cells[i].Flag != nil {
			certified++
		}
	}
	all := []tile{{Value: fmt.Sprintf("%d of %d", good, len(cells)), What: "cells are exact, or consistent on the host", Class: class(good == len(cells))}}
	if steps := spreadOf(t.Cells, matrix.Cell.Ratio); steps.n > 0 {
		all = append(all, tile{fmt.Sprintf("%.3f", steps.geomean()), "step time of native's graph as a part of PyTorch's", steps.String(), class(steps.geomean() <= 1)})
	}
	if memory := spreadOf(t.Cells, matrix.Cell.MemoryRatio); memory.n > 0 {
		all = append(all, tile{fmt.Sprintf("%d of %d", memory.within, memory.n), "cells in which native's graph takes no more device memory than PyTorch's",
			"as a part of PyTorch's: " + memory.String(), class(memory.within == memory.n)})
	}
	if certified > 0 {
		all = append(all, tile{Value: fmt.Sprint(certified), What: "cells have a certificate for the environment of their result"})
	}
	return all
}

func class(good bool) string {
	if good {
		return "good"
	}
	return "bad"
}
