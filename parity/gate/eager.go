package gate

import (
	"fmt"

	"samebits/bridge/recording"
)

// Recorded says how one more recording of the same cell compares with the first.
type Recorded struct {
	What    string                 // probe photo, step 2
	Changes []recording.Difference // none: the same list of operations, slots apart
	ByInput bool                   // the inputs differed; otherwise the step alone did
}

// RecordingFigures says what was compared.
type RecordingFigures struct {
	Recordings int      `json:"recordings"`
	Operations int      `json:"operations"`
	Changes    []string `json:"changes,omitempty"`
}

// JudgeSameRecording holds if all recordings have the same list of operations. A difference says which scalar or branch a
// captured graph would have frozen.
func JudgeSameRecording(operations int, others []Recorded) Finding {
	figures := RecordingFigures{Recordings: len(others) + 1, Operations: operations}
	f := Finding{Outcome: Passed}
	for _, r := range others {
		for _, d := range r.Changes[:min(len(r.Changes), maxDifferences)] {
			figures.Changes = append(figures.Changes, r.What+": "+d.String())
		}
		if len(r.Changes) == 0 || f.Outcome == Failed {
			continue
		}
		f.Outcome, f.Reason = Failed, RecordingChangesWithStep
		if r.ByInput {
			f.Reason = RecordingChangesWithInput
		}
		f.Detail = "the first recording and that of " + r.What + ": " + r.Changes[0].String()
	}
	f.Figures = figures
	return f
}

// Repetition is what one fresh process of the eager reference gave: every probe once, and one of them again at the end.
type Repetition struct {
	Run   Run
	Again string // the probe that was run again
	Last  Outputs
}

// NoiseFigures lists where eager disagrees with itself.
type NoiseFigures struct {
	Processes   int          `json:"processes"`
	Probes      int          `json:"probes"`
	Outputs     int          `json:"outputs"`
	Differences []Difference `json:"differences,omitempty"`
	// First is the first operation whose result differs between the two processes, where a trace of them found one.
	First any `json:"first_operation,omitempty"`
}

// JudgeReproduces holds if eager gives the same bits in both processes, and within one when it sees a probe again.
func JudgeReproduces(first, second Repetition, order []string) (Finding, error) {
	figures := NoiseFigures{Processes: 2, Probes: len(order), Outputs: len(first.Last)}
	f := Finding{Outcome: Passed}
	compare := func(reason Reason, what, probe string, want, got Outputs) error {
		if err := shapes(want, got); err != nil {
			f.Outcome, f.Reason, f.Detail = Failed, OutputsOfOtherShape, what+": "+err.Error()
			return nil
		}
		all, err := differences(probe, want, got)
		if err != nil || len(all) == 0 {
			return err
		}
		figures.Differences = append(figures.Differences, all...)
		if f.Outcome == Passed {
			f.Outcome, f.Reason, f.Detail = Failed, reason, what+": "+all[0].String()
		}
		return nil
	}
	for _, r := range []Repetition{first, second} {
		if err := compare(StateMoved, "the same probe again in one process", r.Again, r.Run[r.Again], r.Last); err != nil {
			return f, err
		}
	}
	for _, probe := range order {
		if err := compare(EagerNoise, "two fresh processes", probe, first.Run[probe], second.Run[probe]); err != nil {
			return f, err
		}
	}
	f.Figures = figures
	return f, nil
}

// SeenFigures counts, for each pair of probes, the outputs whose bits differ.
type SeenFigures struct {
	Outputs   int            `json:"outputs"`
	Different map[string]int `json:"different"`
}

// JudgeInputSeen holds if any two probes differ in at least one output. Without that, a graph that replays one answer for
// ever could not be told from a right one.
func JudgeInputSeen(eager Run, order []string) Finding {
	figures := SeenFigures{Outputs: len(eager[order[0]]), Different: map[string]int{}}
	f := Finding{Outcome: Passed}
	for i, a := range order {
		for _, b := range order[i+1:] {
			n := 0
			for j, output := range eager[a] {
				if output.Digest != eager[b][j].Digest {
					n++
				}
			}
			figures.Different[a+"/"+b] = n
			if n == 0 && f.Outcome == Passed {
				f.Outcome, f.Reason = Failed, InputNotSeen
				f.Detail = fmt.Sprintf("probes %s and %s give the same bits in every output", a, b)
			}
		}
	}
	f.Figures = figures
	return f
}
