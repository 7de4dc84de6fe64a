package cuda

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"samebits/native/device"
)

func floats(v ...float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, f := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}

// saxpy adds 2*x to y; both have 4 elements, x at 0 and y at 512.
func saxpy() *device.Kernel {
	return &device.Kernel{File: "good", Entry: "saxpy", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1},
		Args: []any{at(0), at(512), float32(2), int32(4)}}
}

func expect(t *testing.T, m device.Memory, offset int64, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if err := m.Read(offset, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("bytes at %d are %v, want %v", offset, got, want)
	}
}

func TestWaitsAreCounted(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 4096)
	p := prepare(t, d, resolve, device.Options{}, saxpy())
	if _, err := p.Capture(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func() error
		want int64
	}{
		{"run", func() error { return p.Run(0, 1) }, 0},
		{"replay", p.Replay, 0},
		{"wait", p.Wait, 1},
		{"write", func() error { return m.Write(0, floats(1)) }, 1},
		{"read", func() error { return m.Read(0, make([]byte, 4)) }, 1},
		{"fill", func() error { return m.Fill(0, 4, 0) }, 1},
	} {
		before := d.Waits()
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := d.Waits() - before; got != c.want {
			t.Errorf("%s waits %d times, want %d", c.name, got, c.want)
		}
	}
}

func TestRunCaptureReplay(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 4096)
	p := prepare(t, d, resolve, device.Options{},
		&device.Fill{To: at(512), Bytes: 16},
		saxpy(),
		&device.Copy{To: at(1024), From: at(512), Bytes: 16},
		&device.Fill{To: at(2048), Bytes: 0, Byte: 9},
	)
	if err := m.Write(0, floats(1, 2, 3, 4)); err != nil {
		t.Fatal(err)
	}
	if err := p.Run(0, 4); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	expect(t, m, 1024, floats(2, 4, 6, 8))

	nodes, err := p.Capture()
	if err != nil {
		t.Fatal(err)
	}
	if nodes != 3 {
		t.Errorf("%d nodes, want 3: the empty fill has none", nodes)
	}
	if err := m.Write(0, floats(5, 6, 7, 8)); err != nil {
		t.Fatal(err)
	}
	expect(t, m, 1024, floats(2, 4, 6, 8)) // a capture runs nothing
	for range 2 {
		if err := p.Replay(); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, m, 1024, floats(10, 12, 14, 16))

	// Parts of the list.
	if err := p.Run(1, 2); err != nil {
		t.Fatal(err)
	}
	expect(t, m, 512, floats(20, 24, 28, 32))
	expect(t, m, 1024, floats(10, 12, 14, 16))

	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	mustHave(t, p.Replay(), "without a captured graph")
	mustHave(t, p.Run(2, 5), "commands 2 to 5 of a list of 4")
}

func TestAsyncTransfers(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 4096)
	p := prepare(t, d, resolve, device.Options{}, &device.Fill{To: at(512), Bytes: 16}, saxpy())
	release, err := d.RegisterHost(make([]byte, 64))
	if err != nil {
		t.Fatal(err)
	}
	tr := p.(device.Transfers)
	got := make([]byte, 16)
	if err := tr.WriteAsync(m, 0, floats(1, 1, 1, 3)); err != nil {
		t.Fatal(err)
	}
	if err := p.Run(0, 2); err != nil {
		t.Fatal(err)
	}
	if err := tr.ReadAsync(m, 512, got); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if want := floats(2, 2, 2, 6); !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	mustHave(t, tr.ReadAsync(m, 4090, got), "bytes 4090 to 4106 of a block of 4096")
}

