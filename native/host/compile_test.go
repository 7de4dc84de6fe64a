//go:build linux && amd64

package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"samebits/bridge/diag"
	"samebits/native/device"
	"samebits/native/kernels"
)

// sources is a set of kernel files in memory.
type sources map[string]string

func (s sources) get(file string) (string, map[string]string, error) {
	text, ok := s[file]
	if !ok {
		return "", nil, fmt.Errorf("no file %q", file)
	}
	return text, kernels.Headers(), nil
}

const increment = "#include \"prelude.cuh\"\nKERNEL(increment, int *x) { x[0]++; }\n"

// prepareFile prepares one launch of a file's entry.
func prepareFile(d *Device, file, entry string) error {
	p, err := d.Prepare([]device.Command{&device.Kernel{File: file, Entry: entry, Grid: line(1), Block: line(1), Args: []any{device.Pointer{}}}},
		func(device.Pointer) uintptr { return 4096 }, device.Options{})
	if err != nil {
		return err
	}
	return p.Close()
}

func wantProblem(t *testing.T, err error, reason string, says ...string) {
	t.Helper()
	problems, ok := diag.Of(err)
	if !ok || problems[0].Reason != reason {
		t.Fatalf("wanted %s, got %v", reason, err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	files := sources{
		"syntax":  "#include \"prelude.cuh\"\nKERNEL(broken, int *x) {\n  x[0] = ;\n}\n",
		"plain":   "#include \"prelude.cuh\"\nextern \"C\" __global__ void increment(int *x) { x[0]++; }\n",
		"empty":   "#include \"prelude.cuh\"\n",
		"stack":   "#include \"prelude.cuh\"\nKERNEL(large, int *x) {\n  volatile int a[15000];\n  a[x[0]] = 1;\n  x[0] = a[x[1]];\n}\n",
		"include": "#include \"no_such_header.cuh\"\n",
	}
	d := open(t, withSource(files.get))
	wantProblem(t, prepareFile(d, "syntax", "broken"), "COMPILE_FAILED", "syntax.cu:3", "expected ", "expression")
	wantProblem(t, prepareFile(d, "plain", "increment"), "COMPILE_FAILED", "plain.cu:2", "define entries by KERNEL")
	wantProblem(t, prepareFile(d, "stack", "large"), "COMPILE_FAILED", "stack.cu", "49152 bytes")
	wantProblem(t, prepareFile(d, "include", "x"), "COMPILE_FAILED", "no_such_header.cuh")
	wantProblem(t, prepareFile(d, "empty", "x"), "UNKNOWN_KERNEL", "empty.cu")
	wantProblem(t, prepareFile(d, "missing", "x"), "UNKNOWN_KERNEL", "missing")
	// All files are tried before any is reported.
	_, err := d.libraries.need([]string{"syntax", "include", "empty"})
	wantProblem(t, err, "COMPILE_FAILED", "2 problems", "syntax.cu", "no_such_header.cuh")
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("CXX", "")
	t.Setenv("PATH", t.TempDir())
	d := open(t, Cache(t.TempDir()), withSource(sources{"a": increment}.get))
	wantProblem(t, prepareFile(d, "a", "increment"), "NO_COMPILER", "g++, c++, clang++", "apt-get install g++")
	if s := d.Environment()[0]; s.Key != "host.compiler" || s.Value != "none" {
		t.Errorf("the environment says %v", s)
	}
	// What needs no kernel works.
	p, err := d.Prepare([]device.Command{&device.Fill{}}, func(device.Pointer) uintptr { return 0 }, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(0, 1); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestBadCompiler(t *testing.T) {
	script := filepath.Join(t.TempDir(), "compiler")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho out of order >&2\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CXX", script)
	d := open(t, withSource(sources{"a": increment}.get))
	wantProblem(t, prepareFile(d, "a", "increment"), "BAD_COMPILER", script, "out of order")
	t.Setenv("CXX", "/nonexistent/g++ -flag")
	wantProblem(t, prepareFile(d, "a", "increment"), "NO_COMPILER", "/nonexistent/g++")
}

// countingCompiler sets CXX to a compiler that notes what it compiles; the function gives how often that was.
func countingCompiler(t *testing.T) func() int {
	gxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++")
	}
	dir := t.TempDir()
	log, script := filepath.Join(dir, "log"), filepath.Join(dir, "compiler")
	text := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--version) ;; *) echo x >>%s ;; esac\nexec %s \"$@\"\n", log, gxx)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CXX", script)
	return func() int {
		data, _ := os.ReadFile(log)
		return strings.Count(string(data), "x")
	}
}

