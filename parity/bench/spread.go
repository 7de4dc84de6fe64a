package bench

import (
	"math"
	"slices"
)

// Summarize sums up times of steps, of which there must be one at least.
func Summarize(times []float64) Spread {
	sorted := slices.Sorted(slices.Values(times))
	s := Spread{MedianMS: quantile(sorted, 0.5), MinMS: sorted[0], Q1MS: quantile(sorted, 0.25), Q3MS: quantile(sorted, 0.75), Steps: len(sorted)}
	s.IQRMS = s.Q3MS - s.Q1MS
	return s
}

// quantile interpolates between the two nearest of sorted numbers, as NumPy and R do where nothing else is asked for.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(at)
	if below+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

// geomean is the mean of ratios; 0 of none.
func geomean(ratios []float64) float64 {
	if len(ratios) == 0 {
		return 0
	}
	sum := 0.0
	for _, r := range ratios {
		sum += math.Log(r)
	}
	return math.Exp(sum / float64(len(ratios)))
}
