package result

// The exit statuses of the command line.
const (
	ExitExact          = 0 // every cell is exact, or consistent on the device host
	ExitDiffers        = 1 // a cell differs, or the eager reference is noisy
	ExitRefused        = 2 // a cell was refused, or the command was called wrongly
	ExitInfrastructure = 3 // something broke, or the run was interrupted
)

// Exit is the exit status for one verdict.
func (v Verdict) Exit() int {
	switch v {
	case Exact, Consistent, Passed:
		return ExitExact
	case Differs, EagerNoise:
		return ExitDiffers
	case Refused:
		return ExitRefused
	}
	return ExitInfrastructure
}

// Exit is the exit status for several cells: that of the worst.
func Exit(results []Result) int {
	status := ExitExact
	for _, r := range results {
		status = max(status, r.Verdict.Exit())
	}
	return status
}
