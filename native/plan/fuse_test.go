package plan

import (
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/ops"
)

func init() {
	fuses := func(*ops.Builder, *recording.Operation) bool { return true }
	ops.Register(ops.Registration{Name: "test::norm", Fuses: fuses, Lower: func(b *ops.Builder, op *recording.Operation) error {
		b.Then = nil
		return copyAll(b, op)
	}})
	ops.Register(ops.Registration{Name: "test::forgetful", Fuses: fuses, Lower: copyAll})
}

// Which pairs become one kernel, and which must not.
func TestFuses(t *testing.T) {
	type at struct {
		builder
		x, norm int
	}
	norm := func(b *at) int { return b.call("test::norm", b.norm, b.x) }
	tests := []struct {
		name    string
		options Options
		make    func(b *at) []int // gives the outputs
		fused   int
	}{
		{"out of place", Options{}, func(b *at) []int {
			return []int{b.call("aten::silu", b.scratch(), norm(b))}
		}, 1},
		{"in place", Options{}, func(b *at) []int {
			y := norm(b)
			return []int{b.call("test::map", b.scratch(), b.call("aten::relu_", y, y))}
		}, 1},
		{"in place, an output", Options{}, func(b *at) []int {
			y := norm(b)
			return []int{b.call("aten::silu_", y, y)}
		}, 1},
		{"in place, then read twice and viewed", Options{}, func(b *at) []int {
			y := norm(b)
			b.call("aten::silu_", y, y)
			view := b.call("test::view", b.on(b.r.Values[y].Storage), y)
			return []int{b.call("test::map", b.scratch(), y), b.call("test::map", b.scratch(), view)}
		}, 1},
		{"something else between", Options{}, func(b *at) []int {
			y := norm(b)
			other := b.call("test::map", b.scratch(), b.x)
			return []int{b.call("aten::silu", b.scratch(), y), other}
		}, 1},
		{"the input is changed between", Options{}, func(b *at) []int {
			copied := b.call("test::map", b.scratch(), b.x)
			y := b.call("test::norm", b.norm, copied)
			b.call("test::map_", copied, copied)
			return []int{b.call("aten::silu", b.scratch(), y), copied}
		}, 1},
		{"two pairs", Options{}, func(b *at) []int {
			y := b.call("aten::silu", b.scratch(), norm(b))
			z := b.call("test::norm", b.scratch(), y)
			return []int{b.call("aten::relu_", z, z)}
		}, 2},
		{"one activation, not the next one", Options{}, func(b *at) []int {
			y := norm(b)
			b.call("aten::relu_", y, y)
			return []int{b.call("aten::silu_", y, y)}
		}, 1},

		{"switched off", Options{NoFuse: true}, func(b *at) []int {
			return []int{b.call("aten::silu", b.scratch(), norm(b))}
		}, 0},
		{"a trace", Options{KeepAll: true}, func(b *at) []int {
			return []int{b.call("aten::silu", b.scratch(), norm(b))}
		}, 0},
		{"read twice", Options{}, func(b *at) []int {
			y := norm(b)
			return []int{b.call("aten::silu", b.scratch(), y), b.call("test::map", b.scratch(), y)}
		}, 0},
		{"read before it is changed in place", Options{}, func(b *at) []int {
			y := norm(b)
			z := b.call("test::map", b.scratch(), y)
			return []int{b.call("aten::silu_", y, y), z}
		}, 0},
		{"an output", Options{}, func(b *at) []int {
			y := norm(b)
			return []int{b.call("aten::silu", b.scratch(), y), y}
		}, 0},
		{"a view of it is an output", Options{}, func(b *at) []int {
			y := norm(b)
			z := b.call("aten::silu", b.scratch(), y)
			return []int{z, b.call("test::view", b.on(b.r.Values[y].Storage), y)}
		}, 0},
		{"a view between", Options{}, func(b *at) []int {
			y := norm(b)
			view := b.call("test::view", b.on(b.r.Values[y].Storage), y)
			return []int{b.call("aten::silu", b.scratch(), view)}
		}, 0},
		{"changed in place by way of a view", Options{}, func(b *at) []int {
			y := norm(b)
			view := b.call("test::view", b.on(b.r.Values[y].Storage), y)
			b.call("aten::silu_", view, view)
			return []int{b.call("test::map", b.scratch(), y)}
		}, 0},
		{"another type", Options{}, func(b *at) []int {
			z := b.scratch()
			b.r.Values[z].DType = tensor.Float16
			return []int{b.call("aten::silu", z, norm(b))}
		}, 0},
		{"another layout", Options{}, func(b *at) []int {
			z := b.scratch()
			b.r.Storages[b.r.Values[z].Storage].Bytes = 128
			b.r.Values[z].Strides = []int64{2}
			return []int{b.call("aten::silu", z, norm(b))}
		}, 0},
		{"into memory that something reads before", Options{}, func(b *at) []int {
			z := b.scratch()
			b.call("test::map", z, b.x)
			y := norm(b)
			w := b.call("test::map", b.scratch(), z)
			return []int{b.call("aten::silu", z, y), w}
		}, 0},
		{"into a buffer", Options{}, func(b *at) []int {
			return []int{b.call("aten::silu", b.value(recording.Buffer, "state"), norm(b))}
		}, 0},
		{"no activation", Options{}, func(b *at) []int {
			return []int{b.call("test::map", b.scratch(), norm(b))}
		}, 0},
		{"no producer", Options{}, func(b *at) []int {
			return []int{b.call("aten::silu", b.scratch(), b.call("test::map", b.norm, b.x))}
		}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b at
			b.x, b.norm = b.value(recording.Input, "images"), b.scratch()
			outputs := test.make(&b)
			p := b.plan(t, test.options, outputs...)
			if p.Fused != test.fused {
				t.Fatalf("%d pairs, wanted %d", p.Fused, test.fused)
			}
			if want := len(b.r.Operations) - test.fused - views(&b.r); len(p.Step) != want {
				t.Errorf("%d commands, wanted %d", len(p.Step), want)
			}
			if len(p.Recording.Operations) != len(b.r.Operations) || len(p.Ranges) != len(b.r.Operations) {
				t.Error("operations have other numbers than in the recording")
			}
			for i := range b.r.Operations {
				if len(b.r.Operations[i].Results) != 1 {
					t.Error("the recording itself was changed")
				}
			}
		})
	}
}

