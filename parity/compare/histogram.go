package compare

import (
	"fmt"
	"math"
	"math/bits"

	"samebits/bridge/tensor"
)

// Bucket counts elements by their distance in ULP.
type Bucket struct {
	Least uint64 `json:"least_ulp"`
	Most  uint64 `json:"most_ulp"`
	Count int64  `json:"elements"`
}

// Histogram counts the elements of two tensors by their distance: 0, 1, 2 to 3, 4 to 7 and so on, up to the largest that
// occurs. Elements that are NaN on a side and not the same bits are counted apart.
func Histogram(d tensor.DType, a, b []byte) (buckets []Bucket, nan int64, err error) {
	r, n, err := read(d, a)
	if err != nil {
		return nil, 0, err
	}
	if len(a) != len(b) {
		return nil, 0, fmt.Errorf("compare: %d bytes against %d", len(b), len(a))
	}
	var counts [65]int64 // by the number of bits of the distance
	for i := range n {
		x, y := r.key(a, i), r.key(b, i)
		if x != y && d.Float() && (math.IsNaN(r.num(a, i)) || math.IsNaN(r.num(b, i))) {
			nan++
			continue
		}
		counts[bits.Len64(distance(x, y))]++
	}
	for length, count := range counts {
		if count == 0 {
			continue
		}
		bucket := Bucket{Count: count}
		if length > 0 {
			bucket.Least = 1 << (length - 1)
			bucket.Most = bucket.Least - 1 + bucket.Least
		}
		buckets = append(buckets, bucket)
	}
	return buckets, nan, nil
}
