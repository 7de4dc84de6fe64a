package matrix

import (
	"cmp"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/result"
)

// TableSchema is the version of the table's JSON.
const TableSchema = 1

// Table sums up many results.
type Table struct {
	Schema int    `json:"schema"`
	Cells  []Cell `json:"cells"`
	// Totals counts verdicts, for each mode and precision.
	Totals []Total `json:"totals"`
	// Environments are the machines that the results come from, each with the number of its cells.
	Environments []Environment `json:"environments"`
}

// Row is what the precisions of a family at one size have in common.
type Row struct {
	Task    string `json:"task"`
	Family  string `json:"family"`
	Size    string `json:"size"`
	ImgSize int64  `json:"imgsz"`
	Batch   int64  `json:"batch"`
	Mode    string `json:"mode"`
	Profile string `json:"profile"`
	Seed    uint64 `json:"seed"`
	Device  string `json:"device"` // cuda, host
}

// Cell is one result.
type Cell struct {
	Row
	Precision string         `json:"precision"`
	Verdict   result.Verdict `json:"verdict"`
	Reason    gate.Reason    `json:"reason,omitempty"`
	Summary   string         `json:"summary"`
	// The medians of a step of the two graph arms, in milliseconds, where both were measured.
	NativeGraph    float64 `json:"native_graph_ms,omitempty"`
	ReferenceGraph float64 `json:"reference_graph_ms,omitempty"`
	// Their peaks of device memory in bytes, where both were counted.
	NativePeak    int64  `json:"native_graph_peak_bytes,omitempty"`
	ReferencePeak int64  `json:"reference_graph_peak_bytes,omitempty"`
	Reproduce     string `json:"reproduce"`
}

// Good reports whether nothing is wrong with the cell.
func (c Cell) Good() bool { return c.Verdict.Exit() == result.ExitExact }

// Ratio is the time of native's graph as a part of PyTorch's; 0 where it was not measured.
func (c Cell) Ratio() float64 {
	if c.ReferenceGraph == 0 {
		return 0
	}
	return c.NativeGraph / c.ReferenceGraph
}

// MemoryRatio is the peak of native's graph as a part of PyTorch's; 0 where it was not counted.
func (c Cell) MemoryRatio() float64 {
	if c.ReferencePeak == 0 {
		return 0
	}
	return float64(c.NativePeak) / float64(c.ReferencePeak)
}

// Total counts the verdicts of one mode and precision.
type Total struct {
	Mode      string                 `json:"mode"`
	Precision string                 `json:"precision"`
	Cells     int                    `json:"cells"`
	Verdicts  map[result.Verdict]int `json:"verdicts"`
}

// Environment is a machine, by what decides bits, with the number of its cells.
type Environment struct {
	Settings map[string]string `json:"settings"`
	Cells    int               `json:"cells"`
}

// Decisive are the keys of an environment that a table has: what decides bits, the engine aside, which changes often.
var Decisive = []string{"gpu", "driver", "torch", "cuda", "cudnn", "cublas", "nvrtc", "host.cpu", "host.compiler"}

var (
	tasks      = []string{"detect", "segment", "pose", "point", "classify", "semantic", "depth", "restore", "matte"}
	precisions = []string{"fp32", "bf16", "fp16"}
	modes      = []string{gate.Predict, gate.Train}
)

// place orders words as lists have them, and others behind.
func place(list []string, word string) int {
	if at := slices.Index(list, word); at >= 0 {
		return at
	}
	return len(list)
}

func compareRows(a, b Row) int {
	return cmp.Or(cmp.Compare(place(modes, a.Mode), place(modes, b.Mode)), cmp.Compare(a.Device, b.Device),
		cmp.Compare(place(tasks, a.Task), place(tasks, b.Task)), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Family, b.Family),
		cmp.Compare(a.Size, b.Size), cmp.Compare(a.ImgSize, b.ImgSize), cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Profile, b.Profile),
		cmp.Compare(a.Seed, b.Seed))
}

// compareCells orders cells by their rows, then by precision.
func compareCells(a, b Cell) int {
	return cmp.Or(compareRows(a.Row, b.Row), cmp.Compare(place(precisions, a.Precision), place(precisions, b.Precision)))
}

