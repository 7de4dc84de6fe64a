package ops

import (
	"testing"

	"samebits/bridge/tensor"
)

func TestPixelShuffle(t *testing.T) {
	for _, dtype := range movedTypes {
		for _, r := range []int64{1, 2, 4} {
			for _, images := range [][]int64{{}, {2}} {
				b := newBench(t)
				n := len(images)
				x := b.tensor(dtype, append(append([]int64{}, images...), 3*r*r, 5, 6), nil)
				out := b.tensor(dtype, append(append([]int64{}, images...), 3, 5*r, 6*r), nil)
				b.number(x)
				square := func(at []int64) []int64 {
					return append(append([]int64{}, at[:n]...), at[n]*r*r+at[n+1]%r*r+at[n+2]%r, at[n+1]/r, at[n+2]/r)
				}
				b.run(operation("aten::pixel_shuffle", args("self", x, "upscale_factor", r), results(out)))
				b.expectPlaces(x, out, 0, square)
				back := b.tensor(dtype, b.recording.Values[x].Sizes, nil)
				b.run(operation("aten::pixel_unshuffle", args("self", out, "downscale_factor", r), results(back)))
				expectBits(t, dtype, b.bits(back), b.bits(x), 0)
			}
		}
	}
}

func TestPixelShuffleRefusals(t *testing.T) {
	b := newBench(t)
	x, out := b.tensor(tensor.Float32, []int64{8, 5, 6}, nil), b.tensor(tensor.Float32, []int64{2, 10, 11}, nil)
	expectRefusal(t, b, operation("aten::pixel_shuffle", args("self", x, "upscale_factor", int64(2)), results(out)), "results[0]")
	expectRefusal(t, b, operation("aten::pixel_shuffle", args("self", x, "upscale_factor", int64(0)), results(out)), "results[0]")
}
