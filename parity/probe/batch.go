package probe

import (
	"encoding/binary"
	"fmt"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

// FillBatch writes the training batch of a number, counted from 1, over dst: the input that spec describes. Every batch
// is another one, and every machine makes the same bits of it.
//
// Images are noise of the input named NAME@NUMBER, but those of batch 1 are crops of the photographs. Targets are whole
// numbers below classes: the upper half of SplitMix64's output for that name, times classes, divided by 2^32.
func FillBatch(number int, spec tensor.Spec, seed uint64, classes int64, dst []byte) error {
	path := "inputs/" + spec.Name
	if int64(len(dst)) != spec.Bytes() {
		return diag.New("WRONG_LENGTH", path, "%d bytes for %v%v", len(dst), spec.DType, spec.Sizes)
	}
	numbered := spec
	numbered.Name = fmt.Sprintf("%s@%d", spec.Name, number)
	if spec.DType == tensor.Int64 {
		draws := counter(numbered.Name, seed)
		for i := range spec.Numel() {
			class := draws() >> 32 * uint64(classes) >> 32
			binary.LittleEndian.PutUint64(dst[8*i:], class)
		}
		return nil
	}
	put, ok := writers[spec.DType]
	switch {
	case !ok:
		return diag.New("UNSUPPORTED_INPUT", path, "no batch has inputs of dtype %v", spec.DType)
	case len(spec.Sizes) != 4 || spec.Sizes[1] != 3:
		return diag.New("UNSUPPORTED_INPUT", path, "a batch of images has sizes [batch 3 height width], not %v", spec.Sizes)
	case number == 1:
		return crops(numbered, seed, func(i int64, x float32) { put(dst, i, x) })
	}
	noise(numbered, seed, func(i int64, x float32) { put(dst, i, x) })
	return nil
}

// crops gives a square out of a photograph for each image of the batch, the photographs in turn: between half of its
// height and all of it, resized; every second turn is mirrored.
func crops(spec tensor.Spec, seed uint64, put func(int64, float32)) error {
	all, err := pictures()
	if err != nil {
		return err
	}
	draws := counter(spec.Name, seed)
	below := func(n int64) int64 { return int64(draws() >> 32 * uint64(n) >> 32) }
	turn := int64(len(all))
	for n := range spec.Sizes[0] {
		p := &all[n%turn]
		whole := min(p.width, p.height)
		side := whole - below(whole/2+1)
		left, top := below(p.width-side+1), below(p.height-side+1)
		p.resize(spec, n, area{left, top, side, side}, n/turn%2 == 1, put)
	}
	return nil
}