// Compare orders results as a table has their cells.
func Compare(a, b result.Result) int { return compareCells(newCell(a), newCell(b)) }

// NewTable sums up results, in an order of its own.
func NewTable(results []result.Result) Table {
	t := Table{Schema: TableSchema, Cells: []Cell{}, Totals: []Total{}}
	for _, r := range results {
		t.Cells = append(t.Cells, newCell(r))
	}
	t.Environments = environments(results)
	slices.SortStableFunc(t.Cells, compareCells)
	for _, c := range t.Cells {
		t.count(c)
	}
	slices.SortStableFunc(t.Totals, func(a, b Total) int {
		return cmp.Or(cmp.Compare(place(modes, a.Mode), place(modes, b.Mode)), cmp.Compare(place(precisions, a.Precision), place(precisions, b.Precision)))
	})
	return t
}

func newCell(r result.Result) Cell {
	device, _, _ := strings.Cut(r.Device, ":")
	c := Cell{Row: Row{r.Task, r.Family, r.Size, r.ImgSize, r.Batch, r.Mode, r.Profile, r.Seed, device}, Precision: r.Precision,
		Verdict: r.Verdict, Reason: r.Reason, Summary: r.Summary, Reproduce: r.Reproduce}
	native, ours := r.Timings[arm.NativeGraph]
	reference, theirs := r.Timings[arm.ReferenceGraph]
	if ours && theirs {
		c.NativeGraph, c.ReferenceGraph = native.MedianMS, reference.MedianMS
	}
	if our, their := r.Memory[arm.NativeGraph].PeakBytes, r.Memory[arm.ReferenceGraph].PeakBytes; our > 0 && their > 0 {
		c.NativePeak, c.ReferencePeak = our, their
	}
	return c
}

// environments counts results for the machines that they come from. Those that say most of theirs come first: what ended early
// must not make two machines one.
func environments(results []result.Result) []Environment {
	var each []map[string]string
	for _, r := range results {
		settings := map[string]string{}
		for _, key := range Decisive {
			if value := r.Environment[key]; value != "" {
				settings[key] = value
			}
		}
		if len(settings) > 0 { // else it broke before anybody could say
			each = append(each, settings)
		}
	}
	slices.SortStableFunc(each, func(a, b map[string]string) int { return cmp.Compare(len(b), len(a)) })
	all := []Environment{}
	for _, settings := range each {
		at := slices.IndexFunc(all, func(e Environment) bool { return sameSettings(e.Settings, settings) })
		if at < 0 {
			at = len(all)
			all = append(all, Environment{Settings: settings})
		}
		all[at].Cells++
	}
	return all
}

// sameSettings leaves out what one side lacks: a cell that ended early has not asked everything.
func sameSettings(a, b map[string]string) bool {
	for key, value := range a {
		if other, both := b[key]; both && other != value {
			return false
		}
	}
	return true
}

func (t *Table) count(c Cell) {
	at := slices.IndexFunc(t.Totals, func(total Total) bool { return total.Mode == c.Mode && total.Precision == c.Precision })
	if at < 0 {
		at = len(t.Totals)
		t.Totals = append(t.Totals, Total{Mode: c.Mode, Precision: c.Precision, Verdicts: map[result.Verdict]int{}})
	}
	t.Totals[at].Cells++
	t.Totals[at].Verdicts[c.Verdict]++
}

// Precisions lists those that occur, in their usual order.
func (t Table) Precisions() []string {
	var found []string
	for _, c := range t.Cells {
		if !slices.Contains(found, c.Precision) {
			found = append(found, c.Precision)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(place(precisions, a), place(precisions, b)) })
	return found
}

// Rows gives the cells of each row by their precision.
func (t Table) Rows(each func(row Row, cells map[string]Cell)) {
	for rest := t.Cells; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Row == rest[0].Row {
			n++
		}
		cells := map[string]Cell{}
		for _, c := range rest[:n] {
			cells[c.Precision] = c
		}
		each(rest[0].Row, cells)
		rest = rest[n:]
	}
}
