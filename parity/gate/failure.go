package gate

import "samebits/bridge/arm"

// JudgeFailure holds if a capture that fails does no harm: the steps after it run eagerly and have eager's bits, no further
// capture is tried, and once graphs are released there is one again.
func JudgeFailure(failed, back Passage) (Finding, error) {
	j := judgement{Finding: Finding{Outcome: Passed}}
	for _, p := range []Passage{failed, back} {
		if p.Unknown {
			j.skip(NotApplicable, "it knows no situation %q", p.Situation)
			return j.done(), nil
		}
	}
	j.figures.Passages = []PassageFigures{failed.figures(), back.figures()}
	if err := j.bits(failed, ContextPoisoned); err != nil {
		return j.Finding, err
	}
	counts := j.figures.Passages[0]
	switch {
	case failed.Refused != nil && failed.InStep:
		j.fail(ContextPoisoned, "step %d after a capture that failed: %v", len(failed.Steps)+1, failed.Refused)
	case failed.Refused != nil:
		j.fail(reasonOf(failed.Refused), "%s: %v", arm.FailsCapture, failed.Refused)
	case counts.Fallbacks == 0:
		j.fail(CaptureSurvived, "a capture was to fail, and no step fell back: %d captures, %d replays", counts.Captures, counts.Replays)
	case !failed.After.Latched || counts.Replays > 0 || counts.Captures > 0:
		j.fail(NotLatched, "after a capture failed, %d steps made %d captures and %d replays", counts.Steps, counts.Captures, counts.Replays)
	}
	if j.Outcome == Failed {
		return j.done(), nil // nothing that comes back can be trusted
	}
	if err := j.bits(back, RecaptureFailed); err != nil {
		return j.Finding, err
	}
	again := j.figures.Passages[1]
	switch {
	case back.Refused != nil:
		j.fail(RecaptureFailed, "after graphs were released: %v", back.Refused)
	case back.After.Latched || again.Captures == 0 || again.Steps > 0 && !back.Steps[again.Steps-1].Replayed:
		j.fail(RecaptureFailed, "%d steps after graphs were released there is none: %d captures, %d replays", again.Steps, again.Captures, again.Replays)
	}
	return j.done(), nil
}