func TestMemory(t *testing.T) {
	t.Setenv("FAKE_BYTES", "10000")
	d := openFake(t)
	a, err := d.Alloc(6000)
	if err != nil {
		t.Fatal(err)
	}
	if a.Address()%alignment != 0 {
		t.Errorf("address %#x", a.Address())
	}
	_, err = d.Alloc(5000)
	mustHave(t, err, "OUT_OF_MEMORY", "5000 bytes needed", "4000 of 10000 are free", "this process holds 6000")
	b, err := d.Alloc(0)
	if err != nil {
		t.Fatal(err)
	}
	if d.InUse() != 6001 || d.Peak() != 6001 {
		t.Errorf("in use %d, peak %d", d.InUse(), d.Peak())
	}
	for name, err := range map[string]error{
		"write past the end": a.Write(5999, []byte{1, 2}),
		"read before start":  a.Read(-1, []byte{1}),
		"fill too much":      a.Fill(0, 6001, 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := a.Fill(10, 5, 7); err != nil {
		t.Fatal(err)
	}
	expect(t, a, 9, []byte{0xcd, 7, 7, 7, 7, 7, 0xcd})
	if err := a.Free(); err != nil {
		t.Fatal(err)
	}
	mustHave(t, a.Free(), "cuda:0: free memory that was freed")
	mustHave(t, a.Read(0, make([]byte, 1)), "was freed")
	if d.InUse() != 1 || d.Peak() != 6001 {
		t.Errorf("in use %d, peak %d", d.InUse(), d.Peak())
	}
	if err := b.Free(); err != nil {
		t.Fatal(err)
	}
}

func TestCloseTellsWhatIsHeld(t *testing.T) {
	d, err := Open(0, fakeOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Prepare([]device.Command{saxpy()}, func(q device.Pointer) uintptr { return m.Address() + uintptr(q.Offset) }, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustHave(t, d.Close(), "4096 bytes in 1 blocks and 1 programs are still held")
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range map[string]error{"run": p.Run(0, 1), "wait": p.Wait(), "replay": p.Replay()} {
		if err == nil {
			t.Errorf("%s after close: no error", name)
		}
	}
	mustHave(t, d.Close(), "4096 bytes in 1 blocks and 0 programs")
	if err := m.Free(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err = d.Prepare(nil, nil, device.Options{})
	mustHave(t, err, "the device is closed")
	_, err = d.Alloc(1)
	mustHave(t, err, "the device is closed")
}

func TestOpenWithoutGPU(t *testing.T) {
	t.Setenv("FAKE_DEVICES", "0")
	o := fakeOptions(t)
	_, err := Open(0, o)
	mustHave(t, err, "cuda:0: NO_GPU: this process sees 0 GPUs")
	mustHave(t, Available(o), "NO_GPU: the driver sees no GPU")
}

func TestAvailable(t *testing.T) {
	o := fakeOptions(t)
	if err := Available(o); err != nil {
		t.Errorf("all is there: %v", err)
	}
	_, err := Open(3, o)
	mustHave(t, err, "cuda:3: NO_GPU: this process sees 1 GPUs")

	o.Driver = "/nowhere/libcuda.so.1"
	o.Folders = []string{"/nowhere/a", "/nowhere/b"}
	err = Available(o)
	mustHave(t, err, "NO_DRIVER: /nowhere/libcuda.so.1", "NO_LIBRARY: libcudnn.so.* is in none of /nowhere/a, /nowhere/b",
		"libcublasLt.so.*", "libnvrtc.so.*", "cuda_bf16.h is in none of /nowhere/include", FoldersVariable)
	_, err = Open(0, o)
	mustHave(t, err, "NO_DRIVER", "/nowhere/libcuda.so.1")
}

func TestEnvironment(t *testing.T) {
	d := openFake(t)
	got := map[string]string{}
	last := ""
	for _, s := range d.Environment() {
		if s.Key <= last {
			t.Errorf("%s after %s", s.Key, last)
		}
		last, got[s.Key] = s.Key, s.Value
	}
	for key, want := range map[string]string{
		"gpu": "Fake 0", "gpu.arch": "sm_90", "gpu.sms": "132", "gpu.uuid": "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0",
		"cuda": "13.0", "nvrtc": "13.0", "cudnn": "9.19.0", "cublas": "13.1.0", "cublaslt": "13.1.0",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	for _, key := range []string{"cuda.path", "cudnn.path", "cublas.path", "cublaslt.path", "nvrtc.path"} {
		if !strings.HasPrefix(got[key], "/") {
			t.Errorf("%s is %q", key, got[key])
		}
	}
	if d.Name() != "cuda:0" {
		t.Errorf("name %s", d.Name())
	}
}
