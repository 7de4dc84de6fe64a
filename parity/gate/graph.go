package gate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"samebits/bridge/arm"
)

// Engagement is what an arm says of its graphs, before and after a number of steps.
type Engagement struct {
	Prepared      arm.PrepareReply
	Before, After arm.Stats
	Steps         int64
}

// EngagedFigures counts what was really launched.
type EngagedFigures struct {
	Captures   int64 `json:"captures"`
	Nodes      int64 `json:"nodes"`
	Steps      int64 `json:"steps"`
	Replays    int64 `json:"replays"`
	EagerSteps int64 `json:"eager_steps"`
	Fallbacks  int64 `json:"fallbacks"`
	Launches   int64 `json:"launches"`
	// Waits for the device inside steps, beside the one that ends each.
	Synchronisations int64 `json:"synchronisations"`
}

// JudgeEngaged holds if a graph was captured, and every step since then was a replay of it.
func JudgeEngaged(e Engagement) Finding {
	figures := EngagedFigures{
		Captures: e.After.Captures, Nodes: e.Prepared.Nodes, Steps: e.Steps,
		Replays: e.After.Replays - e.Before.Replays, EagerSteps: e.After.EagerSteps - e.Before.EagerSteps,
		Fallbacks: e.After.Fallbacks, Launches: e.After.Launches - e.Before.Launches,
		Synchronisations: e.After.Synchronisations - e.Before.Synchronisations,
	}
	f := Finding{Outcome: Failed, Figures: figures}
	switch {
	case figures.Fallbacks > 0:
		f.Reason, f.Detail = FellBack, fmt.Sprintf("%d steps fell back to eager: %s", figures.Fallbacks, e.After.FallbackReason)
	case !e.Prepared.Captured || e.Before.Captures < 1:
		f.Reason, f.Detail = NotCaptured, "no graph was captured"
	case figures.Replays != e.Steps || figures.EagerSteps != 0:
		f.Reason, f.Detail = NotReplayed, fmt.Sprintf("%d steps made %d replays and %d eager steps",
			e.Steps, figures.Replays, figures.EagerSteps)
	case e.After.Captures != e.Before.Captures:
		f.Reason, f.Detail = CapturedAgain, fmt.Sprintf("%d graphs were captured while replaying", e.After.Captures-e.Before.Captures)
	case figures.Launches < e.Steps:
		f.Reason, f.Detail = NotLaunched, fmt.Sprintf("%d replays launched %d nodes", e.Steps, figures.Launches)
	case figures.Synchronisations > 0:
		f.Reason = Synchronised
		f.Detail = fmt.Sprintf("the host waited %d times for the device inside %d steps", figures.Synchronisations, e.Steps)
	default:
		f.Outcome = Passed
	}
	return f
}

// MinReplays is how often each probe is replayed at least.
const MinReplays = 5

// Poison is the byte that outputs are filled with before each replay: all ones, a NaN in every float type.
const Poison = 0xff

// ReplayFigures says what was replayed and where it differs.
type ReplayFigures struct {
	Replays     map[string]int `json:"replays"` // by probe
	Outputs     int            `json:"outputs"`
	Held        int            `json:"held"` // results read again after the next replay
	Differences []Difference   `json:"differences,omitempty"`
}

// maxDifferences bounds what a finding lists: a broken graph differs everywhere.
const maxDifferences = 8

// Watch follows the replays of one graph arm against what eager gave.
type Watch struct {
	eager   Run
	figures ReplayFigures
	replay  Finding
	stale   Finding
}

// NewWatch starts to follow an arm whose replays must give what eager gave.
func NewWatch(eager Run) *Watch {
	return &Watch{eager: eager, figures: ReplayFigures{Replays: map[string]int{}},
		replay: Finding{Outcome: Passed}, stale: Finding{Outcome: Passed}}
}

// Replayed takes what a replay of a probe left in outputs that were poisoned before.
func (w *Watch) Replayed(probe string, got Outputs) error {
	w.figures.Replays[probe]++
	n := w.figures.Replays[probe]
	want := w.eager[probe]
	if err := shapes(want, got); err != nil {
		fail(&w.replay, OutputsOfOtherShape, "probe %s: %v", probe, err)
		return nil
	}
	w.figures.Outputs = len(got)
	w.checkStale(probe, got)
	all, err := differences(probe, want, got)
	if err != nil || len(all) == 0 {
		return err
	}
	for _, output := range got {
		if len(output.Data) > 0 && len(bytes.Trim(output.Data, string([]byte{Poison}))) == 0 {
			fail(&w.replay, OutputNotWritten, "replay %d of probe %s left the poison in output %s", n, probe, output.Name)
		}
	}
	fail(&w.replay, OutputDiffers, "replay %d of %v", n, all[0])
	w.figures.Differences = append(w.figures.Differences, all[:min(len(all), maxDifferences-len(w.figures.Differences))]...)
	return nil
}

// Eagerly takes what the process whose replays differ gives without a graph, and its last replays. That tells whether the graph is at
// fault or the process, which may have chosen other kernels than the one that eager steps were taken from.
func (w *Watch) Eagerly(run, replays Run) {
	right, alike := true, true
	for probe, want := range w.eager {
		right = right && run[probe].Same(want)
		alike = alike && run[probe].Same(replays[probe])
	}
	switch {
	case right:
		w.replay.Detail += "; without a graph the same process gives the right bits"
	case alike:
		w.replay.Reason = ProcessDiffers
		w.replay.Detail += "; without a graph the same process gives what it replays: it differs from the other processes, not from its graph"
	default:
		w.replay.Detail += "; without a graph the same process gives other bits again"
	}
}

// checkStale looks for what eager gives for another probe, in each output that depends on the probe.
func (w *Watch) checkStale(probe string, got Outputs) {
	for _, other := range slices.Sorted(maps.Keys(w.eager)) {
		if other == probe {
			continue
		}
		for i, output := range w.eager[other] {
			if got[i].Digest == output.Digest && output.Digest != w.eager[probe][i].Digest {
				fail(&w.stale, StaleOutput, "replay %d of probe %s gives output %s of probe %s",
					w.figures.Replays[probe], probe, output.Name, other)
			}
		}
	}
}

// Held takes what a bank holds after later replays went to another bank: it must still be what that replay gave.
func (w *Watch) Held(probe string, before, now Outputs) {
	w.figures.Held++
	for i := range before {
		if before[i].Digest != now[i].Digest {
			fail(&w.replay, OutputOverwritten, "output %s of probe %s changed when another probe was replayed", before[i].Name, probe)
		}
	}
}

// Replay is the finding of the gate REPLAY.
func (w *Watch) Replay() Finding {
	for _, probe := range slices.Sorted(maps.Keys(w.eager)) {
		if n := w.figures.Replays[probe]; n < MinReplays {
			fail(&w.replay, TooFewReplays, "probe %s was replayed %d times; %d are needed", probe, n, MinReplays)
		}
	}
	f := w.replay
	f.Figures = w.figures
	return f
}

// NotStale is the finding of the gate NOT-STALE.
func (w *Watch) NotStale() Finding {
	f := w.stale
	f.Figures = map[string]int{"replays": sum(w.figures.Replays), "other_probes": len(w.eager) - 1}
	return f
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}
