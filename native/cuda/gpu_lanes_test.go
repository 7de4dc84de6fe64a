//go:build gpu

package cuda

import (
	"bytes"
	"testing"
	"time"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// braid is a list of diamonds: an input goes to four chains of library calls and kernels, a chain on a lane and none as
// long as another, and the sum of what they give is the input of the next diamond.
type braid struct {
	list     []device.Command
	schedule device.Schedule
	bytes    int64           // of all blocks
	random   map[int64]int64 // elements of random numbers, by place
	result   int64           // place of the last sum
	elements int64
}

func newBraid(diamonds int) *braid {
	const lanes, elements = 4, 64 * 40 * 40
	b := &braid{schedule: device.Schedule{Lanes: lanes}, random: map[int64]int64{}, elements: elements}
	input := b.block(elements)
	b.random[input] = elements
	weight := b.block(64 * 64 * 9)
	b.random[weight] = 64 * 64 * 9
	var ready []int32 // the command that made input, or none
	for range diamonds {
		sum, tails := b.block(elements), [lanes]int32{}
		last := [lanes]int64{}
		for lane := range lanes {
			x := b.block(elements)
			b.add(lane, &device.Copy{To: at(x), From: at(input), Bytes: 4 * elements}, ready...)
			for range lane + 1 {
				y, z := b.block(elements), b.block(elements)
				c := torchConvolution(tensor.Float32)
				c.X.Offset, c.W.Offset, c.Y.Offset = x, weight, y
				b.add(lane, c)
				b.add(lane, &device.Fill{To: at(z), Bytes: 4 * elements})
				b.add(lane, addTo(y, z, 1.0/64, elements))
				x = z
			}
			b.library(lane, x, weight)
			last[lane] = x
			tails[lane] = int32(len(b.list) - 1)
		}
		b.add(0, &device.Fill{To: at(sum), Bytes: 4 * elements})
		for lane, from := range last {
			b.add(0, addTo(from, sum, 1.0/4, elements), tails[lane])
		}
		input, ready = sum, []int32{int32(len(b.list) - 1)}
	}
	b.result = input
	return b
}

// library adds what else the libraries compute, another call on each lane, and adds a little of its result to x.
func (b *braid) library(lane int, x, weight int64) {
	n, scale, d := b.elements, float32(1.0/1024), b.block(b.elements)
	switch lane {
	case 0:
		w, bias := b.block(512*1000), b.block(1000)
		b.random[w], b.random[bias], n = 512*1000, 1000, 4*1000
		l := torchLinear(tensor.Float32, 4)
		l.A.Offset, l.B.Offset, l.Bias.Offset, l.D.Offset = x, w, bias, d
		b.add(lane, l)
	case 1:
		n = 100 * 80
		b.add(lane, &device.Matmul{A: contiguous(x, tensor.Float32, 100, 90), B: contiguous(weight, tensor.Float32, 90, 80),
			D: contiguous(d, tensor.Float32, 100, 80)})
	case 2:
		c := torchConvolution(tensor.Float32)
		c.Direction, n, scale = device.BackwardFilter, 64*64*9, 1.0/(1<<20)
		c.X.Offset, c.W.Offset, c.Y.Offset = x, d, x
		b.add(lane, c)
	case 3:
		c := torchConvolution(tensor.Float32)
		c.Direction = device.BackwardData
		c.X.Offset, c.W.Offset, c.Y.Offset = d, weight, x
		b.add(lane, c)
	}
	b.add(lane, addTo(d, x, scale, int32(n)))
}

func (b *braid) block(elements int64) int64 {
	place := b.bytes
	b.bytes += (4*elements + alignment - 1) / alignment * alignment
	return place
}

func (b *braid) add(lane int, c device.Command, waits ...int32) {
	b.list = append(b.list, c)
	b.schedule.Lane = append(b.schedule.Lane, uint8(lane))
	b.schedule.Waits = append(b.schedule.Waits, waits)
}

// addTo adds a*x to y.
func addTo(x, y int64, a float32, n int32) *device.Kernel {
	k := gpuSaxpy(n)
	k.Args = []any{at(x), at(y), a, n}
	return k
}

func TestGPULanes(t *testing.T) {
	d := openGPU(t)
	b := newBraid(3)
	m, resolve := arena(t, d, b.bytes)
	for place, n := range b.random {
		if err := m.Write(place, encode(tensor.Float32, randoms(place+1, n))); err != nil {
			t.Fatal(err)
		}
	}
	laned := exact
	laned.Schedule = &b.schedule
	one, four := prepare(t, d, resolve, exact, b.list...), prepare(t, d, resolve, laned, b.list...)
	t.Logf("%d commands, workspace %d on one lane, %d on four", len(b.list), one.WorkspaceBytes(), four.WorkspaceBytes())
	for i, c := range four.Choices() {
		if c != one.Choices()[i] {
			t.Errorf("command %d: %s on one lane, %s on four", i, one.Choices()[i], c)
		}
	}
	finish(t, one, len(b.list))
	size := 4 * b.elements
	want := read(t, m, b.result, size)
	if numbers := decode(tensor.Float32, want); numbers[0] == 0 || numbers[0] != numbers[0] {
		t.Fatalf("the first number is %v", numbers[0])
	}
	nodes, err := one.Capture()
	if err != nil {
		t.Fatal(err)
	}
	lanedNodes, err := four.Capture()
	if err != nil {
		t.Fatal(err)
	}
	if nodes != lanedNodes {
		t.Errorf("%d nodes on four lanes, %d on one", lanedNodes, nodes)
	}
	const repetitions = 300
	for _, way := range []struct {
		name string
		p    device.Program
		run  func() error
	}{
		{"eager on four lanes", four, func() error { return four.Run(0, len(b.list)) }},
		{"replay on four lanes", four, four.Replay},
		{"replay on one lane", one, one.Replay},
	} {
		start := time.Now()
		var busy time.Duration
		for i := range repetitions {
			if err := m.Fill(b.result, size, 0xff); err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			for range i%3 + 1 { // one, and two or three in a row
				if err := way.run(); err != nil {
					t.Fatal(err)
				}
			}
			if err := way.p.Wait(); err != nil {
				t.Fatal(err)
			}
			busy += time.Since(before) / time.Duration(i%3+1)
			if !bytes.Equal(read(t, m, b.result, size), want) {
				t.Fatalf("%s: repetition %d differs from one lane", way.name, i)
			}
		}
		t.Logf("%s: %v a run, %v in all", way.name, busy/repetitions, time.Since(start))
	}
}
