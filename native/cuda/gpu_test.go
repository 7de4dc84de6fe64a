//go:build gpu

package cuda

// Tests on a GPU, with PyTorch's own libraries. Build them where Go is and run them where the GPU is:
//
//	go test -c -tags gpu -o samebits-gpu-test ./native/cuda
//	./samebits-gpu-test -test.v -test.run '^TestGPU'
//
// The libraries come from SAMEBITS_TORCH_LIB, or from the torch that python3 would import.

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/kernels"
)

const gpuKernels = `
extern "C" __global__ void saxpy(const float *x, float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void shared(float *y, int n) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = (float)i;
  __syncthreads();
  if (threadIdx.x == 0) y[0] = s[n - 1];
}
extern "C" __global__ void __launch_bounds__(64) bounded(float *y) { *y = 1; }
extern "C" __global__ void trap(float *y) { *(volatile float *)8 = *y; }
`

func gpuOptions(t *testing.T) Options {
	t.Helper()
	o := Options{Folders: Folders(), Cache: t.TempDir(), Log: func(line string) { t.Log(line) }}
	if len(o.Folders) == 0 {
		out, err := exec.Command("python3", "-c",
			"import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec('torch').origin)))").Output()
		if err != nil {
			t.Fatalf("set %s: python3 does not say where torch is: %v", FoldersVariable, err)
		}
		o.Folders, _ = filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "nvidia", "*", "lib"))
	}
	o.Source = func(file string) (string, map[string]string, error) {
		if file == "test" {
			return gpuKernels, nil, nil
		}
		return kernels.Source(file)
	}
	return o
}

