package certificate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"samebits/bridge/certificate"
	"samebits/bridge/diag"
)

// Flag says whether a cell SUPPORTS_CUDA_GRAPH, and why not.
type Flag struct {
	certificate.Cell
	Supports bool     `json:"supports_cuda_graph"`
	Reason   string   `json:"reason,omitempty"` // the first, where it is not supported
	Why      []string `json:"why,omitempty"`
	File     string   `json:"file,omitempty"` // the certificate
	Expires  string   `json:"expires,omitempty"`
}

// Flags decides of every cell that is asked for, and of every one that a certificate names. There is no other way to a flag
// than Check. Files that are no certificates of anybody known are given as problems, by their paths.
func Flags(files []certificate.File, cells []certificate.Cell, q certificate.Question) ([]Flag, []diag.Problem) {
	by := map[certificate.Cell]Flag{}
	var strangers []diag.Problem
	for _, file := range files {
		c, err := certificate.Check(file.Data, q)
		problems, _ := diag.Of(err)
		if c == nil {
			for _, p := range problems {
				p.Path = strings.TrimSuffix(file.Path+": "+p.Path, ": ")
				strangers = append(strangers, p)
			}
			continue
		}
		f := Flag{Cell: c.Predicate.Cell, Supports: err == nil, File: file.Path, Expires: certificate.Day(c.Predicate.Expires)}
		for i, p := range problems {
			if i == 0 {
				f.Reason = p.Reason
			}
			f.Why = append(f.Why, p.Reason+": "+p.Summary)
		}
		// Several may be of one cell: of two engines, say. One that is good is enough.
		if before, there := by[f.Cell]; !there || f.Supports && !before.Supports {
			by[f.Cell] = f
		}
	}
	for _, cell := range cells {
		if _, there := by[cell]; !there {
			by[cell] = Flag{Cell: cell, Reason: certificate.None, Why: []string{certificate.None + ": nobody certified it"}}
		}
	}
	flags := slices.Collect(maps.Values(by))
	slices.SortFunc(flags, func(a, b Flag) int { return strings.Compare(order(a.Cell), order(b.Cell)) })
	return flags, strangers
}

func order(c certificate.Cell) string {
	return strings.Join([]string{c.Task, c.Family, c.Size, fmt.Sprintf("%08d %08d", c.ImgSize, c.Batch), c.Mode, c.Precision}, "\x00")
}

// FlagsPage writes goldens/FLAGS.md: the certified cells of each environment that certificates are for. Here is not asked
// for: it says what the flag is in those environments, and until when, so that the page does not change with the day.
func FlagsPage(w io.Writer, files []certificate.File, trust certificate.Trust) error {
	environments := map[string][]Flag{}
	for _, file := range files {
		c, err := certificate.CheckWhenMade(file.Data, trust)
		if err != nil {
			continue // it sets no flag
		}
		p := c.Predicate
		where := fmt.Sprintf("profile %s, %s", p.Profile, p.Key.WithoutRecording().Text())
		environments[where] = append(environments[where], Flag{Cell: p.Cell, Expires: certificate.Day(p.Expires), File: p.Key[certificate.RecordingKey]})
	}
	var b strings.Builder
	b.WriteString("# Flags\n\nThe cells that have `SUPPORTS_CUDA_GRAPH`, by the environment in which they have it. `parity status --write-flags` makes this page of\n" +
		"`goldens/certificates`, and a test compares them. Every cell that is not here, and every other environment, has the flag false.\n")
	if len(environments) == 0 {
		b.WriteString("\nNo cell is certified.\n")
	}
	for i, where := range slices.Sorted(maps.Keys(environments)) {
		fmt.Fprintf(&b, "\n## Environment %d\n\n%s\n\n| task | family | size | imgsz | batch | mode | precision | recording | until |\n|%s\n",
			i+1, where, strings.Repeat("---|", 9))
		flags := environments[where]
		slices.SortFunc(flags, func(a, b Flag) int { return strings.Compare(order(a.Cell), order(b.Cell)) })
		for _, f := range flags {
			fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s | %s | `%s` | %s |\n", f.Task, f.Family, f.Size, f.ImgSize, f.Batch, f.Mode,
				f.Precision, certificate.Short(f.File), f.Expires)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
