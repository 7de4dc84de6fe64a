package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

var elementTypes = []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64, tensor.Int64, tensor.Int32,
	tensor.Uint8, tensor.Bool}

// converted is what PyTorch makes of a number: 16-bit types by way of float32, uint8 by way of int64.
func converted(to tensor.DType, v float64) uint64 {
	switch to {
	case tensor.BFloat16, tensor.Float16:
		return encode(to, float64(float32(v)))
	case tensor.Float32, tensor.Float64, tensor.Bool:
		return encode(to, v)
	}
	return encode(to, math.Trunc(v))
}

func TestToCopy(t *testing.T) {
	for _, from := range elementTypes {
		for _, to := range elementTypes {
			for _, l := range unaryLayouts {
				b := newBench(t)
				x, y := l.x.in(b, from), l.y.in(b, to)
				values := []float64{0, 1, -1, 1.5, 100.7, -3.9, 255, 2.0000001, 1.00390625, 16777217, math.Ldexp(1, 30) + 1}
				if from == tensor.Float16 && !to.Float() {
					values = values[:len(values)-1] // it rounds to infinity, and what that is as an integer differs by device
				}
				if to.Float() {
					values = append(values, math.Copysign(0, -1), 1e-41, math.Inf(-1), 65520, 3.4e38, math.NaN(), 1+math.Ldexp(1, -8)+math.Ldexp(1, -30))
				}
				if !from.Float() {
					values = []float64{0, 1, 3, 200, 255}
				}
				if from == tensor.Int64 || from == tensor.Int32 {
					values = append(values, -7, 16777217, -1073741825)
				}
				b.setFloats(x, values)
				var expected []uint64
				for _, v := range b.floats(x) {
					expected = append(expected, converted(to, v))
				}
				b.run(operation("aten::_to_copy", args("self", x, "dtype", to), results(y)))
				expectBits(t, to, b.bits(y), expected, 0)
				if t.Failed() {
					t.Fatalf("%s to %s, %s", from, to, l.name)
				}
			}
		}
	}
}

// Where the type stays, so do all bits.
func TestCloneKeepsBits(t *testing.T) {
	for _, dtype := range elementTypes {
		for _, l := range unaryLayouts {
			b := newBench(t)
			x, y := l.x.in(b, dtype), l.y.in(b, dtype)
			b.setBits(x, []uint64{0x0102030405060708, 0xfff8123456787fc1, 0xff80ffc1ffa1fda1, 0x7f8000017f817c01, 2})
			expected := b.bits(x)
			b.run(operation("aten::clone", args("self", x, "memory_format", nil), results(y)))
			for i, got := range b.bits(y) {
				if got != expected[i] {
					t.Fatalf("%s %s: [%d] %#x became %#x", dtype, l.name, i, expected[i], got)
				}
			}
		}
	}
}

func TestCopyInPlaceBroadcasts(t *testing.T) {
	for _, to := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		t.Run(fmt.Sprint(to), func(t *testing.T) {
			b := newBench(t)
			self := b.tensorAt(to, []int64{3, 8, 5}, []int64{100, 10, 1}, 2)
			src := b.tensor(tensor.Float32, []int64{8, 1}, nil)
			b.setFloats(src, []float64{1, 2, 3, 0.1, -5, 6, 7, 8})
			var expected []uint64
			for _, v := range expand(b, src, []int64{3, 8, 5}) {
				expected = append(expected, encode(to, v))
			}
			b.run(operation("aten::copy_", args("self", self, "src", src, "non_blocking", false), results(self)))
			expectBits(t, to, b.bits(self), expected, 0)
		})
	}
}

func TestCopyChoosesCommand(t *testing.T) {
	b := newBench(t)
	x := b.tensor(tensor.Float32, []int64{2, 8, 4}, nil)
	y := b.tensor(tensor.Float32, []int64{2, 8, 4}, nil)
	half := b.tensor(tensor.BFloat16, []int64{2, 8, 4}, nil)
	turned := b.tensor(tensor.Float32, []int64{2, 8, 4}, []int64{32, 1, 8})
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{x, y, "[*device.Copy]"},
		{x, half, "[copy_f32_bf16]"},
		{half, x, "[copy_bf16_f32]"},
		{x, turned, "[copy_4]"},
		{half, turned, "[copy_to_f32]"},
		{x, x, "[]"},
	} {
		commands, err := b.lower(operation("aten::copy_", args("self", c.to, "src", c.from, "non_blocking", false), results(c.to)))
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(commands); got != c.want {
			t.Errorf("%d to %d: %s, want %s", c.from, c.to, got, c.want)
		}
	}
	commands, _ := b.lower(operation("aten::clone", args("self", x, "memory_format", nil), results(y)))
	if c, ok := commands[0].(*device.Copy); !ok || c.Bytes != 256 {
		t.Errorf("clone: %+v", commands[0])
	}
	expectRefusal(t, b, operation("aten::copy_", args("self", x, "src", b.tensor(tensor.Float32, []int64{3}, nil)), results(x)), "arguments")
	expectRefusal(t, b, operation("aten::clone", args("self", b.tensor(tensor.Int16, []int64{64}, nil)), results(b.tensor(tensor.Float32, []int64{64}, nil))), "arguments")
}
