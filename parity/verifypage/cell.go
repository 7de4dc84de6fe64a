package verifypage

import (
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/parity/explain"
	"samebits/parity/gate"
	"samebits/parity/page"
	"samebits/parity/report"
	"samebits/parity/result"
	"samebits/parity/shell"
)

// cellView is what the page shows of one result.
type cellView struct {
	*result.Result
	ID   string
	Name string
	Flag *Flag

	Ratio, MemoryRatio float64 // of native's graph to PyTorch's; 0: not known

	Facts       []fact
	Failures    []failure
	Gates       []gateRow
	Differences []difference
	Culprits    []culprit
	Roundings   []rounding
	Arms        []armRow
	Memory      *memoryPlot
	Timeline    *timeline
	Launched    *launchPlot
	Inputs      []digestRow
	Outputs     []digestRow
	OutputsNote string
	Steps       []digestRow
	Own         []fact // of the environment: what is not the same everywhere
	Commands    []command
}

type fact struct{ Name, Value string }

// command is something to type.
type command struct{ What, Line string }

func (d *document) newCell(r *result.Result, number int, flag *Flag) cellView {
	c := cellView{Result: r, ID: fmt.Sprintf("cell-%d", number+1), Name: report.Title(*r), Flag: flag}
	c.Ratio = part(r.Timings[arm.NativeGraph].MedianMS, r.Timings[arm.ReferenceGraph].MedianMS)
	c.MemoryRatio = part(float64(r.Memory[arm.NativeGraph].PeakBytes), float64(r.Memory[arm.ReferenceGraph].PeakBytes))
	c.Facts = facts(r)
	c.Failures = failures(r)
	c.gates()
	c.Arms = armRows(r)
	c.Memory = newMemoryPlot(r)
	c.Timeline = newTimeline(r.Processes)
	c.Launched = newLaunchPlot(r.Launches)
	c.digests()
	c.Own = d.Environments.own(r.Environment)
	c.Commands = commands(r)
	return c
}

// failure is one reason, with all that have it.
type failure struct {
	explain.Explanation
	Places []place
}

type place struct{ Where, Here string }

// failures explains each reason once.
func failures(r *result.Result) []failure {
	var all []failure
	for _, e := range explain.Result(*r) {
		where := "Problem"
		if e.Gate != "" {
			where = string(e.Gate)
		}
		if e.Arm != "" {
			where += " of " + e.Arm
		}
		at := slices.IndexFunc(all, func(f failure) bool { return f.Reason == e.Reason })
		if at < 0 {
			at = len(all)
			all = append(all, failure{Explanation: e})
		}
		all[at].Places = append(all[at].Places, place{where, shorten(e.Here)})
	}
	return all
}

// part is a ratio of two figures that are there.
func part(of, to float64) float64 {
	if of <= 0 || to <= 0 {
		return 0
	}
	return of / to
}

// RatioText is the ratio of times as the matrix has it.
func (c *cellView) RatioText() string { return ratioText(c.Ratio) }

// MemoryText is that of memory.
func (c *cellView) MemoryText() string { return ratioText(c.MemoryRatio) }

// facts are what a cell is made of.
func facts(r *result.Result) []fact {
	var all []fact
	add := func(name, value string) {
		if value != "" {
			all = append(all, fact{name, value})
		}
	}
	add("device", r.Device)
	add("profile", r.Profile)
	add("seed", fmt.Sprint(r.Seed))
	var asked []string
	for _, id := range r.Asked {
		asked = append(asked, string(id))
	}
	add("gates that were asked for", strings.Join(asked, ", "))
	if n := r.Weights; n > 0 {
		add("weights", report.Size(n))
	}
	if s := r.Seam; s != nil {
		rest := "what comes behind it cannot be run"
		if s.Rest {
			rest = "what comes behind it is judged by SEAM"
		}
		add("segment", s.Segment+"; "+rest)
	}
	if t := r.Training; t != nil {
		add("training", fmt.Sprintf("%d steps, learning rate %g, %d warm-up and %d last steps, least rate %g, momentum %g, weight decay %g, average %g over %g steps, %d classes",
			t.Steps, t.LR, t.WarmupSteps, t.PlateauSteps, t.MinLRRatio, t.Momentum, t.WeightDecay, t.EMADecay, t.EMATau, t.Classes))
	}
	return all
}

// commands show a result again, and what is behind it.
func commands(r *result.Result) []command {
	var all []command
	add := func(what, line string) {
		if line != "" && !slices.ContainsFunc(all, func(c command) bool { return c.Line == line }) {
			all = append(all, command{what, line})
		}
	}
	add("verify the cell again", r.Reproduce)
	for _, id := range gate.Of(r.Mode, r.Gates) {
		f := r.Gates[id]
		add(string(id)+" again", f.Reproduce)
		for _, name := range sortedArms(f.Arms) {
			add(fmt.Sprintf("%s of %s again", id, name), f.Arms[name].Reproduce)
		}
	}
	name := strings.TrimSuffix(r.Name(), ".json")
	if r.Reproduce != "" {
		add("keep recording, weights and tensors, whose b3sum are the digests here", r.Reproduce+" --keep evidence")
	}
	if r.Gates[gate.Native].Outcome == gate.Failed && r.Mode != gate.Train {
		add("the first operation that differs, with its operands (after --keep)", fmt.Sprintf("parity bisect %s --device %s -o fault", shell.Quote("evidence/"+name), shell.Quote(r.Device)))
		add("the smallest part that still differs (after --keep)", fmt.Sprintf("parity reduce %s --device %s -o smallest", shell.Quote("evidence/"+name), shell.Quote(r.Device)))
	}
	return all
}

// armRow is what an arm took.
type armRow struct {
	page.Series
	Values []string
}

// armColumns are the titles of an arm's values.
var armColumns = []string{"median of a step", "least", "steps", "part of PyTorch's", "device peak", "reserved", "arena", "nodes of its graph", "launches in a step"}

// ArmColumns is for the template.
func (cellView) ArmColumns() []string { return armColumns }

func armRows(r *result.Result) []armRow {
	var rows []armRow
	base := r.Timings[arm.ReferenceGraph].MedianMS
	if base == 0 {
		base = r.Timings[arm.ReferenceEager].MedianMS
	}
	for _, name := range r.Arms {
		t, timed := r.Timings[name]
		m, counted := r.Memory[name]
		if !timed && !counted {
			continue
		}
		row := armRow{Series: page.SeriesOf(name), Values: slices.Repeat([]string{"-"}, len(armColumns))}
		if timed {
			row.Values[0], row.Values[1], row.Values[2] = report.Millis(t.MedianMS), report.Millis(t.MinMS), fmt.Sprint(t.Iterations)
			if x := part(t.MedianMS, base); x > 0 {
				row.Values[3] = ratioText(x)
			}
		}
		row.Values[4], row.Values[5], row.Values[6] = report.Size(m.PeakBytes), report.Size(m.ReservedBytes), report.Size(m.ArenaBytes)
		if f := engagedOf(r, name); f.Nodes > 0 {
			row.Values[7] = thousands(f.Nodes)
			if f.Steps > 0 {
				row.Values[8] = thousands(f.Launches / f.Steps)
			}
		}
		rows = append(rows, row)
	}
	return rows
}
