package gate

import "fmt"

// SeamFigures says what went over a seam and where the result is another one.
type SeamFigures struct {
	Segment     string       `json:"segment"`
	Probes      int          `json:"probes"`
	Outputs     int          `json:"outputs"` // of the whole forward
	Differences []Difference `json:"differences,omitempty"`
}

// JudgeWhole holds if a family's whole forward gives its own bits again in one process: without that, no seam can be judged.
func JudgeWhole(segment string, whole Run, again Outputs, probe string) (Finding, error) {
	figures := SeamFigures{Segment: segment, Probes: 1, Outputs: len(again)}
	all, err := differences(probe, whole[probe], again)
	if err != nil || len(all) == 0 {
		return Finding{Outcome: Passed, Figures: figures}, err
	}
	figures.Differences = all[:min(len(all), maxDifferences)]
	return Finding{Outcome: Failed, Reason: EagerNoise, Figures: figures,
		Detail: fmt.Sprintf("the whole forward again, generators seeded alike: %v", all[0])}, nil
}

// JudgeSeam holds if what comes behind a segment gives the bits of the whole forward, on what an arm's segment gave.
func JudgeSeam(segment string, whole, rest Run, order []string) (Finding, error) {
	figures := SeamFigures{Segment: segment, Probes: len(order), Outputs: len(whole[order[0]])}
	f := Finding{Outcome: Passed}
	for _, probe := range order {
		if err := shapes(whole[probe], rest[probe]); err != nil {
			return Finding{Outcome: Failed, Reason: OutputsOfOtherShape, Detail: fmt.Sprintf("probe %s: %v", probe, err), Figures: figures}, nil
		}
		all, err := differences(probe, whole[probe], rest[probe])
		if err != nil {
			return f, err
		}
		figures.Differences = append(figures.Differences, all...)
	}
	if n := len(figures.Differences); n > 0 {
		f.Outcome, f.Reason = Failed, SeamDiffers
		f.Detail = fmt.Sprintf("behind %s, %v", segment, figures.Differences[0])
		figures.Differences = figures.Differences[:min(n, maxDifferences)]
	}
	f.Figures = figures
	return f, nil
}
