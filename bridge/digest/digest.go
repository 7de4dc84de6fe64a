// Package digest names bytes and tensors by BLAKE3-256. docs/digests.md shows how to get the same names with b3sum.
package digest

import (
	"encoding/hex"
	"hash"
	"strconv"

	"lukechampine.com/blake3"

	"samebits/bridge/tensor"
)

// size is the length of a digest in bytes; its text form has twice as many hexadecimal digits.
const size = 32

// Header is what stands before a tensor's bytes in its digest: "float32 1,3,640,640\n", "float32 \n" for a scalar.
// It makes tensors of equal bytes but another dtype or shape differ.
func Header(spec tensor.Spec) []byte {
	h := make([]byte, 0, 48)
	h = append(h, spec.DType.String()...)
	h = append(h, ' ')
	for i, n := range spec.Sizes {
		if i > 0 {
			h = append(h, ',')
		}
		h = strconv.AppendInt(h, n, 10)
	}
	return append(h, '\n')
}

// Tensor is the digest of a tensor whose little-endian bytes, in row-major order, are data. The name in spec does not
// count.
func Tensor(spec tensor.Spec, data []byte) string {
	h := New(spec)
	_, _ = h.Write(data) // a hash never fails
	return h.Sum()
}

// Bytes is the digest of plain bytes: a recording, a weights file.
func Bytes(data []byte) string {
	sum := blake3.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Hash makes the digest of a tensor from pieces of its bytes.
type Hash struct{ h hash.Hash }

// New starts the digest of a tensor; its bytes follow by Write, in row-major order.
func New(spec tensor.Spec) *Hash {
	h := blake3.New(size, nil)
	_, _ = h.Write(Header(spec)) // a hash never fails
	return &Hash{h}
}

// Write adds bytes. It never fails.
func (h *Hash) Write(p []byte) (int, error) { return h.h.Write(p) }

// Sum gives the digest of all that was written so far, as text.
func (h *Hash) Sum() string { return hex.EncodeToString(h.h.Sum(nil)) }
