package gate

import "fmt"

// Drawing is a step after the generator got a seed.
type Drawing struct {
	Seed      uint64
	Number    int // of the step since then, from 1
	Probe     string
	Outputs   Outputs
	Generator string // digest of its state after the step; empty: the arm has none
}

// SeedFigures says what was drawn.
type SeedFigures struct {
	Steps       int          `json:"steps"`
	Random      bool         `json:"random"`    // eager's outputs depend on the generator
	Generator   bool         `json:"generator"` // the arm has one, and its states were compared
	Differences []Difference `json:"differences,omitempty"`
}

// JudgeSeed holds if an arm gives what eager gives at each step after each seed, and moves its generator as eager does. Both
// went through the same seeds and steps.
func JudgeSeed(eager, got []Drawing) (Finding, error) {
	figures := SeedFigures{Steps: len(got), Random: random(eager), Generator: len(got) > 0 && got[0].Generator != ""}
	f := Finding{Outcome: Passed}
	if len(eager) != len(got) {
		return f, fmt.Errorf("%d steps instead of %d", len(got), len(eager))
	}
	for i, want := range eager {
		g := got[i]
		what := fmt.Sprintf("seed %d, step %d", g.Seed, g.Number)
		if err := shapes(want.Outputs, g.Outputs); err != nil {
			fail(&f, OutputsOfOtherShape, "%s: %v", what, err)
			continue
		}
		all, err := differences(g.Probe, want.Outputs, g.Outputs)
		if err != nil {
			return f, err
		}
		if len(all) > 0 {
			if i > 0 && g.Outputs.Same(got[i-1].Outputs) && !want.Outputs.Same(eager[i-1].Outputs) {
				fail(&f, RNGNotReplayed, "%s: it draws what the step before drew", what)
			}
			fail(&f, RNGStreamDiffers, "%s, %v", what, all[0])
			figures.Differences = append(figures.Differences, all[:min(len(all), maxDifferences-len(figures.Differences))]...)
		}
		if want.Generator != "" && g.Generator != "" && want.Generator != g.Generator {
			fail(&f, RNGStreamDiffers, "%s: its generator is in another state than eager's", what)
		}
	}
	f.Figures = figures
	return f, nil
}

// random reports whether steps with the same input differ.
func random(drawings []Drawing) bool {
	for _, d := range drawings {
		if d.Probe == drawings[0].Probe && !d.Outputs.Same(drawings[0].Outputs) {
			return true
		}
	}
	return false
}
