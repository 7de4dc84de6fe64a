// Package compare says whether two tensors have the same bits, and how far apart they are if not.
//
// Equality is of integer views: -0.0 is not 0.0, and two NaNs are equal only with the same payload.
package compare

import (
	"bytes"
	"fmt"
	"math"

	"samebits/bridge/tensor"
)

// Figures says how two tensors of one dtype and shape differ.
type Figures struct {
	Elements   int64 `json:"elements"`
	Different  int64 `json:"different"`
	FirstIndex int64 `json:"first_index"` // in row-major order; -1 if nothing differs
	// MaxULP and MeanULP are over the elements that differ and are numbers on both sides. Of whole numbers and booleans
	// it is their difference.
	MaxULP  uint64  `json:"max_ulp"`
	MeanULP float64 `json:"mean_ulp"`
	// NaN counts the elements that differ where one side or both is a NaN.
	NaN    int64   `json:"nan"`
	MaxAbs float64 `json:"max_abs"` // largest finite difference
}

// Equal reports whether all bits are the same.
func (f Figures) Equal() bool { return f.Different == 0 }

func (f Figures) String() string {
	if f.Equal() {
		return fmt.Sprintf("all %d elements have the same bits", f.Elements)
	}
	s := fmt.Sprintf("%d of %d elements differ, first at %d, by at most %d ULP (mean %.3g), in value by at most %.3g",
		f.Different, f.Elements, f.FirstIndex, f.MaxULP, f.MeanULP, f.MaxAbs)
	if f.NaN > 0 {
		s += fmt.Sprintf("; %d of them are NaN on a side", f.NaN)
	}
	return s
}

// Bits compares the bytes of two tensors of dtype d.
func Bits(d tensor.DType, a, b []byte) (Figures, error) {
	r, n, err := read(d, a)
	if err != nil {
		return Figures{}, err
	}
	if len(a) != len(b) {
		return Figures{}, fmt.Errorf("compare: %d bytes against %d", len(a), len(b))
	}
	f := Figures{Elements: n, FirstIndex: -1}
	if bytes.Equal(a, b) {
		return f, nil
	}
	size, sum, numbers := d.Size(), 0.0, 0
	for i := range n {
		if bytes.Equal(a[i*size:(i+1)*size], b[i*size:(i+1)*size]) {
			continue
		}
		if f.Different++; f.FirstIndex < 0 {
			f.FirstIndex = i
		}
		x, y := r.num(a, i), r.num(b, i)
		if math.IsNaN(x) || math.IsNaN(y) {
			f.NaN++
			continue
		}
		ulp := distance(r.key(a, i), r.key(b, i))
		f.MaxULP = max(f.MaxULP, ulp)
		sum += float64(ulp)
		numbers++
		if abs := math.Abs(x - y); !math.IsInf(abs, 0) && abs > f.MaxAbs {
			f.MaxAbs = abs
		}
	}
	if numbers > 0 {
		f.MeanULP = sum / float64(numbers)
	}
	return f, nil
}

func distance(a, b uint64) uint64 {
	if a > b {
		return a - b
	}
	return b - a
}
