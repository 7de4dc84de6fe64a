package devicetest

import (
	"slices"
	"testing"

	"samebits/native/device"
)

func programRanges(t *testing.T, b *bench) {
	counters := storage(b, make([]int32, 4))
	var list []device.Command
	for i := range int64(4) {
		list = append(list, count(device.Pointer{Storage: counters.Storage, Offset: 4 * i}))
	}
	p := b.prepare(list...)
	for _, r := range [][2]int{{0, 4}, {1, 3}, {3, 4}, {2, 2}} {
		b.must(p.Run(r[0], r[1]))
	}
	b.must(p.Wait())
	if got := read[int32](b, counters, 4); !slices.Equal(got, []int32{1, 2, 2, 2}) {
		t.Errorf("commands ran %v times, wanted 1, 2, 2, 2", got)
	}
}

func programCopyFill(t *testing.T, b *bench) {
	const n = 3<<20 + 5
	xs := make([]uint8, n)
	for i := range xs {
		xs[i] = uint8(i * 7)
	}
	x, y := storage(b, xs), storage(b, make([]uint8, n))
	b.run(
		&device.Fill{To: y, Bytes: n, Byte: 9},
		&device.Copy{To: device.Pointer{Storage: y.Storage, Offset: 3}, From: device.Pointer{Storage: x.Storage, Offset: 1}, Bytes: n - 10},
		&device.Fill{To: device.Pointer{Storage: y.Storage, Offset: 100}, Bytes: 2, Byte: 1},
	)
	want := slices.Repeat([]uint8{9}, n)
	copy(want[3:], xs[1:n-9])
	want[100], want[101] = 1, 1
	if !slices.Equal(read[uint8](b, y, n), want) {
		t.Errorf("copy and fill gave other bytes")
	}
}

func programEmpty(t *testing.T, b *bench) {
	p := b.prepare()
	b.must(p.Run(0, 0))
	nodes, err := p.Capture()
	if err != nil || nodes != 0 {
		t.Errorf("captured %d nodes, %v", nodes, err)
	}
	b.must(p.Replay())
	b.must(p.Wait())
}

// Two programs of one device share memory and nothing else.
func programTwo(t *testing.T, b *bench) {
	counters := storage(b, make([]int32, 2))
	second := device.Pointer{Storage: counters.Storage, Offset: 4}
	p, q := b.prepare(count(counters)), b.prepare(count(counters), count(second))
	if _, err := p.Capture(); err != nil {
		t.Fatal(err)
	}
	b.must(q.Run(0, 2))
	b.must(q.Wait())
	b.must(p.Replay())
	b.must(p.Wait())
	if q.Replay() == nil {
		t.Errorf("the second program replays the graph of the first")
	}
	if got := read[int32](b, counters, 2); !slices.Equal(got, []int32{2, 1}) {
		t.Errorf("commands ran %v times, wanted 2, 1", got)
	}
}

// Lanes change nothing but the time; a program that has them runs whole or not at all.
func programSchedule(t *testing.T, b *bench) {
	const n = 1000
	ys, xs, want := axpy(n)
	y, x := storage(b, ys), storage(b, xs)
	left, right := storage(b, make([]float32, n)), storage(b, make([]float32, n))
	list := []device.Command{
		kernel("check_axpy_f32", 13, 96, 0, y, x, float32(3), int64(n)),
		&device.Copy{To: left, From: y, Bytes: 4 * n},
		&device.Copy{To: right, From: y, Bytes: 4 * n},
		kernel("check_axpy_f32", 13, 96, 0, left, right, float32(-1), int64(n)),
	}
	schedule := &device.Schedule{Lanes: 2, Lane: []uint8{0, 0, 1, 0}, Waits: [][]int32{nil, nil, {0}, {2}}}
	p, err := b.Prepare(list, b.resolve, device.Options{Schedule: schedule})
	b.must(err)
	b.programs = append(b.programs, p)
	if p.Run(1, 3) == nil {
		t.Errorf("ran a part of a program with a schedule")
	}
	check := func(how string) {
		b.must(p.Wait())
		if !slices.Equal(read[float32](b, right, n), want) || !slices.Equal(read[float32](b, left, n), make([]float32, n)) {
			t.Errorf("%s: wrong results", how)
		}
	}
	b.must(p.Run(0, len(list)))
	check("eager")
	_, err = p.Capture()
	b.must(err)
	b.must(b.storages[y.Storage].Write(0, rawFloats(ys)))
	b.must(b.storages[right.Storage].Fill(0, 4*n, 0xff))
	b.must(p.Replay())
	check("replay")
}

