package suite

import (
	"context"
	"fmt"
	"math"
	"slices"

	"samebits/bridge/arm"
	"samebits/parity/result"
)

// Timing is how steps are measured: enough to fill Seconds, within the bounds on their number. The zero value measures nothing.
type Timing struct {
	Warmup    int // steps before those that count, unless they take longer than half of Seconds
	Seconds   float64
	Min, Max  int
	WarmupFew int // warm-up steps at least
}

// DefaultTiming measures about a second of each arm.
func DefaultTiming() Timing { return Timing{Warmup: 20, WarmupFew: 1, Seconds: 1, Min: 3, Max: 200} }

// measure times an arm that is ready. A first measurement of one step says how many are affordable.
func (t Timing) measure(ctx context.Context, s *session) (result.Timing, error) {
	steps := func(warmup, iterations int) ([]float64, error) {
		reply, err := s.arm.Measure(ctx, arm.MeasureRequest{InputBank: 0, Warmup: warmup, Iterations: iterations})
		if err != nil {
			return nil, fmt.Errorf("%s: measure: %w", s.name, err)
		}
		if len(reply.Milliseconds) != iterations {
			return nil, fmt.Errorf("%s: measured %d steps instead of %d", s.name, len(reply.Milliseconds), iterations)
		}
		for _, ms := range reply.Milliseconds {
			if !(ms >= 0) || math.IsInf(ms, 0) {
				return nil, fmt.Errorf("%s: measured a step of %v ms", s.name, ms)
			}
		}
		return reply.Milliseconds, nil
	}
	one, err := steps(0, 1)
	if err != nil {
		return result.Timing{}, err
	}
	iterations, warmup := t.Max, t.Warmup
	if one[0] > 0 {
		iterations = min(max(int(t.Seconds*1000/one[0]), t.Min), t.Max)
		warmup = min(max(int(t.Seconds*500/one[0]), t.WarmupFew), t.Warmup)
	}
	times, err := steps(warmup, iterations)
	if err != nil {
		return result.Timing{}, err
	}
	slices.Sort(times)
	median := times[len(times)/2]
	if len(times)%2 == 0 {
		median = (median + times[len(times)/2-1]) / 2
	}
	return result.Timing{MedianMS: median, MinMS: times[0], Iterations: iterations, Warmup: warmup}, nil
}
