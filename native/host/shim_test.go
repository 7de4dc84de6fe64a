//go:build linux && amd64

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/native/device"
	"samebits/native/kernels"
)

// testSource takes kernel files from testdata.
func testSource(file string) (string, map[string]string, error) {
	text, err := os.ReadFile(filepath.Join("testdata", file+".cu"))
	return string(text), kernels.Headers(), err
}

// launcher runs kernels of testdata on storages of its own.
type launcher struct {
	t        *testing.T
	device   *Device
	memories []device.Memory
}

func newLauncher(t *testing.T, opts ...Option) *launcher {
	l := &launcher{t: t, device: open(t, append([]Option{withSource(testSource)}, opts...)...)}
	t.Cleanup(func() {
		for _, m := range l.memories {
			if err := m.Free(); err != nil {
				t.Error(err)
			}
		}
	})
	return l
}

func place[T any](l *launcher, data []T) device.Pointer {
	l.t.Helper()
	raw, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		l.t.Fatal(err)
	}
	m, err := l.device.Alloc(int64(len(raw)))
	if err != nil {
		l.t.Fatal(err)
	}
	l.memories = append(l.memories, m)
	if err := m.Write(0, raw); err != nil {
		l.t.Fatal(err)
	}
	return device.Pointer{Storage: len(l.memories) - 1}
}

func fetch[T any](l *launcher, p device.Pointer, n int) []T {
	l.t.Helper()
	data := make([]T, n)
	raw := make([]byte, binary.Size(data))
	if err := l.memories[p.Storage].Read(0, raw); err != nil {
		l.t.Fatal(err)
	}
	if _, err := binary.Decode(raw, binary.LittleEndian, data); err != nil {
		l.t.Fatal(err)
	}
	return data
}

func (l *launcher) prepare(list ...device.Command) (device.Program, error) {
	return l.device.Prepare(list, func(p device.Pointer) uintptr { return l.memories[p.Storage].Address() + uintptr(p.Offset) }, device.Options{})
}

// run launches file/entry, and gives the error of the run.
func (l *launcher) run(name string, grid, block [3]uint32, shared uint32, args ...any) error {
	l.t.Helper()
	file, entry, _ := strings.Cut(name, "/")
	p, err := l.prepare(&device.Kernel{File: file, Entry: entry, Grid: grid, Block: block, Shared: shared, Args: args})
	if err != nil {
		l.t.Fatal(err)
	}
	defer p.Close()
	return errors.Join(p.Run(0, 1), p.Wait())
}

func (l *launcher) must(name string, grid, block [3]uint32, shared uint32, args ...any) {
	l.t.Helper()
	if err := l.run(name, grid, block, shared, args...); err != nil {
		l.t.Fatal(err)
	}
}

func line(n uint32) [3]uint32 { return [3]uint32{n, 1, 1} }

func TestBarriers(t *testing.T) {
	l := newLauncher(t, Threads(3))
	for _, block := range []uint32{1, 31, 32, 33, 100, 1024} {
		t.Run(fmt.Sprintf("scan by %d", block), func(t *testing.T) {
			const blocks = 7
			x, want := make([]int32, blocks*block), make([]int32, blocks*block)
			for i := range x {
				x[i] = int32(i*37%101) - 50
				want[i] = x[i]
				if uint32(i)%block > 0 {
					want[i] += want[i-1]
				}
			}
			y := place(l, make([]int32, len(x)))
			l.must("blocks/block_scan", line(blocks), line(block), 4*block, y, place(l, x))
			if got := fetch[int32](l, y, len(x)); !slices.Equal(got, want) {
				t.Errorf("got %v, wanted %v", got, want)
			}
		})
	}
	t.Run("leave early", func(t *testing.T) {
		const block = 70
		y := place(l, make([]int32, block))
		l.must("blocks/leave_early", line(1), line(block), 0, y)
		for i, rounds := range fetch[int32](l, y, block) {
			want := int32(i)
			if i == 0 {
				want = block + 1
			}
			if rounds != want {
				t.Errorf("thread %d was in %d rounds, wanted %d", i, rounds, want)
			}
		}
	})
	t.Run("leave first", func(t *testing.T) {
		for _, stay := range []int32{1, 33, 64, 100} {
			y := place(l, []int32{0})
			l.must("blocks/leave_first", line(1), line(100), 0, y, stay)
			if got := fetch[int32](l, y, 1)[0]; got != stay {
				t.Errorf("%d threads met, wanted %d", got, stay)
			}
		}
	})
	t.Run("counts", func(t *testing.T) {
		const block = 50
		y := place(l, make([]int32, 5*block))
		l.must("blocks/counts", line(1), line(block), 0, y)
		for i := range block {
			if got := fetch[int32](l, y, 5*block)[5*i : 5*i+5]; !slices.Equal(got, []int32{17, 1, 0, 1, 0}) {
				t.Fatalf("thread %d got %v", i, got)
			}
		}
	})
	t.Run("three dimensions", func(t *testing.T) {
		const blocks = 2 * 3 * 4
		y := place(l, make([]int32, blocks*120))
		l.must("blocks/transpose", [3]uint32{2, 3, 4}, [3]uint32{6, 5, 4}, 0, y)
		for i, v := range fetch[int32](l, y, blocks*120) {
			j := i % 120
			if want := int32(j/20 + 10*(j/4%5) + 100*(j%4)); v != want {
				t.Fatalf("element %d is %d, wanted %d", i, v, want)
			}
		}
	})
	t.Run("deep stacks", func(t *testing.T) {
		y := place(l, make([]int32, 1024))
		l.must("blocks/deep", line(1), line(1024), 0, y)
		for i, v := range fetch[int32](l, y, 1024) {
			if v != int32(i*4096) {
				t.Fatalf("thread %d got %d", i, v)
			}
		}
	})
	t.Run("shared memory is poisoned", func(t *testing.T) {
		y := place(l, make([]uint32, 64))
		l.must("blocks/unwritten", line(5), line(64), 256, y)
		for _, v := range fetch[uint32](l, y, 64) {
			if v != 0xffffffff {
				t.Fatalf("fresh shared memory is %#x", v)
			}
		}
	})
}