// A device asks once for places, of the whole list, and obeys the schedule that it is given then.
func programPlaced(t *testing.T, b *bench) {
	const n = 1000
	ys, xs, want := axpy(n)
	y, x, copied := storage(b, ys), storage(b, xs), storage(b, make([]float32, n))
	list := []device.Command{
		kernel("check_axpy_f32", 13, 96, 0, y, x, float32(3), int64(n)),
		&device.Copy{To: copied, From: y, Bytes: 4 * n},
	}
	asked := 0
	p, err := b.Prepare(list, b.resolve, device.Options{Place: func(workspaces []int64) (device.Placement, error) {
		asked++
		if len(workspaces) != len(list) || slices.Max(workspaces) > 0 {
			t.Errorf("workspaces %v for commands without a library", workspaces)
		}
		return device.Placement{Workspaces: make([]device.Pointer, len(list)),
			Schedule: &device.Schedule{Lanes: 2, Lane: []uint8{0, 1}, Waits: [][]int32{nil, {0}}}}, nil
	}})
	b.must(err)
	b.programs = append(b.programs, p)
	if asked != 1 {
		t.Errorf("asked for places %d times", asked)
	}
	if p.Run(0, 1) == nil {
		t.Errorf("ran a part of a program with a schedule")
	}
	b.must(p.Run(0, len(list)))
	b.must(p.Wait())
	if !slices.Equal(read[float32](b, copied, n), want) {
		t.Errorf("wrong results")
	}
}

func graphReplay(t *testing.T, b *bench) {
	const n = 5000
	ys, xs, want := axpy(n)
	y, x := storage(b, ys), storage(b, xs)
	again := storage(b, ys)
	list := []device.Command{
		kernel("check_axpy_f32", 13, 96, 0, y, x, float32(3), int64(n)),
		&device.Copy{To: again, From: y, Bytes: 4 * n},
		&device.Fill{To: y, Bytes: 4, Byte: 0xff},
	}
	p := b.prepare(list...)
	nodes, err := p.Capture()
	if err != nil {
		t.Fatal(err)
	}
	if nodes != len(list) {
		t.Errorf("%d commands are %d nodes", len(list), nodes)
	}
	run := func(f func() error) []float32 {
		b.must(b.storages[y.Storage].Write(0, rawFloats(ys)))
		b.must(b.storages[again.Storage].Fill(0, 4*n, 0xff))
		b.must(f())
		b.must(p.Wait())
		return read[float32](b, again, n)
	}
	if got := run(func() error { return p.Run(0, len(list)) }); !slices.Equal(got, want) {
		t.Errorf("the eager run is wrong")
	}
	for i := range 5 {
		if got := run(p.Replay); !slices.Equal(got, want) {
			t.Errorf("replay %d is wrong", i)
		}
	}
	if got := run(func() error { return p.Run(0, len(list)) }); !slices.Equal(got, want) {
		t.Errorf("an eager run after replays is wrong")
	}
}

// A graph keeps addresses, not contents.
func graphFollowsMemory(t *testing.T, b *bench) {
	x, y := storage(b, []uint8{1, 2, 3}), storage(b, make([]uint8, 3))
	p := b.prepare(&device.Copy{To: y, From: x, Bytes: 3})
	if _, err := p.Capture(); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]uint8{{1, 2, 3}, {7, 8, 9}} {
		b.must(b.storages[x.Storage].Write(0, want))
		b.must(p.Replay())
		b.must(p.Wait())
		if got := read[uint8](b, y, 3); !slices.Equal(got, want) {
			t.Errorf("replayed %v, wanted %v", got, want)
		}
	}
}

func graphCaptureRunsNothing(t *testing.T, b *bench) {
	counter := storage(b, []int32{0})
	p := b.prepare(count(counter))
	if _, err := p.Capture(); err != nil {
		t.Fatal(err)
	}
	b.must(p.Wait())
	if got := read[int32](b, counter, 1); got[0] != 0 {
		t.Errorf("the capture ran the list")
	}
}

func graphRelease(t *testing.T, b *bench) {
	counter := storage(b, []int32{0})
	p := b.prepare(count(counter))
	b.must(p.Release())
	for range 2 {
		if _, err := p.Capture(); err != nil {
			t.Fatal(err)
		}
		b.must(p.Replay())
		b.must(p.Wait())
		b.must(p.Release())
		if p.Replay() == nil {
			t.Errorf("replayed a graph that was released")
		}
	}
	b.must(p.Run(0, 1))
	b.must(p.Wait())
	if got := read[int32](b, counter, 1); got[0] != 3 {
		t.Errorf("ran %d times, wanted 3", got[0])
	}
}
