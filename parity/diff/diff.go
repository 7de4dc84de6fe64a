// Package diff lays two results, or two recordings, side by side.
package diff

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"samebits/parity/gate"
	"samebits/parity/result"
)

// Row is one thing that both sides have, or one of them.
type Row struct {
	Section string `json:"section"` // cell, verdict, gates, digests, environment, timings, memory
	What    string `json:"what"`
	A       string `json:"a"`
	B       string `json:"b"`
	Counts  bool   `json:"counts"` // whether a difference makes the results different
}

// Different reports whether the sides have other things here.
func (r Row) Different() bool { return r.A != r.B }

// Comparison is two results side by side.
type Comparison struct {
	Equal bool  `json:"equal"`
	Rows  []Row `json:"rows"`
}

// Results compares two results. They are equal if cell, verdict, gates and digests are; environment, timings and memory stand
// beside them, for they say why, and never repeat exactly.
func Results(a, b result.Result) Comparison {
	c := &Comparison{Equal: true}
	c.both("cell", cell(a), cell(b), true)
	c.both("verdict", map[string]string{"verdict": string(a.Verdict), "reason": string(a.Reason)},
		map[string]string{"verdict": string(b.Verdict), "reason": string(b.Reason)}, true)
	c.both("gates", gates(a), gates(b), true)
	c.both("digests", digests(a.Digests), digests(b.Digests), true)
	c.both("environment", a.Environment, b.Environment, false)
	c.both("timings", timings(a), timings(b), false)
	c.both("memory", memory(a), memory(b), false)
	return *c
}

func (c *Comparison) both(section string, a, b map[string]string, counts bool) {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		row := Row{section, key, a[key], b[key], counts}
		c.Rows = append(c.Rows, row)
		c.Equal = c.Equal && !(counts && row.Different())
	}
}

func cell(r result.Result) map[string]string {
	return map[string]string{"family": r.Family + "-" + r.Size, "task": r.Task, "mode": r.Mode, "imgsz": fmt.Sprint(r.ImgSize), "batch": fmt.Sprint(r.Batch),
		"precision": r.Precision, "profile": r.Profile, "seed": fmt.Sprint(r.Seed), "device": kind(r.Device), "training": asText(r.Training)}
}

// kind leaves out which GPU it was.
func kind(device string) string {
	name, _, _ := strings.Cut(device, ":")
	return name
}

// asText is JSON on one line, empty for nothing.
func asText(v any) string {
	data, err := json.Marshal(v)
	if err != nil || string(data) == "null" {
		return ""
	}
	return string(data)
}

func gates(r result.Result) map[string]string {
	all := map[string]string{}
	for id, f := range r.Gates {
		all[string(id)] = outcome(f)
		for arm, a := range f.Arms {
			all[string(id)+" "+arm] = outcome(a)
		}
	}
	return all
}

func outcome(f gate.Finding) string {
	return strings.TrimSpace(string(f.Outcome) + " " + string(f.Reason))
}

func digests(d result.Digests) map[string]string {
	all := map[string]string{}
	for what, digest := range map[string]string{"recording": d.Recording, "weights": d.Weights} {
		if digest != "" {
			all[what] = digest
		}
	}
	for probe, inputs := range d.Inputs {
		for name, digest := range inputs {
			all["input "+probe+" "+name] = digest
		}
	}
	for arm, probes := range d.Outputs {
		for probe, outputs := range probes {
			for name, digest := range outputs {
				all[arm+" "+probe+" "+name] = digest
			}
		}
	}
	for arm, steps := range d.Steps {
		for i, digest := range steps {
			all[fmt.Sprintf("%s step %4d", arm, i+1)] = digest
		}
	}
	return all
}

func memory(r result.Result) map[string]string {
	all := map[string]string{}
	for arm, m := range r.Memory {
		all[arm+" peak bytes"] = fmt.Sprint(m.PeakBytes)
	}
	return all
}

func timings(r result.Result) map[string]string {
	all := map[string]string{}
	for arm, t := range r.Timings {
		all[arm+" median"], all[arm+" least"] = fmt.Sprintf("%.3f ms", t.MedianMS), fmt.Sprintf("%.3f ms", t.MinMS)
	}
	return all
}

// short cuts digests to what a person compares.
func short(s string) string {
	switch {
	case s == "":
		return "-"
	case len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "":
		return s[:16]
	case len(s) > 60:
		return s[:57] + "..."
	}
	return s
}

// Write writes a comparison as text: what differs and the times, and of the rest how many rows are the same; all of it if
// everything is wanted.
func (c Comparison) Write(w io.Writer, nameA, nameB string, everything bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\t\tA\tB\n")
	section, same := "", 0
	flush := func() {
		if same > 0 {
			fmt.Fprintf(t, "  %d of %s are the same\t\t\t\n", same, section)
		}
		same = 0
	}
	for _, r := range c.Rows {
		if r.Section != section {
			flush()
			section = r.Section
			fmt.Fprintf(t, "%s\t\t\t\n", section)
		}
		mark := " "
		if r.Different() && r.Counts {
			mark = "*"
		}
		if !r.Different() && !everything && section != "timings" && section != "verdict" {
			same++
			continue
		}
		fmt.Fprintf(t, "%s %s\t\t%s\t%s\n", mark, r.What, short(r.A), short(r.B))
	}
	flush()
	if err := t.Flush(); err != nil {
		return err
	}
	word := "equal: cell, verdict, gates and digests are the same"
	if !c.Equal {
		word = "different: * marks what counts"
	}
	_, err := fmt.Fprintf(w, "A is %s\nB is %s\n%s\n", nameA, nameB, word)
	return err
}
