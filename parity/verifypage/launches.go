package verifypage

import (
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/parity/page"
	"samebits/parity/result"
)

// launchPlot shows the launch list of a step: in which order, and on which lane.
type launchPlot struct {
	page.Frame
	Total  int
	Scale  float64 // units of the plot for a launch
	Rows   []launchRow
	Legend []shade
	Lanes  []int // their numbers
	Kinds  []launchKind
}

type launchRow struct {
	Y     float64
	Label string
	Paths []launchPath
}

// launchPath are all launches of a lane that are of one sort, in units of launches.
type launchPath struct {
	Class string
	D     string
}

type launchKind struct {
	Name   string
	Count  int
	ByLane []int
}

// sorts are the first words of kinds with what they are called; the last is of all others.
var sorts = []struct{ word, name string }{
	{arm.LibraryLaunch, "cuDNN and cuBLAS"}, {arm.KernelLaunch, "kernels"}, {arm.MemoryLaunch, "copies and fills"}, {"", "others"},
}

func sortOf(kind string) int {
	word, _, _ := strings.Cut(kind, " ")
	return slices.IndexFunc(sorts, func(s struct{ word, name string }) bool { return s.word == word || s.word == "" })
}

func sortClass(sort int) string { return fmt.Sprintf("launch-%d", sort) }

// launch is one of a list, as numbers.
type launch struct{ kind, lane int }

// launches reads a list; nil: it is none.
func launches(l *result.Launches) []launch {
	if l == nil || l.Lanes != "" && len(l.Lanes) != len(l.Order) {
		return nil
	}
	all := make([]launch, len(l.Order))
	for i := range all {
		at := launch{kind: strings.IndexByte(result.Letters, l.Order[i])}
		if l.Lanes != "" {
			at.lane = int(l.Lanes[i]) - '0'
		}
		if at.kind < 0 || at.kind >= len(l.Kinds) || at.lane < 0 || at.lane > 9 {
			return nil
		}
		all[i] = at
	}
	return all
}

func newLaunchPlot(l *result.Launches) *launchPlot {
	all := launches(l)
	if len(all) == 0 {
		return nil
	}
	n, lanes := float64(len(all)), 0
	for _, at := range all {
		lanes = max(lanes, at.lane+1)
	}
	p := &launchPlot{Total: len(all), Scale: (page.PlotWidth - page.LabelWidth - page.EndWidth) / n,
		Frame: page.NewFrame("Launch list", "A step of the native engine, in the order in which it launches: its eager arm walks this list, its graph holds it. What is on other lanes may run beside it. Widths are no times.",
			lanes, timeRowHeight)}
	p.Ticks = page.NiceTicks(n, page.Linear(n), func(x float64) string { return fmt.Sprintf("%g", x) })
	for lane := range lanes {
		p.Lanes = append(p.Lanes, lane+1)
		p.Rows = append(p.Rows, launchRow{page.Margin/2 + (float64(lane)+0.5)*timeRowHeight, fmt.Sprintf("lane %d", lane+1), lanePaths(l, all, lane)})
	}
	for _, name := range l.Kinds {
		p.Kinds = append(p.Kinds, launchKind{name, 0, make([]int, lanes)})
	}
	used := map[int]bool{}
	for _, at := range all {
		p.Kinds[at.kind].Count++
		p.Kinds[at.kind].ByLane[at.lane]++
		used[sortOf(l.Kinds[at.kind])] = true
	}
	for i, s := range sorts {
		if used[i] {
			p.Legend = append(p.Legend, shade{s.name, sortClass(i)})
		}
	}
	return p
}

// mostColumns is how many columns a lane is drawn in: a list of thousands would be finer than a screen.
const mostColumns = 480

// lanePaths draws a lane in columns of the sort that is in them most often; neighbours of one sort are one line.
func lanePaths(l *result.Launches, all []launch, lane int) []launchPath {
	wide := (len(all) + mostColumns - 1) / mostColumns // launches in a column
	column := func(from int) int {
		counts := make([]int, len(sorts))
		for _, at := range all[from:min(from+wide, len(all))] {
			if at.lane == lane {
				counts[sortOf(l.Kinds[at.kind])]++
			}
		}
		if most := slices.Max(counts); most > 0 {
			return slices.Index(counts, most)
		}
		return -1
	}
	drawn, ends := make([]strings.Builder, len(sorts)), make([]int, len(sorts))
	for from := 0; from < len(all); {
		sort, to := column(from), from+wide
		for to < len(all) && column(to) == sort {
			to += wide
		}
		to = min(to, len(all))
		if sort >= 0 {
			if drawn[sort].Len() == 0 {
				drawn[sort].WriteString("M0 0")
			}
			fmt.Fprintf(&drawn[sort], "m%d 0h%d", from-ends[sort], to-from)
			ends[sort] = to
		}
		from = to
	}
	var paths []launchPath
	for sort := range drawn {
		if d := drawn[sort].String(); d != "" {
			paths = append(paths, launchPath{sortClass(sort), d})
		}
	}
	return paths
}