func TestCache(t *testing.T) {
	compiled := countingCompiler(t)
	dir := t.TempDir()
	files := sources{"a": increment}
	// run opens a device, runs the kernel and gives how many files were compiled for it.
	run := func() int {
		t.Helper()
		before := compiled()
		d := open(t, Cache(dir), withSource(files.get))
		x, err := d.Alloc(4)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Free()
		if err := x.Write(0, []byte{41, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		p, err := d.Prepare([]device.Command{&device.Kernel{File: "a", Entry: "increment", Grid: line(1), Block: line(1), Args: []any{device.Pointer{}}}},
			func(device.Pointer) uintptr { return x.Address() }, device.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Run(0, 1); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1)
		if err := x.Read(0, got); err != nil || got[0] != 42 {
			t.Fatalf("the kernel gave %d, %v", got[0], err)
		}
		return compiled() - before
	}
	entry := func() string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "host", "*.so"))
		if err != nil || len(found) != 1 {
			t.Fatalf("the cache holds %v, %v", found, err)
		}
		return found[0]
	}
	damage := func(change func([]byte) []byte) func() {
		return func() {
			data, err := os.ReadFile(entry())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(entry(), change(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name   string
		before func()
		want   int
	}{
		{"empty", func() {}, 1},
		{"full", func() {}, 0},
		{"a bit flipped", damage(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), 1},
		{"rebuilt", func() {}, 0},
		{"torn", damage(func(b []byte) []byte { return b[:len(b)/3] }), 1},
		{"emptied", damage(func([]byte) []byte { return nil }), 1},
		{"rebuilt again", func() {}, 0},
		{"removed", func() { os.Remove(entry()) }, 1},
		{"used", func() { age(t, entry(), unused-time.Hour) }, 0},
		{"not used for long", func() { age(t, entry(), unused+time.Hour) }, 1},
		{"text changed", func() { files["a"] += "// changed\n" }, 1},
	} {
		step.before()
		if got := run(); got != step.want {
			t.Errorf("%s: %d files compiled, wanted %d", step.name, got, step.want)
		}
	}
	// A cache that cannot be written costs time, no more.
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "file")
	for range 2 {
		if got := run(); got != 1 {
			t.Errorf("without a cache %d files are compiled, wanted 1", got)
		}
	}
}

// age sets when an entry was used last.
func age(t *testing.T, path string, d time.Duration) {
	t.Helper()
	then := time.Now().Add(-d)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

// Devices that need the same file at once compile it once.
func TestCacheShared(t *testing.T) {
	compiled := countingCompiler(t)
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		d := open(t, Cache(dir), withSource(sources{"a": increment, "b": increment}.get))
		all.Go(func() {
			if _, err := d.libraries.need([]string{"a", "b"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := compiled(); got != 2 {
		t.Errorf("%d compilations of 2 files", got)
	}
}

// Every kernel file of the project compiles and has entries. It shares the user's cache with the other packages' tests.
func TestKernelFiles(t *testing.T) {
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	loaded, err := d.libraries.need(kernels.Files())
	if err != nil {
		t.Fatal(err)
	}
	for file, lib := range loaded {
		if len(lib.entries) == 0 {
			t.Errorf("%s.cu has no entries", file)
		}
	}
}

func TestEnvironment(t *testing.T) {
	d := open(t, Threads(2))
	var keys []string
	for _, s := range d.Environment() {
		keys = append(keys, s.Key)
		if s.Value == "" || s.Value == "unknown" || s.Value == "none" {
			t.Errorf("%s is %q", s.Key, s.Value)
		}
		if s.Key == "host.threads" && s.Value != "2" {
			t.Errorf("%s threads, wanted 2", s.Value)
		}
	}
	want := []string{"host.compiler", "host.compiler.command", "host.compiler.flags", "host.cpu", "host.libc", "host.threads", "host.vector"}
	if !slices.Equal(keys, want) {
		t.Errorf("keys %v", keys)
	}
}

func TestThreadsSetting(t *testing.T) {
	for _, text := range []string{"0", "-1", "many", "2000"} {
		t.Setenv("SAMEBITS_THREADS", text)
		d, err := Open()
		if err == nil {
			d.Close()
			t.Fatalf("opened with %s threads", text)
		}
		wantProblem(t, err, "BAD_SETTING", "SAMEBITS_THREADS", text)
	}
	t.Setenv("SAMEBITS_THREADS", "5")
	if n := open(t).Environment()[5].Value; n != "5" {
		t.Errorf("%s threads, wanted 5", n)
	}
}

// A device that is in use does not close, and says who uses it.
func TestCloseInUse(t *testing.T) {
	d, err := Open(Cache(cacheDir))
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "compile_test.go") {
		t.Errorf("closed with memory in use: %v", err)
	}
	if err := m.Free(); err != nil {
		t.Error(err)
	}
	p, err := d.Prepare(nil, nil, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "1 programs") {
		t.Errorf("closed with a program in use: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err == nil {
		t.Error("a program closed twice")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err == nil {
		t.Error("a device closed twice")
	}
	if _, err := d.Alloc(1); err == nil {
		t.Error("a closed device allocates")
	}
	if _, err := d.Prepare(nil, nil, device.Options{}); err == nil {
		t.Error("a closed device prepares")
	}
}