func TestWarps(t *testing.T) {
	l := newLauncher(t)
	const block = 96
	t.Run("shuffles", func(t *testing.T) {
		y := place(l, make([]int32, 12*block))
		l.must("warps/raw_shuffles", line(1), line(block), 0, y)
		got := fetch[int32](l, y, 12*block)
		for thread := range block {
			i := thread % 32
			or := func(ok bool, lane int) int32 {
				if ok {
					return int32(lane)
				}
				return int32(i)
			}
			want := []int32{
				5, int32((i + 1) % 32), int32(i/8*8 + 3), or(i >= 3, i-3), or(i%8 >= 3, i-3), or(i+9 < 32, i+9), or(i%16+3 < 16, i+3),
				int32(i ^ 16), or(i^5 <= i|3, i^5), or(i+1 < 32, i+1), int32(i ^ 1), 31,
			}
			if !slices.Equal(got[12*thread:12*thread+12], want) {
				t.Errorf("thread %d: %v, wanted %v", thread, got[12*thread:12*thread+12], want)
			}
		}
	})
	t.Run("part of a warp", func(t *testing.T) {
		y := place(l, make([]int32, 3*block))
		l.must("warps/part_shuffles", line(1), line(block), 0, y)
		got := fetch[int32](l, y, 3*block)
		for thread := range block {
			i, odd := thread%32, uint32(0xaaaaaaaa)
			want := []int32{20, int32(odd &^ 0x3ff), 0}
			if i < 10 {
				want = []int32{int32(i ^ 1), int32(odd & 0x3ff), 1}
			}
			if !slices.Equal(got[3*thread:3*thread+3], want) {
				t.Errorf("thread %d: %v, wanted %v", thread, got[3*thread:3*thread+3], want)
			}
		}
	})
	t.Run("votes", func(t *testing.T) {
		y := place(l, make([]uint32, 3*block))
		l.must("warps/votes", line(1), line(block), 0, y)
		got := fetch[uint32](l, y, 3*block)
		for thread := range block {
			want := []uint32{0, b2u(thread/32 == 1), b2u(thread/32 == 0)}
			for i := range 32 {
				want[0] |= b2u((thread/32*32+i)%3 == 0) << i
			}
			if !slices.Equal(got[3*thread:3*thread+3], want) {
				t.Errorf("thread %d: %x, wanted %x", thread, got[3*thread:3*thread+3], want)
			}
		}
	})
	t.Run("reductions", func(t *testing.T) {
		x := make([]float32, block)
		for i := range x {
			x[i] = float32(i*7%13) / 3
		}
		y := place(l, make([]float32, 12*block))
		l.must("warps/reductions", line(1), line(block), 0, y, place(l, x))
		got := fetch[float32](l, y, 12*block)
		for i := 0; i < len(got); i += 2 {
			if got[i] != got[i+1] {
				t.Errorf("thread %d, pair %d: the helper gives %v, shuffles give %v", i/12, i%12/2, got[i], got[i+1])
			}
		}
	})
	t.Run("syncwarp", func(t *testing.T) {
		y := place(l, make([]int32, 64))
		l.must("warps/neighbours", line(1), line(64), 0, y)
		for i, v := range fetch[int32](l, y, 64) {
			if want := int32(16 * (i/2*4 + 1)); v != want {
				t.Errorf("lane %d got %d, wanted %d", i, v, want)
			}
		}
	})
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func TestAtomics(t *testing.T) {
	const block, blocks, sum = 100, 40, 99 * 100 / 2 * 40
	for _, threads := range []int{1, 3} {
		l := newLauncher(t, Threads(threads))
		i := place(l, []int32{0, 0, -5, 5, 0, -1, 0, 0, 0})
		u := place(l, []uint32{0, 0, 0})
		w := place(l, []uint64{0, 0})
		f, d := place(l, []float32{0}), place(l, []float64{0})
		l.must("numbers/atomics", line(blocks), line(block), 0, i, u, w, f, d)
		got := fetch[int32](l, i, 9)
		if got[7] < 1 || got[7] > block || got[8] != got[7] {
			t.Errorf("compare and swap, exchange: %v", got[7:])
		}
		if want := []int32{sum, -sum, 99, -99, 1<<31 - 1, -1 << 31, 0}; !slices.Equal(got[:7], want) {
			t.Errorf("ints %v, wanted %v", got[:7], want)
		}
		if got := fetch[uint32](l, u, 3); !slices.Equal(got, []uint32{0, 0, 0xfffffff7}) {
			t.Errorf("unsigned %v", got)
		}
		if got := fetch[uint64](l, w, 2); !slices.Equal(got, []uint64{blocks * block << 33, sum}) {
			t.Errorf("64 bits %v", got)
		}
		if got := fetch[float32](l, f, 1)[0]; got != sum {
			t.Errorf("float %v", got)
		}
		if got := fetch[float64](l, d, 1)[0]; got != sum/2 {
			t.Errorf("double %v", got)
		}
	}
}

func TestBits(t *testing.T) {
	l := newLauncher(t)
	const a, b = uint32(0x12345670), uint32(0x9abcdef1)
	y := place(l, make([]uint32, 16))
	l.must("numbers/bits", line(1), line(1), 0, y, a, b)
	high, _ := bits.Mul32(a, b)
	both := uint64(b)<<32 | uint64(a)
	want := []uint32{
		uint32(bits.OnesCount32(a)), uint32(bits.LeadingZeros32(a)), uint32(bits.TrailingZeros32(a) + 1), bits.Reverse32(a), high,
		uint32(both << 8 >> 32), uint32(both >> 8), uint32(bits.OnesCount64(both)), 63, 2, 0xffffffff, 7, 32, 1, 0xffffffff, 0xffffffff,
	}
	if got := fetch[uint32](l, y, 16); !slices.Equal(got, want) {
		t.Errorf("got %x, wanted %x", got, want)
	}
	x := place(l, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	v := place(l, make([]float32, 8))
	l.must("numbers/vectors", line(1), line(2), 0, v, x, int32(2))
	if got := fetch[float32](l, v, 8); !slices.Equal(got, []float32{4, 3, 2, 1, 8, 7, 6, 5}) {
		t.Errorf("vectors %v", got)
	}
}

// A kernel that fails gives an error that says where, poisons its program, and nothing else.
func TestFailures(t *testing.T) {
	for _, threads := range []int{1, 3} {
		l := newLauncher(t, Threads(threads))
		negative := make([]int32, 640)
		negative[577] = -1
		for _, c := range []struct {
			name   string
			kernel *device.Kernel
			says   []string
		}{
			{"deadlock", &device.Kernel{Entry: "deadlock", Grid: line(20), Block: line(64), Args: []any{place(l, make([]int32, 20))}}, []string{"deadlock", "block (2,0,0)"}},
			{"trap", &device.Kernel{Entry: "trap", Grid: line(10), Block: line(64), Args: []any{place(l, negative)}}, []string{"trap", "block (9,0,0) thread (1,0,0)"}},
		} {
			t.Run(fmt.Sprintf("%s by %d", c.name, threads), func(t *testing.T) {
				c.kernel.File = "blocks"
				after := place(l, []uint8{0})
				p, err := l.prepare(&device.Fill{To: after, Bytes: 1, Byte: 1}, c.kernel, &device.Fill{To: after, Bytes: 1, Byte: 2})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				err = p.Run(0, 3)
				problems, ok := diag.Of(err)
				if !ok || problems[0].Reason != "KERNEL_FAILED" || problems[0].Path != "commands[1]" {
					t.Fatalf("wanted KERNEL_FAILED at commands[1], got %v", err)
				}
				for _, says := range append(c.says, "blocks/"+c.name) {
					if !strings.Contains(err.Error(), says) {
						t.Errorf("the error does not say %q: %v", says, err)
					}
				}
				if got := fetch[uint8](l, after, 1)[0]; got != 1 {
					t.Errorf("commands after the failure ran")
				}
				if _, captured := p.Capture(); p.Run(0, 1) == nil || p.Wait() == nil || p.Replay() == nil || captured == nil {
					t.Errorf("the program goes on after a failure")
				}
			})
		}
		// The device goes on, with the stacks that were left.
		y := place(l, []int32{0})
		l.must("blocks/leave_first", line(1), line(100), 0, y, int32(60))
		if got := fetch[int32](l, y, 1)[0]; got != 60 {
			t.Errorf("after failures: %d threads met, wanted 60", got)
		}
	}
}
