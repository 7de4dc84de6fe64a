package compare

import (
	"fmt"
	"math"

	"samebits/bridge/tensor"
)

// Error is the distance of a tensor from the exact values, relative to the largest exact magnitude.
type Error struct {
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
	// Lost counts the elements that are a number on one side only, or infinities of another sign. They are left out of
	// the other figures.
	Lost int64 `json:"lost"`
}

// Typed is a tensor's bytes with their dtype.
type Typed struct {
	DType tensor.DType
	Data  []byte
}

// Against measures got against exact, element by element. The largest absolute difference and the mean one are divided by
// the largest finite magnitude in exact (by 1 if that is 0).
func Against(exact, got Typed) (Error, error) {
	re, n, err := read(exact.DType, exact.Data)
	if err != nil {
		return Error{}, err
	}
	rg, m, err := read(got.DType, got.Data)
	if err != nil {
		return Error{}, err
	}
	if n != m {
		return Error{}, fmt.Errorf("compare: %d elements against %d", m, n)
	}
	var scale, worst, sum float64
	var lost int64
	for i := range n {
		e, g := re.num(exact.Data, i), rg.num(got.Data, i)
		switch {
		case e == g || math.IsNaN(e) && math.IsNaN(g):
		case finite(e) && finite(g):
			d := math.Abs(e - g)
			worst = max(worst, d)
			sum += d
		default:
			lost++
		}
		if finite(e) {
			scale = max(scale, math.Abs(e))
		}
	}
	if scale == 0 {
		scale = 1
	}
	return Error{worst / scale, sum / float64(max(n, 1)) / scale, lost}, nil
}

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

// Roundoff is half a ULP of 1 in dtype d: the smallest relative error worth blaming. It is 0 for whole numbers.
func Roundoff(d tensor.DType) float64 {
	switch d {
	case tensor.Float16:
		return math.Ldexp(1, -11)
	case tensor.BFloat16:
		return math.Ldexp(1, -8)
	case tensor.Float32:
		return math.Ldexp(1, -24)
	case tensor.Float64:
		return math.Ldexp(1, -53)
	}
	return 0
}

// Within reports whether e is at most times as large as the error base, where base counts as no less than floor: an output
// that the base gets exactly right by luck must not forbid a single rounding.
func (e Error) Within(base Error, times, floor float64) bool {
	return e.Lost <= base.Lost && e.Max <= times*max(base.Max, floor) && e.Mean <= times*max(base.Mean, floor)
}
