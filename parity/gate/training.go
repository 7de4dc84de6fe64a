package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"samebits/parity/compare"
)

// StateFigures says which steps of a training run were compared, and where they differ first.
type StateFigures struct {
	Steps   int `json:"steps"`
	Tensors int `json:"tensors"`
	// Held counts results that were read again after the next step (REPLAY).
	Held int `json:"held,omitempty"`
	// Frozen counts, by hyperparameter, the tensors that end otherwise where it keeps its first value (HYPER).
	Frozen     map[string]int `json:"frozen,omitempty"`
	ShortBatch int64          `json:"short_batch,omitempty"` // PARTIAL
	// Checkpoints are the arms whose checkpoints were read, after so many steps (RESUME).
	Checkpoints []string `json:"checkpoints,omitempty"`
	After       int      `json:"after,omitempty"`

	Differences []StateDifference `json:"differences,omitempty"`
	// First is the first operation whose result differs, where a trace found one.
	First any `json:"first_operation,omitempty"`
}

// StateDifference is one tensor that is not what it should be after a step.
type StateDifference struct {
	Episode string  `json:"episode"`
	Step    int     `json:"step"`
	Tensor  string  `json:"tensor"`
	DType   string  `json:"dtype"`
	Sizes   []int64 `json:"sizes"`
	Want    string  `json:"want"` // digest
	Got     string  `json:"got"`  // digest
	// Bits is there if the step could be run again to compare with.
	Bits      *compare.Figures `json:"bits,omitempty"`
	Histogram []compare.Bucket `json:"histogram,omitempty"`
}

func (d StateDifference) String() string {
	s := fmt.Sprintf("step %d, %s", d.Step, d.Tensor)
	if d.Episode != Main {
		s = d.Episode + " " + s
	}
	if d.Bits != nil {
		s += fmt.Sprintf(": %v", *d.Bits)
	}
	return s
}

// The episodes of a training run. Each starts anew.
const (
	Main     = "main"     // the run itself
	Changing = "changing" // every hyperparameter changes at every step
	Partial  = "partial"  // a short batch among full ones
)

// anything takes every tensor.
func anything(string) bool { return true }

// firstDifferences lists what differs at the first step at which anything of interest does.
func firstDifferences(base, got *History, which func(string) bool) []StateDifference {
	for step := got.First; step <= got.Last(); step++ {
		names := got.different(base, step, which)
		if len(names) == 0 {
			continue
		}
		var all []StateDifference
		for _, name := range names[:min(len(names), maxDifferences)] {
			spec := got.Tensors[got.index(name)]
			all = append(all, StateDifference{Episode: got.Episode, Step: step, Tensor: name, DType: spec.DType.String(),
				Sizes: append([]int64{}, spec.Sizes...), Want: base.Digest(step, name), Got: got.Digest(step, name)})
		}
		return all
	}
	return nil
}

// judge compares two histories: the same tensors, steps of the base, the same digests.
func judge(base, got *History, differs Reason, which func(string) bool) (Finding, StateFigures) {
	figures := StateFigures{Steps: len(got.Steps)}
	for _, spec := range got.Tensors {
		if which(spec.Name) {
			figures.Tensors++
		}
	}
	f := Finding{Outcome: Passed}
	figures.Differences = firstDifferences(base, got, which)
	switch other := others(base, got); {
	case other != "":
		f.Outcome, f.Reason, f.Detail = Failed, OtherTensors, other
	case got.First < base.First || got.Last() != base.Last():
		f.Outcome, f.Reason = Failed, TooFewReplays
		f.Detail = fmt.Sprintf("steps %d to %d instead of %d to %d", got.First, got.Last(), base.First, base.Last())
	case len(figures.Differences) > 0:
		f.Outcome, f.Reason, f.Detail = Failed, differs, figures.Differences[0].String()
	}
	return f, figures
}

// JudgeState holds if every tensor has the base's bits after every step, and both have the same tensors: a parameter
// without gradient stays without.
func JudgeState(base, got *History) Finding {
	f, figures := judge(base, got, StateDiffers, anything)
	f.Figures = figures
	return f
}

