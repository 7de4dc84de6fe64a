//go:build linux && amd64

package host

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// Programs of several goroutines run on one device at once, with signals of a profiler arriving on fibers.
func TestParallelPrograms(t *testing.T) {
	if err := pprof.StartCPUProfile(&bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	defer pprof.StopCPUProfile()
	l := newLauncher(t, Threads(4))
	const users, block, blocks = 4, 256, 30
	c := convolutionCase{"", []int64{1, 8, 20, 20}, []int64{16, 8, 3, 3}, []int64{1, 1}, []int64{1, 1}, []int64{1, 1}, 1}
	x, w, y := randomView(1, tensor.Float32, "nchw", c.x), randomView(2, tensor.Float32, "nchw", c.w), randomView(3, tensor.Float32, "nchw", c.outSizes())
	c.reference(t, x, w, y)
	var numbers, sums [block * blocks]int32
	for i := range numbers {
		numbers[i] = int32(i % 7)
		sums[i] = numbers[i]
		if i%block > 0 {
			sums[i] += sums[i-1]
		}
	}
	type user struct {
		program       device.Program
		scan, product device.Pointer
	}
	from, image, weights := place(l, numbers[:]), place(l, x.data), place(l, w.data)
	at := func(p device.Pointer, v view) device.Tensor {
		p.Offset = v.offset * v.dtype.Size()
		return device.Tensor{Pointer: p, DType: v.dtype, Sizes: v.sizes, Strides: v.strides}
	}
	all := make([]user, users)
	for i := range all {
		u := &all[i]
		u.scan, u.product = place(l, sums[:]), place(l, y.data)
		var err error
		u.program, err = l.prepare(
			&device.Kernel{File: "blocks", Entry: "block_scan", Grid: line(blocks), Block: line(block), Shared: 4 * block, Args: []any{u.scan, from}},
			&device.Convolution{X: at(image, x), W: at(weights, w), Y: at(u.product, y), Padding: c.padding, Stride: c.stride, Dilation: c.dilation, Groups: 1},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer u.program.Close()
		if _, err := u.program.Capture(); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() {
			u := &all[i]
			scan, product := l.memories[u.scan.Storage], l.memories[u.product.Storage]
			want := make([]byte, scan.Bytes())
			got := make([]byte, scan.Bytes())
			if err := scan.Read(0, want); err != nil {
				t.Error(err)
			}
			for stop := time.Now().Add(300 * time.Millisecond); time.Now().Before(stop); {
				err := errors.Join(scan.Fill(0, scan.Bytes(), 0xff), product.Fill(0, product.Bytes(), 0xff), u.program.Run(0, 2),
					u.program.Replay(), scan.Read(0, got))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("goroutine %d: scans differ, %v", i, err)
					return
				}
				result := y
				result.data = make([]byte, product.Bytes())
				if err := product.Read(0, result.data); err != nil {
					t.Error(err)
					return
				}
				if at := differs(y, result); at != "" {
					t.Errorf("goroutine %d: %s", i, at)
					return
				}
			}
		})
	}
	running.Wait()
}

// BenchmarkLaunch measures one launch in a list: of a block that does nothing, of many blocks, and of barriers.
func BenchmarkLaunch(b *testing.B) {
	for _, c := range []struct {
		name, entry  string
		blocks, size uint32
	}{
		{"one block of 32", "check_count", 1, 32},
		{"100 blocks of 128", "check_count", 100, 128},
		{"30 blocks of 256 with a barrier", "check_reverse", 30, 256},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d threads", c.name, threads), func(b *testing.B) {
				d := open(b, Threads(threads))
				m, err := d.Alloc(int64(c.blocks * c.size * 8))
				if err != nil {
					b.Fatal(err)
				}
				defer m.Free()
				k := &device.Kernel{File: "check", Entry: c.entry, Grid: line(c.blocks), Block: line(c.size), Shared: 4 * c.size, Args: []any{device.Pointer{}}}
				if c.entry == "check_reverse" {
					k.Args = append(k.Args, device.Pointer{Offset: int64(c.blocks * c.size * 4)})
				}
				list := make([]device.Command, 1000)
				for i := range list {
					list[i] = k
				}
				p, err := d.Prepare(list, func(p device.Pointer) uintptr { return m.Address() + uintptr(p.Offset) }, device.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer p.Close()
				for b.Loop() {
					if err := p.Run(0, len(list)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(list)), "ns/launch")
			})
		}
	}
}

// BenchmarkElementWise measures y = fma(a, x, y) on 4 million floats.
func BenchmarkElementWise(b *testing.B) {
	const n = 4 << 20
	d := open(b)
	m, err := d.Alloc(8 * n)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Free()
	if err := m.Fill(0, 8*n, 0); err != nil {
		b.Fatal(err)
	}
	k := &device.Kernel{File: "check", Entry: "check_axpy_f32", Grid: line(1024), Block: line(256), Args: []any{device.Pointer{}, device.Pointer{Offset: 4 * n}, float32(2), int64(n)}}
	p, err := d.Prepare([]device.Command{k}, func(p device.Pointer) uintptr { return m.Address() + uintptr(p.Offset) }, device.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	b.SetBytes(12 * n)
	for b.Loop() {
		if err := p.Run(0, 1); err != nil {
			b.Fatal(err)
		}
	}
}
