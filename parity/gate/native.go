package gate

import (
	"fmt"

	"samebits/parity/compare"
)

// NativeFigures says where a native arm differs from the eager reference.
type NativeFigures struct {
	Probes      int          `json:"probes"`
	Outputs     int          `json:"outputs"`
	Differences []Difference `json:"differences,omitempty"`
	// First is the first operation whose result differs, where a trace found one.
	First any `json:"first_operation,omitempty"`
}

// JudgeNative holds if a native arm gives the reference's bits: every output, every probe.
func JudgeNative(reference, native Run, order []string) (Finding, error) {
	figures := NativeFigures{Probes: len(order), Outputs: len(reference[order[0]])}
	f := Finding{Outcome: Passed}
	for _, probe := range order {
		if err := shapes(reference[probe], native[probe]); err != nil {
			return Finding{Outcome: Failed, Reason: OutputsOfOtherShape, Detail: fmt.Sprintf("probe %s: %v", probe, err), Figures: figures}, nil
		}
		all, err := differences(probe, reference[probe], native[probe])
		if err != nil {
			return f, err
		}
		figures.Differences = append(figures.Differences, all...)
	}
	if n := len(figures.Differences); n > 0 {
		f.Outcome, f.Reason, f.Detail = Failed, NativeDiffers, figures.Differences[0].String()
		figures.Differences = figures.Differences[:min(n, maxDifferences)]
	}
	f.Figures = figures
	return f, nil
}

// RoundingLimit is how many times PyTorch's own error a native arm may have where bits cannot be demanded.
const RoundingLimit = 4

// RoundingFigures holds each output's distances from the same model in double precision.
type RoundingFigures struct {
	Probes  int              `json:"probes"`
	Limit   float64          `json:"limit"`
	Same    bool             `json:"same_bits"`        // native gives the reference's bits after all
	Nearby  int              `json:"nearby,omitempty"` // runs on inputs one ULP away whose errors are the reference's, too
	Outputs []OutputRounding `json:"outputs"`
}

// OutputRounding is the worst largest error over the probes, and the mean of the mean errors.
type OutputRounding struct {
	Output    string        `json:"output"`
	Reference compare.Error `json:"reference"`
	Native    compare.Error `json:"native"`
	// Floor is the error that the reference is taken to have at least: half a ULP of the output's type.
	Floor float64 `json:"floor"`
}

// JudgeRounding holds if no output of native is further from exact, the same model in double precision, than
// RoundingLimit times what the reference is. The outcome is Rounding: bits were not demanded. nearby are runs of the reference on
// inputs one ULP away: where an output jumps there it has that error.
func JudgeRounding(exact, reference, native Run, order []string, nearby ...Run) (Finding, error) {
	figures := RoundingFigures{Probes: len(order), Limit: RoundingLimit, Same: true, Nearby: len(nearby)}
	f := Finding{Outcome: Rounding}
	for _, probe := range order {
		if err := shapes(reference[probe], native[probe]); err != nil {
			return Finding{Outcome: Failed, Reason: OutputsOfOtherShape, Detail: fmt.Sprintf("probe %s: %v", probe, err)}, nil
		}
		if len(exact[probe]) != len(reference[probe]) {
			return f, fmt.Errorf("probe %s: the double-precision arm gives %d outputs instead of %d",
				probe, len(exact[probe]), len(reference[probe]))
		}
		figures.Same = figures.Same && reference[probe].Same(native[probe])
	}
	for i, output := range reference[order[0]] {
		r := OutputRounding{Output: output.Name, Floor: compare.Roundoff(output.DType)}
		for _, probe := range order {
			base := exact[probe][i]
			if base.Name != output.Name {
				return f, fmt.Errorf("output %d is %s, in double precision %s", i, output.Name, base.Name)
			}
			if err := r.add(base, reference[probe][i], native[probe][i]); err != nil {
				return f, fmt.Errorf("probe %s, output %s: %w", probe, output.Name, err)
			}
		}
		r.Reference.Mean /= float64(len(order))
		r.Native.Mean /= float64(len(order))
		for _, run := range nearby {
			if err := r.jump(exact, run, order, i); err != nil {
				return f, fmt.Errorf("output %s, one ULP away: %w", output.Name, err)
			}
		}
		if !r.Native.Within(r.Reference, RoundingLimit, r.Floor) && f.Outcome != Failed {
			f.Outcome, f.Reason = Failed, RoundingWorse
			f.Detail = fmt.Sprintf("output %s is off by at most %.3g (mean %.3g, %d lost), PyTorch by %.3g (mean %.3g, %d lost)", output.Name,
				r.Native.Max, r.Native.Mean, r.Native.Lost, r.Reference.Max, r.Reference.Mean, r.Reference.Lost)
		}
		figures.Outputs = append(figures.Outputs, r)
	}
	if f.Outcome == Rounding && len(nearby) > 0 {
		f.Detail = fmt.Sprintf("outputs jump: PyTorch's error is the largest of %d runs on inputs one ULP away, too", len(nearby))
	}
	f.Figures = figures
	return f, nil
}

func (r *OutputRounding) add(exact, reference, native Output) error {
	if err := grow(&r.Reference, exact, reference); err != nil {
		return err
	}
	return grow(&r.Native, exact, native)
}

// jump lets the reference have the error of another of its runs, if that is larger.
func (r *OutputRounding) jump(exact, run Run, order []string, output int) error {
	var e compare.Error
	for _, probe := range order {
		if len(run[probe]) <= output {
			return fmt.Errorf("probe %s gives %d outputs", probe, len(run[probe]))
		}
		if err := grow(&e, exact[probe][output], run[probe][output]); err != nil {
			return fmt.Errorf("probe %s: %w", probe, err)
		}
	}
	r.Reference.Max = max(r.Reference.Max, e.Max)
	r.Reference.Mean = max(r.Reference.Mean, e.Mean/float64(len(order)))
	r.Reference.Lost = max(r.Reference.Lost, e.Lost)
	return nil
}

// grow adds the error of one output on one probe.
func grow(to *compare.Error, exact, got Output) error {
	e, err := compare.Against(compare.Typed{DType: exact.DType, Data: exact.Data}, compare.Typed{DType: got.DType, Data: got.Data})
	if err != nil {
		return err
	}
	to.Max = max(to.Max, e.Max)
	to.Mean += e.Mean
	to.Lost += e.Lost
	return nil
}