// JudgeReplayedSteps holds if every step writes its loss and its gradients, with the base's bits, and leaves the results of
// the step before alone.
func JudgeReplayedSteps(base, got *History) Finding {
	f, figures := judge(base, got, OutputDiffers, Made)
	figures.Held = got.held
	switch {
	case f.Reason == OtherTensors:
	case got.unwritten != "":
		f.Outcome, f.Reason, f.Detail = Failed, OutputNotWritten, got.unwritten
	case got.overwritten != "" && f.Outcome != Failed:
		f.Outcome, f.Reason, f.Detail = Failed, OutputOverwritten, got.overwritten
	case figures.Steps < MinReplays && f.Outcome != Failed:
		f.Outcome, f.Reason, f.Detail = Failed, TooFewReplays, fmt.Sprintf("%d replays; %d are needed", figures.Steps, MinReplays)
	}
	f.Figures = figures
	return f
}

// JudgeStaleSteps holds if no step gives what the base gives at another one, in any output in which the two differ.
func JudgeStaleSteps(base, got *History) Finding {
	f := Finding{Outcome: Passed, Figures: map[string]int{"replays": len(got.Steps), "other_probes": len(base.Steps) - 1}}
	for i, spec := range got.Tensors {
		if !Made(spec.Name) {
			continue
		}
		at := map[string]int{} // step by digest
		for step := base.Last(); step >= base.First; step-- {
			at[base.Digest(step, spec.Name)] = step
		}
		for step := got.First; step <= got.Last(); step++ {
			d := got.Steps[step-got.First][i]
			if other, known := at[d]; known && d != base.Digest(step, spec.Name) && f.Outcome != Failed {
				f.Outcome, f.Reason = Failed, StaleOutput
				f.Detail = fmt.Sprintf("step %d gives %s of step %d", step, spec.Name, other)
			}
		}
	}
	return f
}

// Frozen holds runs of eager in which one hyperparameter kept its first value, by its name, or all of them did.
type Frozen map[string]*History

// AllFrozen is the name of the run in which no hyperparameter changes.
const AllFrozen = "all"

// JudgeHyperSeen holds if every hyperparameter matters: with its first value kept, eager ends otherwise.
func JudgeHyperSeen(base *History, frozen Frozen) Finding {
	figures := StateFigures{Steps: len(base.Steps), Tensors: len(base.Tensors), Frozen: map[string]int{}}
	f := Finding{Outcome: Passed}
	for _, name := range slices.Sorted(maps.Keys(frozen)) {
		n := len(frozen[name].different(base, base.Last(), anything))
		figures.Frozen[name] = n
		if n == 0 && f.Outcome == Passed {
			f.Outcome, f.Reason = Failed, HyperNotSeen
			f.Detail = fmt.Sprintf("whether %s changes or not, eager gives the same bits", name)
		}
	}
	f.Figures = figures
	return f
}

// JudgeHyper holds if an arm obeys hyperparameters that change at every step, without a new graph: it has eager's bits. If
// it has those of a run in which one keeps its value, that one is named.
func JudgeHyper(base, got *History, frozen Frozen, engaged Finding) Finding {
	f, figures := judge(base, got, HyperDiffers, anything)
	if f.Reason == HyperDiffers {
		for _, name := range slices.Sorted(maps.Keys(frozen)) {
			if len(firstDifferences(frozen[name], got, anything)) == 0 {
				f.Reason = HyperStale
				f.Detail = fmt.Sprintf("%s keeps its value of the first step: its bits are eager's with that; %s", name, f.Detail)
				break
			}
		}
	}
	if f.Outcome == Passed && engaged.Outcome == Failed {
		f.Outcome, f.Reason, f.Detail = Failed, engaged.Reason, "while hyperparameters change: "+engaged.Detail
	}
	f.Figures = figures
	return f
}

// JudgePartial holds if a short batch, and the full ones after it, give eager's bits.
func JudgePartial(base, got *History, shortStep int, shortBatch int64) Finding {
	f, figures := judge(base, got, StateDiffers, anything)
	figures.ShortBatch = shortBatch
	if f.Reason == StateDiffers {
		switch step := figures.Differences[0].Step; {
		case step == shortStep:
			f.Reason = ShortBatchDiffers
		case step > shortStep:
			f.Reason, f.Detail = AfterShortBatch, fmt.Sprintf("after a short batch at step %d: %s", shortStep, f.Detail)
		}
	}
	f.Figures = figures
	return f
}

