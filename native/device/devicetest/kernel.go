package devicetest

import (
	"math"
	"slices"
	"testing"

	"samebits/native/device"
)

func kernelArguments(t *testing.T, b *bench) {
	out := storage(b, make([]uint64, 6))
	b.run(kernel("check_arguments", 1, 1, 0, out, int32(-2), uint32(0xfffffff0), int64(-3), uint64(1)<<63, float32(-0.5), math.Pi))
	want := []uint64{math.MaxUint64 - 1, 0xfffffff0, math.MaxUint64 - 2, 1 << 63, 0xbf000000, math.Float64bits(math.Pi)}
	if got := read[uint64](b, out, 6); !slices.Equal(got, want) {
		t.Errorf("arguments %x, wanted %x", got, want)
	}
}

func kernelGeometry(t *testing.T, b *bench) {
	for _, g := range []struct{ grid, block [3]uint32 }{
		{[3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}},
		{[3]uint32{7, 1, 1}, [3]uint32{33, 1, 1}},
		{[3]uint32{3, 4, 5}, [3]uint32{5, 3, 2}},
		{[3]uint32{1, 1, 300}, [3]uint32{1, 16, 64}},
		{[3]uint32{1, 1, 1}, [3]uint32{1024, 1, 1}},
	} {
		n := int(g.grid[0] * g.grid[1] * g.grid[2] * g.block[0] * g.block[1] * g.block[2])
		out := storage(b, make([]uint32, n))
		b.run(&device.Kernel{File: "check", Entry: "check_geometry", Grid: g.grid, Block: g.block, Args: []any{out}})
		for i, v := range read[uint32](b, out, n) {
			if v != uint32(i) {
				t.Errorf("grid %v block %v: element %d is %d", g.grid, g.block, i, v)
				break
			}
		}
	}
}

// axpy makes inputs whose result is exact in float32 and gives the wanted one.
func axpy(n int) (y, x, want []float32) {
	y, x, want = make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range n {
		x[i], y[i] = float32(i%1000)-500, float32(i%77)
		want[i] = 3*x[i] + y[i]
	}
	return y, x, want
}

func kernelElementWise(t *testing.T, b *bench) {
	for _, n := range []int{1, 31, 1000, 100_003} {
		ys, xs, want := axpy(n)
		y, x := storage(b, ys), storage(b, xs)
		b.run(kernel("check_axpy_f32", 13, 96, 0, y, x, float32(3), int64(n)))
		if got := read[float32](b, y, n); !slices.Equal(got, want) {
			t.Errorf("%d elements: wrong ones", n)
		}
	}
}

// numbers are small ints in no order.
func numbers(n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(uint32(i)*2654435761>>8) % 1000
	}
	return x
}

func kernelSharedMemory(t *testing.T, b *bench) {
	const blocks, threads = 20, 1024
	xs := numbers(blocks * threads)
	x, y := storage(b, xs), storage(b, make([]int32, len(xs)))
	b.run(kernel("check_reverse", blocks, threads, threads*4, y, x))
	want := slices.Clone(xs)
	for i := range blocks {
		slices.Reverse(want[i*threads : (i+1)*threads])
	}
	if !slices.Equal(read[int32](b, y, len(xs)), want) {
		t.Errorf("blocks are not reversed")
	}
}

func kernelWarp(t *testing.T, b *bench) {
	const blocks, threads = 9, 96
	xs := numbers(blocks * threads)
	x, y := storage(b, xs), storage(b, make([]int32, len(xs)/32))
	b.run(kernel("check_warp_sum", blocks, threads, 0, y, x))
	want := make([]int32, len(xs)/32)
	for i, v := range xs {
		want[i/32] += v
	}
	if got := read[int32](b, y, len(want)); !slices.Equal(got, want) {
		t.Errorf("sums %v, wanted %v", got, want)
	}
}

func kernelLastBlock(t *testing.T, b *bench) {
	const blocks, threads = 500, 128
	xs := numbers(blocks * threads)
	var want int32
	for _, v := range xs {
		want += v
	}
	x, results := storage(b, xs), storage(b, make([]int32, 3))
	at := func(i int64) device.Pointer { return device.Pointer{Storage: results.Storage, Offset: 4 * i} }
	b.run(kernel("check_last_block", blocks, threads, 4, at(0), at(1), at(2), x))
	if got := read[int32](b, results, 3); !slices.Equal(got, []int32{want, want, 0}) {
		t.Errorf("total, counter, arrived: %v, wanted %d, the same, 0", got, want)
	}
}

func kernelRounding(t *testing.T, b *bench) {
	cases := []struct {
		name       string
		in         float32
		bf16, fp16 uint16
	}{
		{"one", 1, 0x3f80, 0x3c00},
		{"negative zero", float32(math.Copysign(0, -1)), 0x8000, 0x8000},
		{"tie to even, down", math.Float32frombits(0x3f808000), 0x3f80, 0x3c04},
		{"tie to even, up", math.Float32frombits(0x3f818000), 0x3f82, 0x3c0c},
		{"fp16 tie to even", 1 + 1.0/2048, 0x3f80, 0x3c00},
		{"fp16 largest", 65504, 0x4780, 0x7bff},
		{"fp16 rounds to infinity", 65520, 0x4780, 0x7c00},
		{"fp16 smallest subnormal", 1.0 / (1 << 24), 0x3380, 0x0001},
		{"fp16 tie to zero", 1.0 / (1 << 25), 0x3300, 0x0000},
		{"bf16 rounds to infinity", math.MaxFloat32, 0x7f80, 0x7c00},
		{"infinity", float32(math.Inf(-1)), 0xff80, 0xfc00},
		{"nan", math.Float32frombits(0xffc12345), 0x7fff, 0x7fff},
		{"signalling nan", math.Float32frombits(0x7f800001), 0x7fff, 0x7fff},
	}
	in := make([]float32, len(cases))
	for i, c := range cases {
		in[i] = c.in
	}
	x := storage(b, in)
	bf, half := storage(b, make([]uint16, len(in))), storage(b, make([]uint16, len(in)))
	b.run(kernel("check_round", 1, 32, 0, bf, half, x, int64(len(in))))
	gotBF, gotHalf := read[uint16](b, bf, len(in)), read[uint16](b, half, len(in))
	for i, c := range cases {
		if gotBF[i] != c.bf16 || gotHalf[i] != c.fp16 {
			t.Errorf("%s: bf16 %#04x fp16 %#04x, wanted %#04x %#04x", c.name, gotBF[i], gotHalf[i], c.bf16, c.fp16)
		}
	}
}
