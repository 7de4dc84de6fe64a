package devicetest

import (
	"runtime"
	"slices"
	"testing"

	"samebits/bridge/arm"
	"samebits/native/device"
)

func graphNodes(t *testing.T, b *bench) {
	x, y := storage(b, []uint8{1, 2, 3}), storage(b, make([]uint8, 3))
	p := b.prepare(count(storage(b, []int32{0})), &device.Copy{To: y, From: x, Bytes: 3}, &device.Fill{To: x, Bytes: 2, Byte: 7})
	if got := p.Nodes(); got != nil {
		t.Errorf("without a graph there are %v", got)
	}
	nodes, err := p.Capture()
	b.must(err)
	got, sum := p.Nodes(), int64(0)
	for _, n := range got {
		sum += n
	}
	if got[arm.KernelNode] != 1 || got[arm.CopyNode] != 1 || got[arm.SetNode] != 1 || sum != int64(nodes) {
		t.Errorf("of %d nodes there are %v", nodes, got)
	}
	b.must(p.Release())
	if got := p.Nodes(); got != nil {
		t.Errorf("of a graph that was released there are %v", got)
	}
}

// A capture that fails in its midst leaves a program that runs, and that can be captured again.
func graphBroken(t *testing.T, b *bench) {
	counter := storage(b, []int32{0})
	p := b.prepare(count(counter), count(counter), count(counter))
	breaker, ok := p.(device.Breaker)
	if !ok {
		t.Skip("the device breaks no captures")
	}
	breaker.BreakCapture()
	if _, err := p.Capture(); err == nil {
		t.Fatal("the capture did not fail")
	}
	if p.Replay() == nil {
		t.Error("replayed a graph that was not captured")
	}
	b.must(p.Run(0, 3))
	b.must(p.Wait())
	_, err := p.Capture()
	b.must(err)
	b.must(p.Replay())
	b.must(p.Wait())
	if got := read[int32](b, counter, 1); got[0] != 6 {
		t.Errorf("ran %d times, wanted 6", got[0])
	}
}

// Steps on another stream come after those before the switch, replayed or not.
func graphOtherStream(t *testing.T, b *bench) {
	const n = 1 << 20
	x, y, z := storage(b, make([]uint8, n)), storage(b, make([]uint8, n)), storage(b, make([]uint8, n))
	p := b.prepare(&device.Copy{To: z, From: y, Bytes: n}, &device.Copy{To: y, From: x, Bytes: n})
	switcher, ok := p.(device.Switcher)
	if !ok {
		t.Skip("the device has no streams")
	}
	_, err := p.Capture()
	b.must(err)
	for i := range 6 {
		want := slices.Repeat([]uint8{uint8(i + 1)}, n)
		b.must(b.storages[x.Storage].Write(0, want))
		for range 20 { // they hold the stream while it is switched
			b.must(p.Replay())
		}
		b.must(switcher.SwitchStream())
		if i%2 == 0 {
			b.must(p.Replay())
		} else {
			b.must(p.Run(0, 2))
		}
		b.must(p.Wait())
		if !slices.Equal(read[uint8](b, z, n), want) {
			t.Errorf("step %d on another stream is wrong", i)
		}
	}
}

// A capture is not disturbed by what other threads do meanwhile, and outlives its own.
func graphOtherThread(t *testing.T, b *bench) {
	bustler, ok := b.Device.(device.Bustler)
	if !ok {
		t.Skip("the device has nothing to do for other threads")
	}
	counter := storage(b, []int32{0})
	p := b.prepare(slices.Repeat([]device.Command{count(counter)}, 2000)...)
	stop, bustled, captured := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		for {
			select {
			case <-stop:
				bustled <- nil
				return
			default:
			}
			if err := bustler.Bustle(); err != nil {
				bustled <- err
				return
			}
		}
	}()
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the function
		_, err := p.Capture()
		captured <- err
	}()
	b.must(<-captured)
	close(stop)
	b.must(<-bustled)
	b.must(p.Replay())
	b.must(p.Wait())
	if got := read[int32](b, counter, 1); got[0] != 2000 {
		t.Errorf("ran %d times, wanted 2000", got[0])
	}
}
