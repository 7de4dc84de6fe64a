package gate

import "fmt"

// Turn is one step of a graph arm that serves several shapes or keys.
type Turn struct {
	Of    int // which of them
	Probe string
	Got   Outputs
}

// What becomes of a step for which there is no graph.
const (
	RanEagerly = "eager"
	WasRefused = "refused"
)

// Stranger is a step with a key that nothing was captured for.
type Stranger struct {
	Key     string // what it holds, as text; empty: there was no such step
	Became  string // RanEagerly, WasRefused; empty: it was replayed
	Outputs Outputs
	Probe   string
}

// Shapes is what a graph arm showed that serves several shapes or keys in turn.
type Shapes struct {
	Names    []string // of the shapes or keys
	Engage   Engagement
	Turns    []Turn
	Stranger Stranger
}

// ShapeFigures says what was served in turn.
type ShapeFigures struct {
	Shapes      []string     `json:"shapes"`
	Captures    int64        `json:"captures"`
	Steps       int64        `json:"steps"`
	Replays     int64        `json:"replays"`
	Stranger    string       `json:"stranger,omitempty"` // a key without a graph
	Became      string       `json:"became,omitempty"`   // of a step with it: eager, refused
	Differences []Difference `json:"differences,omitempty"`
}

// JudgeShape holds if an arm has a graph for each shape or key, replays the right one at every turn, also right after
// another and back again, and replays none for a key that has none. eager is what eager gives for each.
func JudgeShape(s Shapes, eager []Run) (Finding, error) {
	engaged := JudgeEngaged(s.Engage)
	counts, _ := engaged.Figures.(EngagedFigures)
	figures := ShapeFigures{Shapes: s.Names, Captures: counts.Captures, Steps: counts.Steps, Replays: counts.Replays,
		Stranger: s.Stranger.Key, Became: s.Stranger.Became}
	f := Finding{Outcome: Failed}
	switch {
	case engaged.Outcome == Failed:
		f.Reason, f.Detail = engaged.Reason, engaged.Detail
	case counts.Captures < int64(len(s.Names)):
		f.Reason, f.Detail = NotCaptured, fmt.Sprintf("%d graphs for %d shapes", counts.Captures, len(s.Names))
	default:
		f.Outcome = Passed
	}
	for i, turn := range s.Turns {
		what := fmt.Sprintf("turn %d, of %s", i+1, s.Names[turn.Of])
		if i > 0 {
			what += " after " + s.Names[s.Turns[i-1].Of]
		}
		want := eager[turn.Of][turn.Probe]
		if err := shapes(want, turn.Got); err != nil {
			fail(&f, OutputsOfOtherShape, "%s, probe %s: %v", what, turn.Probe, err)
			continue
		}
		all, err := differences(turn.Probe, want, turn.Got)
		if err != nil {
			return f, err
		}
		if len(all) == 0 {
			continue
		}
		if name, is := answerOf(turn.Got, turn.Probe, s.Names, eager, turn.Of); is {
			fail(&f, StaleOutput, "%s, probe %s: it gives what is right for %s", what, turn.Probe, name)
		}
		fail(&f, ShapeDiffers, "%s, %v", what, all[0])
		figures.Differences = append(figures.Differences, all[:min(len(all), maxDifferences-len(figures.Differences))]...)
	}
	if s.Stranger.Key != "" {
		name, stale := answerOf(s.Stranger.Outputs, s.Stranger.Probe, s.Names, eager, -1)
		switch {
		case stale:
			fail(&f, StaleOutput, "a key of %s, for which there is no graph, gets the answer for %s", s.Stranger.Key, name)
		case s.Stranger.Became == "":
			fail(&f, KeyIgnored, "a key of %s, for which there is no graph, was replayed", s.Stranger.Key)
		}
	}
	f.Figures = figures
	return f, nil
}

// answerOf finds whose answer outputs are, apart from one.
func answerOf(got Outputs, probe string, names []string, eager []Run, but int) (string, bool) {
	for i, name := range names {
		if i != but && len(got) > 0 && got.Same(eager[i][probe]) {
			return name, true
		}
	}
	return "", false
}