func views(r *recording.Recording) (n int) {
	for i := range r.Operations {
		if r.Operations[i].Name == "test::view" {
			n++
		}
	}
	return n
}

// The result takes the producer's place; what lay between needs no memory.
func TestFusedResultsMemory(t *testing.T) {
	var b builder
	x := b.value(recording.Input, "images")
	y := b.call("test::norm", b.scratch(), x)
	other := b.call("test::map", b.scratch(), x)
	z := b.call("aten::silu", b.scratch(), y)
	p := b.plan(t, Options{}, b.call("test::map", b.scratch(), z), other)
	if s := p.Storages[b.r.Values[y].Storage]; s.Area != Unused {
		t.Errorf("the value between lies in area %d", s.Area)
	}
	if s := p.Storages[b.r.Values[z].Storage]; s.Area != Arena || s.uses[0] != 0 {
		t.Errorf("the result lies in area %d and is used by %v, wanted from operation 0 on", s.Area, s.uses)
	}
	if c, ok := p.Step[0].(*device.Copy); !ok || c.To.Storage != b.r.Values[z].Storage {
		t.Errorf("the producer writes %+v", p.Step[0])
	}
}

func TestForgottenActivationIsAnError(t *testing.T) {
	var b builder
	x := b.value(recording.Input, "images")
	z := b.call("aten::silu", b.scratch(), b.call("test::forgetful", b.scratch(), x))
	b.r.Outputs = []recording.Named{{Name: "output", Value: z}}
	if _, err := Make(&b.r, Options{}); err == nil {
		t.Error("a producer that leaves its activation out was not refused")
	}
}
