package gate

import (
	"fmt"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
)

// Taken is a step after a situation, what eager gives there, and whether the arm's counters say that it was a replay.
type Taken struct {
	Probe     string
	Want, Got Outputs
	Replayed  bool
}

// Passage is a situation that an arm was put into, and what followed.
type Passage struct {
	Situation string
	Facts     []recording.Setting
	// Before the call, after it, and after the steps.
	Before, Entered, After arm.Stats

	Steps   []Taken
	Unknown bool  // the arm knows no such situation
	Refused error // what the call or a step answered instead
	InStep  bool  // it was a step
	Old     Run   // what eager gave before values changed; nil: they did not
}

// SituationFigures counts what happened in each of a gate's situations.
type SituationFigures struct {
	Passages    []PassageFigures `json:"passages"`
	Differences []Difference     `json:"differences,omitempty"`
}

// PassageFigures are the counters of one situation, the call and its steps together.
type PassageFigures struct {
	Situation     string            `json:"situation"`
	Steps         int               `json:"steps"`
	Replays       int64             `json:"replays"` // of the steps
	Captures      int64             `json:"captures"`
	EagerSteps    int64             `json:"eager_steps"`
	Fallbacks     int64             `json:"fallbacks"`
	Invalidations int64             `json:"invalidations"`
	Facts         map[string]string `json:"facts,omitempty"` // the arm's own words
}

// demand is what a situation asks for beside eager's bits.
type demand struct {
	bits     Reason // why a step with other bits fails
	always   bool   // every step is a replay, of the graph that was there; otherwise it comes back after a while
	captures bool   // the call captures
}

var demands = map[string]demand{
	arm.OtherStream:  {bits: StaleStream, always: true},
	arm.OtherThread:  {bits: ThreadUnsafeCapture, always: true, captures: true},
	arm.Moved:        {bits: PointerMoved},
	arm.Updated:      {bits: ModelMutated},
	arm.Restored:     {bits: ModelMutated},
	arm.OtherMode:    {bits: ModeNotKeyed},
	arm.Released:     {bits: RecaptureFailed},
	arm.FailsCapture: {bits: ContextPoisoned},
	arm.OtherDevice:  {bits: WrongDevice},
}

func (p Passage) figures() PassageFigures {
	f := PassageFigures{Situation: p.Situation, Steps: len(p.Steps), Captures: p.After.Captures - p.Before.Captures,
		EagerSteps: p.After.EagerSteps - p.Before.EagerSteps, Fallbacks: p.After.Fallbacks - p.Before.Fallbacks,
		Invalidations: p.After.Invalidations - p.Before.Invalidations}
	for _, step := range p.Steps {
		if step.Replayed {
			f.Replays++
		}
	}
	for _, s := range p.Facts {
		if f.Facts == nil {
			f.Facts = map[string]string{}
		}
		f.Facts[s.Key] = s.Value
	}
	return f
}

// judgement is a finding in the making: a failure counts before an unknown situation.
type judgement struct {
	Finding
	figures SituationFigures
}

func (j *judgement) fail(reason Reason, format string, args ...any) {
	fail(&j.Finding, reason, format, args...)
}

func (j *judgement) skip(reason Reason, format string, args ...any) {
	if j.Outcome == Passed {
		j.Outcome, j.Reason, j.Detail = Skipped, reason, fmt.Sprintf(format, args...)
	}
}

func (j *judgement) done() Finding {
	f := j.Finding
	if j.figures.Passages != nil {
		f.Figures = j.figures
	}
	return f
}

// JudgeSituation holds if an arm has eager's bits at every step after each situation, and replays again in the end.
func JudgeSituation(passages ...Passage) (Finding, error) {
	j := judgement{Finding: Finding{Outcome: Passed}}
	for _, p := range passages {
		if err := j.passage(p, demands[p.Situation]); err != nil {
			return j.Finding, err
		}
	}
	return j.done(), nil
}

// passage judges one situation. What a step gave comes before how: bits say more than counters.
func (j *judgement) passage(p Passage, d demand) error {
	if p.Unknown {
		j.skip(NotApplicable, "it knows no situation %q", p.Situation)
		return nil
	}
	figures := p.figures()
	j.figures.Passages = append(j.figures.Passages, figures)
	if reasonOf(p.Refused) == NoSecondDevice && !p.InStep {
		j.skip(NoSecondDevice, "there is one device")
		return nil
	}
	if err := j.bits(p, d.bits); err != nil {
		return err
	}
	switch {
	case p.Refused != nil && p.InStep:
		j.fail(reasonOf(p.Refused), "step %d after %s: %v", len(p.Steps)+1, p.Situation, p.Refused)
	case p.Refused != nil:
		j.fail(reasonOf(p.Refused), "%s: %v", p.Situation, p.Refused)
	case figures.Fallbacks > 0:
		j.fail(FellBack, "after %s %d steps fell back to eager: %s", p.Situation, figures.Fallbacks, p.After.FallbackReason)
	case d.captures && p.Entered.Captures == p.Before.Captures:
		j.fail(NotCaptured, "in %s no graph was captured", p.Situation)
	case d.always && (int(figures.Replays) != figures.Steps || p.After.Captures != p.Entered.Captures):
		j.fail(NotReplayed, "%d steps after %s made %d replays and %d captures", figures.Steps, p.Situation, figures.Replays, p.After.Captures-p.Entered.Captures)
	case figures.Steps > 0 && !p.Steps[figures.Steps-1].Replayed:
		j.fail(NotReplayed, "%d steps after %s there is no graph again", figures.Steps, p.Situation)
	}
	return nil
}

// bits compares every step with eager's.
func (j *judgement) bits(p Passage, reason Reason) error {
	for i, step := range p.Steps {
		if err := shapes(step.Want, step.Got); err != nil {
			j.fail(OutputsOfOtherShape, "step %d after %s, probe %s: %v", i+1, p.Situation, step.Probe, err)
			continue
		}
		all, err := differences(step.Probe, step.Want, step.Got)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			continue
		}
		j.figures.Differences = append(j.figures.Differences, all[:min(len(all), maxDifferences-len(j.figures.Differences))]...)
		if p.Old != nil && step.Got.Same(p.Old[step.Probe]) {
			j.fail(reason, "step %d after %s, probe %s: it gives what was right before the weights changed", i+1, p.Situation, step.Probe)
		}
		j.fail(reason, "step %d after %s, %v", i+1, p.Situation, all[0])
	}
	return nil
}

// reasonOf is the arm's own reason for what it refused, if it gave one.
func reasonOf(err error) Reason {
	if problems, _ := diag.Of(err); len(problems) > 0 && problems[0].Reason != "" {
		return Reason(problems[0].Reason)
	}
	return SituationFailed
}

// JudgeMoved judges the situations move, update and restore. Eager gives updated after update, and eager before it; nil: the
// recording has no weights to change.
func JudgeMoved(eager, updated Run, order []string, passages ...Passage) (Finding, error) {
	f, err := JudgeSituation(passages...)
	if err != nil || f.Outcome != Passed || updated == nil {
		return f, err
	}
	for _, probe := range order {
		if !updated[probe].Same(eager[probe]) {
			return f, nil
		}
	}
	f.Outcome, f.Reason = Failed, UpdateNotSeen
	f.Detail = "weights of half the size give the same bits, so that nothing shows whether a graph reads them"
	return f, nil
}