func openGPU(t *testing.T) *Device {
	t.Helper()
	start := time.Now()
	d, err := Open(0, gpuOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("open took %v", time.Since(start))
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !t.Failed() {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func gpuSaxpy(n int32) *device.Kernel {
	return &device.Kernel{File: "test", Entry: "saxpy", Grid: [3]uint32{uint32(n+255) / 256, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []any{at(0), at(1 << 20), float32(2), n}}
}

// finish runs a whole program and waits.
func finish(t *testing.T, p device.Program, commands int) {
	t.Helper()
	if err := p.Run(0, commands); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, m device.Memory, offset, bytes int64) []byte {
	t.Helper()
	out := make([]byte, bytes)
	if err := m.Read(offset, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGPUEnvironment(t *testing.T) {
	d := openGPU(t)
	for _, s := range d.Environment() {
		t.Logf("%s = %s", s.Key, s.Value)
	}
	if err := Available(gpuOptions(t)); err != nil {
		t.Error(err)
	}
}

func TestGPURunCaptureReplay(t *testing.T) {
	d := openGPU(t)
	m, resolve := arena(t, d, 4<<20)
	const n = 100000
	p := prepare(t, d, resolve, device.Options{}, &device.Fill{To: at(1 << 20), Bytes: 4 * n}, gpuSaxpy(n),
		&device.Copy{To: at(2 << 20), From: at(1 << 20), Bytes: 4 * n})
	check := func(what string, scale float64, x []float64) {
		t.Helper()
		for i, got := range decode(tensor.Float32, read(t, m, 2<<20, 4*n)) {
			if got != scale*x[i] {
				t.Fatalf("%s: element %d is %v, want %v", what, i, got, scale*x[i])
			}
		}
	}
	first, second := randoms(1, n), randoms(2, n)
	if err := m.Write(0, encode(tensor.Float32, first)); err != nil {
		t.Fatal(err)
	}
	finish(t, p, 3)
	check("eager", 2, first)
	nodes, err := p.Capture()
	if err != nil {
		t.Fatal(err)
	}
	if nodes != 3 {
		t.Errorf("%d nodes, want 3", nodes)
	}
	if err := m.Write(0, encode(tensor.Float32, second)); err != nil {
		t.Fatal(err)
	}
	check("capture runs nothing", 2, first)
	for range 5 {
		if err := m.Fill(1<<20, 3<<20, 0xff); err != nil {
			t.Fatal(err)
		}
		if err := p.Replay(); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		check("replay", 2, second)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestGPUDynamicSharedMemory(t *testing.T) {
	d := openGPU(t)
	m, resolve := arena(t, d, 4096)
	k := func(bytes uint32) *device.Kernel {
		return &device.Kernel{File: "test", Entry: "shared", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{128, 1, 1}, Shared: bytes,
			Args: []any{at(0), int32(bytes / 4)}}
	}
	finish(t, prepare(t, d, resolve, device.Options{}, k(100<<10), k(64<<10), k(200<<10)), 3)
	if got := decode(tensor.Float32, read(t, m, 0, 4))[0]; got != 50*1024-1 {
		t.Errorf("%v", got)
	}
	_, err := d.Prepare([]device.Command{k(1 << 20)}, resolve, device.Options{})
	mustHave(t, err, "kernel shared", "dynamic shared memory")
}

func TestGPUMemory(t *testing.T) {
	d := openGPU(t)
	_, err := d.Alloc(1 << 45)
	mustHave(t, err, "OUT_OF_MEMORY", "are free")
	var blocks []device.Memory
	for _, bytes := range []int64{1, 511, 513, 5000, 1 << 20, 3 << 20} {
		m, err := d.Alloc(bytes)
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, m)
	}
	for _, m := range blocks {
		if err := m.Free(); err != nil {
			t.Fatal(err)
		}
	}
	if d.InUse() != 0 || d.Peak() < 4<<20 {
		t.Errorf("in use %d, peak %d", d.InUse(), d.Peak())
	}
}

func TestGPUBadLaunch(t *testing.T) {
	d := openGPU(t)
	_, resolve := arena(t, d, 4<<20)
	// A block that GPUs can launch, but not with this kernel.
	bad := &device.Kernel{File: "test", Entry: "bounded", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{128, 1, 1}, Args: []any{at(0)}}
	p := prepare(t, d, resolve, device.Options{}, gpuSaxpy(10), bad)
	mustHave(t, p.Run(0, 2), "commands[1]: LAUNCH_FAILED: kernel bounded: driver: cuLaunchKernel: CUDA_ERROR_")
	_, err := p.Capture()
	mustHave(t, err, "commands[1]: CAPTURE_FAILED: kernel bounded")
	finish(t, p, 1)
	short := gpuSaxpy(10)
	short.Args = short.Args[:3]
	_, err = d.Prepare([]device.Command{short}, resolve, device.Options{})
	mustHave(t, err, "3 arguments, the kernel wants 4")
}

// TestGPULost runs in a process of its own, whose context it destroys.
func TestGPULost(t *testing.T) {
	if os.Getenv("SAMEBITS_TEST_LOST") == "" {
		c := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestGPULost$")
		c.Env = append(os.Environ(), "SAMEBITS_TEST_LOST=1", FoldersVariable+"="+strings.Join(gpuOptions(t).Folders, ":"))
		if out, err := c.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	d, err := Open(0, gpuOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	m, resolve := arena(t, d, 4096)
	p := prepare(t, d, resolve, exact,
		&device.Kernel{File: "test", Entry: "trap", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []any{at(0)}})
	if err := p.Run(0, 1); err != nil {
		t.Fatal(err)
	}
	mustHave(t, p.Wait(), "DEVICE_LOST", "CUDA_ERROR_ILLEGAL_ADDRESS", "start a new process")
	for name, err := range map[string]error{"write": m.Write(0, []byte{1}), "run": p.Run(0, 1)} {
		if !isLost(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGPUTransfers(t *testing.T) {
	d := openGPU(t)
	fd, err := unix.MemfdCreate("samebits-test", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	const n = 1 << 18
	if err := unix.Ftruncate(fd, 8*n); err != nil {
		t.Fatal(err)
	}
	host, err := unix.Mmap(fd, 0, 8*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(host)
	release, err := d.RegisterHost(host)
	if err != nil {
		t.Fatal(err)
	}
	m, resolve := arena(t, d, 4<<20)
	p := prepare(t, d, resolve, device.Options{}, &device.Fill{To: at(1 << 20), Bytes: 4 * n}, gpuSaxpy(n))
	x := randoms(13, n)
	copy(host, encode(tensor.Float32, x))
	transfers := p.(device.Transfers)
	if err := transfers.WriteAsync(m, 0, host[:4*n]); err != nil {
		t.Fatal(err)
	}
	if err := p.Run(0, 2); err != nil {
		t.Fatal(err)
	}
	if err := transfers.ReadAsync(m, 1<<20, host[4*n:]); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, got := range decode(tensor.Float32, host[4*n:]) {
		if got != 2*x[i] {
			t.Fatalf("element %d is %v, want %v", i, got, 2*x[i])
		}
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}

// TestGPUThreads captures in some goroutines while others allocate, copy and launch.
func TestGPUThreads(t *testing.T) {
	d := openGPU(t)
	var wait sync.WaitGroup
	failures := make(chan error, 64)
	for g := range 8 {
		m, resolve := arena(t, d, 4<<20)
		c := torchConvolution(tensor.Float32)
		c.X.Offset, c.W.Offset, c.Y.Offset = 0, 1<<20, 2<<20
		p := prepare(t, d, resolve, exact, c, gpuSaxpy(1000))
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 20 {
				extra, err := d.Alloc(1 << 20)
				if err == nil {
					err = m.Write(0, make([]byte, 4096))
				}
				if err == nil && g%2 == 0 {
					_, err = p.Capture()
				}
				if err == nil && g%2 == 0 {
					err = p.Replay()
				}
				if err == nil {
					err = p.Run(0, 2)
				}
				if err == nil {
					err = p.Wait()
				}
				if err == nil {
					err = extra.Free()
				}
				if err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}
