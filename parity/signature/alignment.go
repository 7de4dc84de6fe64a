package signature

import (
	"math/bits"

	"samebits/bridge/recording"
)

// Alignment is that of an address so many bytes behind a storage's beginning, which lies as the values on it say: at a
// multiple of the largest alignment, unless one of them is aligned less than its offset alone would be.
func Alignment(r *recording.Recording, storage int, offset int64) uint32 {
	base := int64(recording.MaxAlignment)
	for i := range r.Values {
		v := &r.Values[i]
		if v.Storage == storage && int64(v.Alignment) < lowestBit(v.Offset*v.DType.Size()) {
			base = min(base, int64(v.Alignment))
		}
	}
	return uint32(min(base, lowestBit(offset)))
}

// lowestBit is the largest power of two that divides n, as far as alignments go.
func lowestBit(n int64) int64 {
	if n == 0 {
		return recording.MaxAlignment
	}
	return min(recording.MaxAlignment, int64(1)<<bits.TrailingZeros64(uint64(n)))
}
