package gate

// MinProcesses is how many fresh processes of a cell must agree.
const MinProcesses = 5

// Process is what one fresh process of a cell gave.
type Process struct {
	Arm  string
	Side string // processes of one side must have the same bits; where all must, NATIVE compares the sides
	Cold bool   // it found no kernel that was compiled before
	Run  Run
}

// ProcessFigures says what was compared.
type ProcessFigures struct {
	Processes   int            `json:"processes"`
	Cold        int            `json:"cold"`
	Arms        map[string]int `json:"arms"` // processes of each
	Differences []Difference   `json:"differences,omitempty"`
}

// JudgeProcesses holds if at least MinProcesses of a cell agree, of which so many had to compile all their kernels.
func JudgeProcesses(all []Process, cold int, order []string) (Finding, error) {
	figures := ProcessFigures{Processes: len(all), Arms: map[string]int{}}
	f := Finding{Outcome: Passed}
	first := map[string]Process{}
	for _, p := range all {
		figures.Arms[p.Arm]++
		reason, what := ProcessDiffers, p.Arm
		if p.Cold {
			figures.Cold++
			reason, what = ColdDiffers, p.Arm+" with a cold cache of kernels"
		}
		base, has := first[p.Side]
		if !has {
			first[p.Side] = p
			continue
		}
		for _, probe := range order {
			if err := shapes(base.Run[probe], p.Run[probe]); err != nil {
				fail(&f, OutputsOfOtherShape, "%s, probe %s: %v", what, probe, err)
				continue
			}
			found, err := differences(probe, base.Run[probe], p.Run[probe])
			if err != nil {
				return f, err
			}
			if len(found) > 0 {
				fail(&f, reason, "%s and %s in processes of their own: %v", base.Arm, what, found[0])
			}
			figures.Differences = append(figures.Differences, found[:min(len(found), maxDifferences-len(figures.Differences))]...)
		}
	}
	if figures.Processes < MinProcesses || figures.Cold < cold {
		fail(&f, TooFewProcesses, "%d processes, %d of them with a cold cache of kernels; %d and %d are needed", figures.Processes, figures.Cold, MinProcesses, cold)
	}
	f.Figures = figures
	return f, nil
}
