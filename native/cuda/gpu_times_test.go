//go:build gpu

package cuda

import (
	"slices"
	"testing"
	"time"

	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/kernels"
)

func TestGPUKernelsLoad(t *testing.T) {
	d := openGPU(t)
	start := time.Now()
	files := kernels.Files()
	d.mu.Lock()
	err := d.ensureModules(files)
	d.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kernel files compiled from nothing and loaded in %v", len(files), time.Since(start))
}

// TestGPUTimes logs what preparation and launches cost.
func TestGPUTimes(t *testing.T) {
	d := openGPU(t)
	_, resolve := arena(t, d, 64<<20)
	var list []device.Command
	for _, c := range []int64{16, 32, 64, 96, 128, 192, 256} {
		for _, size := range []int64{20, 40, 80} {
			for _, k := range []int64{1, 3} {
				for range 3 {
					list = append(list, &device.Convolution{
						X: contiguous(0, tensor.BFloat16, 1, c, size, size), W: contiguous(16<<20, tensor.BFloat16, c, c, k, k),
						Y:       contiguous(32<<20, tensor.BFloat16, 1, c, size, size),
						Padding: []int64{k / 2, k / 2}, Stride: []int64{1, 1}, Dilation: []int64{1, 1}, Groups: 1,
					})
				}
			}
		}
	}
	start := time.Now()
	p := prepare(t, d, resolve, exact, list...)
	t.Logf("%d convolutions of %d signatures prepared in %v, workspace %d", len(list), len(list)/3, time.Since(start), p.WorkspaceBytes())

	small := slices.Repeat([]device.Command{gpuSaxpy(10)}, 1000)
	q := prepare(t, d, resolve, device.Options{}, small...)
	finish(t, q, len(small))
	if _, err := q.Capture(); err != nil {
		t.Fatal(err)
	}
	for what, launch := range map[string]func() error{
		"eager":  func() error { return q.Run(0, len(small)) },
		"replay": q.Replay,
	} {
		var submitted, done time.Duration
		for range 5 {
			start := time.Now()
			if err := launch(); err != nil {
				t.Fatal(err)
			}
			submitted = time.Since(start)
			if err := q.Wait(); err != nil {
				t.Fatal(err)
			}
			done = time.Since(start)
		}
		t.Logf("%s: %d launches submitted in %v, done in %v", what, len(small), submitted, done)
	}
}