// Resumed is what an arm gave that went on from a checkpoint in a fresh process.
type Resumed struct {
	From    string   // the arm that wrote the checkpoint
	History *History // nil if the checkpoint was only written out again
	Changed []string // tensors that are not what the state was when the checkpoint was written, or that came back otherwise
}

// JudgeResume holds if an arm that goes on from a checkpoint, its own or another arm's, gives the bits of its uninterrupted run.
func JudgeResume(base *History, after int, resumed []Resumed) Finding {
	sum := StateFigures{Tensors: len(base.Tensors), After: after}
	f := Finding{Outcome: Passed}
	for _, r := range resumed {
		sum.Checkpoints = append(sum.Checkpoints, r.From)
		g := Finding{Outcome: Passed}
		var figures StateFigures
		if r.History != nil {
			g, figures = judge(base, r.History, ResumeDiffers, anything)
			sum.Steps += figures.Steps
		}
		if n := len(r.Changed); n > 0 && g.Outcome != Failed {
			g = Finding{Outcome: Failed, Reason: ResumeDiffers,
				Detail: fmt.Sprintf("%d tensors of it are not what the state was: %s", n, strings.Join(r.Changed[:min(n, maxDifferences)], ", "))}
		}
		if g.Outcome != Failed || f.Outcome == Failed {
			continue
		}
		if r.From != base.Arm && g.Reason == ResumeDiffers {
			g.Reason = CheckpointNotExchanged
		}
		f.Outcome, f.Reason, f.Detail = g.Outcome, g.Reason, fmt.Sprintf("from the checkpoint of %s: %s", r.From, g.Detail)
		sum.Differences = figures.Differences
	}
	f.Figures = sum
	return f
}

// JudgeNativeSteps holds if a native arm has the reference's bits after every step of every episode.
func JudgeNativeSteps(reference, native []*History) Finding {
	sum := StateFigures{}
	f := Finding{Outcome: Passed}
	for i, base := range reference {
		g, figures := judge(base, native[i], NativeDiffers, anything)
		sum.Steps += figures.Steps
		sum.Tensors = figures.Tensors
		if g.Outcome == Failed && f.Outcome != Failed {
			f, sum.Differences = g, figures.Differences
		}
	}
	f.Figures = sum
	return f
}

// JudgeReproducedSteps holds if eager gives the same bits in two fresh processes, and, at its first step, when it starts
// anew in one of them.
func JudgeReproducedSteps(first, second []*History, again *History) Finding {
	figures := StateFigures{}
	f := Finding{Outcome: Passed}
	take := func(base, got *History, reason Reason, what string) {
		g, compared := judge(base, got, reason, anything)
		figures.Steps += compared.Steps
		figures.Tensors = compared.Tensors
		if g.Outcome == Failed && f.Outcome != Failed {
			f = g
			f.Detail, figures.Differences = what+": "+g.Detail, compared.Differences
		}
	}
	main := second[0]
	take(&History{Arm: main.Arm, Episode: main.Episode, First: main.First, Tensors: main.Tensors, Steps: main.Steps[:1]}, again,
		StateMoved, "started anew in one process")
	for i := range first {
		take(first[i], second[i], EagerNoise, "two fresh processes")
	}
	f.Figures = figures
	return f
}

// JudgeBatchSeen holds if each input matters: a first step with another one gives other bits in the loss or a gradient.
func JudgeBatchSeen(base *History, changed map[string]*History) Finding {
	figures := SeenFigures{Different: map[string]int{}}
	for _, spec := range base.Tensors {
		if Made(spec.Name) {
			figures.Outputs++
		}
	}
	f := Finding{Outcome: Passed}
	for _, input := range slices.Sorted(maps.Keys(changed)) {
		n := len(changed[input].different(base, base.First, Made))
		figures.Different[input] = n
		if n == 0 && f.Outcome == Passed {
			f.Outcome, f.Reason = Failed, InputNotSeen
			f.Detail = fmt.Sprintf("other %s give the same loss and gradients", input)
		}
	}
	f.Figures = figures
	return f
}
