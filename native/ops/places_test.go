package ops

import "samebits/bridge/tensor"

// movedTypes are a type of every size of elements.
var movedTypes = []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Int64, tensor.Bool}

// number fills a value with bits that tell its elements apart as far as the type allows.
func (b *bench) number(value int) {
	for i, e := range b.element(value) {
		putBits(e, uint64(i+1)*0x9e3779b97f4a7c15)
	}
}

// at gives the bits of the element at an index.
func (b *bench) at(value int, index []int64) uint64 {
	v := &b.recording.Values[value]
	at := v.Offset
	for d, i := range index {
		at += i * v.Strides[d]
	}
	size := v.DType.Size()
	return getBits(b.bytes[v.Storage][at*size:][:size])
}

// eachIndex visits the indices of a tensor in logical order. The list is reused.
func eachIndex(sizes []int64, visit func(index []int64)) {
	index := make([]int64, len(sizes))
	for range tensor.Numel(sizes) {
		visit(index)
		for d := len(sizes) - 1; d >= 0; d-- {
			if index[d]++; index[d] < sizes[d] {
				break
			}
			index[d] = 0
		}
	}
}

// expectPlaces fails unless every element of out has the bits that x has at the place that where gives; nil stands for
// missing.
func (b *bench) expectPlaces(x, out int, missing uint64, where func(index []int64) []int64) {
	b.t.Helper()
	got, i, wrong := b.bits(out), 0, 0
	eachIndex(b.recording.Values[out].Sizes, func(index []int64) {
		want := missing
		if place := where(index); place != nil {
			want = b.at(x, place)
		}
		if got[i] != want {
			if wrong++; wrong < 5 {
				b.t.Errorf("%v is %#x, want %#x", index, got[i], want)
			}
		}
		i++
	})
}
