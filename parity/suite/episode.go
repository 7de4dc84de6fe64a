package suite

import (
	"samebits/parity/gate"
	"samebits/parity/schedule"
)

// move is what one training step is given.
type move struct {
	batch int  // number of the batch
	short bool // fewer images
	hyper schedule.Hyper
	// targets is the number of the batch that the targets come from, where it is another one.
	targets int
}

// episode is a part of the verification of training: steps from a start.
type episode struct {
	name  string
	first int // number of the first step
	moves []move
	short bool // there is a short batch among them
}

// from gives the steps from a number on.
func (e episode) from(step int) episode {
	e.moves, e.first = e.moves[step-e.first:], step
	return e
}

// until gives the steps up to a number.
func (e episode) until(step int) episode {
	e.moves = e.moves[:step-e.first+1]
	return e
}

// mainEpisode is the run itself: its own schedule, another batch at every step.
func (t *training) mainEpisode() episode {
	e := episode{name: gate.Main, first: 1}
	for step := 1; step <= t.recipe.Steps; step++ {
		e.moves = append(e.moves, move{batch: step, hyper: t.recipe.At(step, t.decayed)})
	}
	return e
}

// changingEpisode changes every hyperparameter at every step, but one that may be frozen at its first value, or all.
func (t *training) changingEpisode(frozen string) episode {
	e := episode{name: gate.Changing, first: 1}
	groups := len(t.decayed)
	first := schedule.Changing(1, groups)
	for step := 1; step <= schedule.ChangingSteps; step++ {
		m := move{batch: step, hyper: schedule.Changing(step, groups)}
		if frozen == gate.AllFrozen {
			m.hyper = first
		} else if frozen != "" {
			m.hyper = m.hyper.With(frozen, first)
		}
		e.moves = append(e.moves, m)
	}
	return e
}

// The steps of the episode with a short batch, and which of them it is.
const (
	partialSteps = 5
	shortStep    = 3
)

// partialEpisode has a short batch among full ones, with the hyperparameters of the end of the warm-up.
func (t *training) partialEpisode() episode {
	e := episode{name: gate.Partial, first: 1, short: true}
	for step := 1; step <= partialSteps; step++ {
		e.moves = append(e.moves, move{batch: step, short: step == shortStep, hyper: t.recipe.At(t.recipe.WarmupSteps+step, t.decayed)})
	}
	return e
}

// seenEpisode is a first step in which one input comes from another batch, or none does.
func (t *training) seenEpisode(input string) episode {
	m := move{batch: 1, targets: 1, hyper: t.recipe.At(t.recipe.WarmupSteps+1, t.decayed)}
	switch input {
	case targetsName:
		m.targets = 2
	case imagesName:
		m.batch = 2
	}
	return episode{name: gate.Main, first: 1, moves: []move{m}}
}

// shortBatch is the size of the short batch: a third, but not so few that statistics over one image are asked for, as
// long as there can be more.
func shortBatch(batch int64) int64 {
	return min(max(2, batch/3), batch-1)
}
