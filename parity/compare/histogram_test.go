package compare

import (
	"math"
	"slices"
	"testing"

	"samebits/bridge/tensor"
)

func TestHistogram(t *testing.T) {
	one := math.Float32bits(1)
	a := f32(one, one, one, one, one, 0x7fc00000, 0x7fc00000, 0)
	b := f32(one, one+1, one+2, one+3, one+4, 0x7fc00000, 0x7fc00001, 1<<31)
	got, nan, err := Histogram(tensor.Float32, a, b)
	want := []Bucket{{0, 0, 2}, {1, 1, 2}, {2, 3, 2}, {4, 7, 1}}
	if err != nil || nan != 1 || !slices.Equal(got, want) {
		t.Errorf("%v, %d NaN, %v", got, nan, err)
	}
	most, _, err := Histogram(tensor.Int64, f64(math.Float64frombits(1<<63)), f64(math.Float64frombits(1<<63-1)))
	if err != nil || len(most) != 1 || most[0].Most != math.MaxUint64 {
		t.Errorf("%v %v", most, err)
	}
	if _, _, err := Histogram(tensor.Float32, a, b[4:]); err == nil {
		t.Error("no error for other lengths")
	}
	if _, _, err := Histogram(tensor.Float32, a[:3], b[:3]); err == nil {
		t.Error("no error for three bytes of a float32")
	}
}
