package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"samebits/native/device"
)

// needSource skips a test of a compiled test binary that runs where the package's source is not, or a tool is not.
func needSource(t *testing.T, tools ...string) {
	t.Helper()
	if !isFile("symbols.h") {
		t.Skip("this test reads files of native/cuda; run it in that folder")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this test runs %s: %v", tool, err)
		}
	}
}

// buildFake compiles testdata/fake once.
var buildFake = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "samebits-fake")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	out := filepath.Join(folder, "fake.so")
	text, err := exec.Command("gcc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-std=gnu11", "-O1", "-o", out,
		"testdata/fake/driver.c", "testdata/fake/math.c", "testdata/fake/nvrtc.c").CombinedOutput()
	if err != nil {
		return nil, &exec.Error{Name: string(text), Err: err}
	}
	return os.ReadFile(out)
})

// fakeKernels is what Source gives in tests with the fake.
func fakeKernels(file string) (string, map[string]string, error) {
	switch file {
	case "good":
		return "saxpy trap stall", map[string]string{"prelude.cuh": "nothing"}, nil
	case "bad":
		return "#error on purpose", nil, nil
	}
	return "", nil, os.ErrNotExist
}

// fakeOptions lays out a folder of torch's with the fake under every name. Each test has its own copy, and so a GPU of
// its own.
func fakeOptions(t *testing.T) Options {
	t.Helper()
	needSource(t, "gcc")
	image, err := buildFake()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	lib, include := filepath.Join(root, "lib"), filepath.Join(root, "include")
	for _, folder := range []string{lib, include} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	driver := filepath.Join(lib, "libcuda.so.1")
	if err := os.WriteFile(driver, image, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libnvrtc-builtins.so.13.0", "libnvrtc.so.13", "libcublasLt.so.13", "libcublas.so.13",
		"libcudnn.so.9", "libcudnn_graph.so.9"} {
		if err := os.Link(driver, filepath.Join(lib, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cuda_bf16.h", "cuda_bf16.hpp", "cuda_fp16.h", "cuda_fp16.hpp"} {
		if err := os.WriteFile(filepath.Join(include, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Options{
		Folders: []string{lib},
		Driver:  driver,
		Cache:   filepath.Join(root, "cache"),
		Source:  fakeKernels,
		Log:     func(line string) { t.Log(line) },
	}
}

// openFake opens a fake GPU and closes it at the end of the test, when nothing may be left.
func openFake(t *testing.T) *Device {
	t.Helper()
	d, err := Open(0, fakeOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !t.Failed() {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

// logCalls makes the fake write its library calls down, and gives a function that reads them.
func logCalls(t *testing.T) func() []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "calls")
	t.Setenv("FAKE_LOG", path)
	return func() []string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

// arena is a block with a resolver that takes the offset of every pointer in it.
func arena(t *testing.T, d device.Device, bytes int64) (device.Memory, device.Resolve) {
	t.Helper()
	m, err := d.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(); err != nil && !t.Failed() && !isLost(err) {
			t.Errorf("free: %v", err)
		}
	})
	return m, func(p device.Pointer) uintptr { return m.Address() + uintptr(p.Offset) }
}

func prepare(t *testing.T, d device.Device, resolve device.Resolve, o device.Options, list ...device.Command) device.Program {
	t.Helper()
	p, err := d.Prepare(list, resolve, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil && !t.Failed() && !isLost(err) {
			t.Errorf("close program: %v", err)
		}
	})
	return p
}

func at(offset int64) device.Pointer { return device.Pointer{Offset: offset} }

func mustHave(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; one with %q is wanted", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q has no %q", err, part)
		}
	}
}
