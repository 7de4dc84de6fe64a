package convert

import (
	"fmt"

	"samebits/bridge/tensor"
)

// maxTensor is more than any memory holds, and far from overflow.
const maxTensor = 1 << 46

// SpecBytes is the size of a tensor that came over the wire, or why it cannot be.
func SpecBytes(s tensor.Spec) (int64, error) {
	if !s.DType.Valid() {
		return 0, fmt.Errorf("it has no dtype that we know")
	}
	bytes := s.DType.Size()
	for _, n := range s.Sizes {
		if n < 0 || (n > 0 && bytes > maxTensor/n) {
			return 0, fmt.Errorf("sizes %v cannot be", s.Sizes)
		}
		bytes *= n
	}
	return bytes, nil
}
