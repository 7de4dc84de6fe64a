package cuda

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samebits/native/kernels"
)

// nvidiaOptions are for tests with NVIDIA's own libraries, which need no GPU to be opened. They are skipped where no
// PyTorch with CUDA is.
func nvidiaOptions(t *testing.T) Options {
	t.Helper()
	o := Options{Folders: Folders(), Cache: t.TempDir(), Log: func(line string) { t.Log(line) }}
	if _, missing := Locate(o.Folders); len(missing) > 0 {
		t.Skipf("NVIDIA's libraries are not here: %v", missing)
	}
	return o
}

func TestNvidiaLibrariesHaveOurSymbols(t *testing.T) {
	o := nvidiaOptions(t)
	l := newLibraries()
	l.found, _ = Locate(o.Folders)
	if err := l.openCompiler(); err != nil {
		t.Fatal(err)
	}
	if err := l.openMath(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range l.settings() {
		got[s.Key] = s.Value
	}
	for key, path := range map[string]string{"nvrtc": l.found.NVRTC, "cudnn": l.found.Cudnn, "cublas": l.found.Cublas,
		"cublaslt": l.found.CublasLt} {
		if strings.HasPrefix(got[key], "unknown") {
			t.Errorf("%s is %s", key, got[key])
		}
		if got[key+".path"] != path {
			t.Errorf("%s was opened as %q, want %s", key, got[key+".path"], path)
		}
		t.Logf("%s %s: %s", key, got[key], path)
	}
}

// TestEveryKernelCompiles is what CI has instead of a GPU. It uses the user's cache, because nothing else makes it fast.
func TestEveryKernelCompiles(t *testing.T) {
	o := nvidiaOptions(t)
	o.Cache = CacheFolder()
	files := kernels.Files()
	if len(files) == 0 {
		t.Skip("there are no kernel files")
	}
	sizes, err := CompileAll(files, "sm_90", o)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if sizes[file] == 0 {
			t.Errorf("%s has no cubin", file)
		}
	}
}

func TestCompile(t *testing.T) {
	o := nvidiaOptions(t)
	texts := map[string]string{
		"good":  "#include <cuda_bf16.h>\n#include \"own.cuh\"\nextern \"C\" __global__ void f(float *y, __nv_bfloat16 *x) { *y = OWN(__bfloat162float(*x)); }\n",
		"wrong": "#include \"own.cuh\"\nextern \"C\" __global__ void f(float *y) {\n  *y = nowhere;\n}\n",
	}
	compiled := 0
	o.Source = func(file string) (string, map[string]string, error) {
		compiled++
		return texts[file], map[string]string{"own.cuh": "#define OWN(v) ((v) * 2.0f)\n"}, nil
	}
	sizes, err := CompileAll([]string{"good"}, "sm_90", o)
	if err != nil {
		t.Fatal(err)
	}
	if sizes["good"] == 0 {
		t.Error("no cubin")
	}
	_, err = CompileAll([]string{"good", "wrong"}, "sm_90", o)
	mustHave(t, err, "wrong.cu: KERNEL_COMPILE", "NVRTC_ERROR_COMPILATION", "wrong.cu(3)", `"nowhere" is undefined`)
	_, err = CompileAll([]string{"good"}, "sm_1", o)
	mustHave(t, err, "KERNEL_COMPILE", "gpu-architecture")

	// The entry of the good one, damaged, is compiled anew.
	entries, err := filepath.Glob(filepath.Join(o.Cache, "*.cubin"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("cache holds %v, %v", entries, err)
	}
	whole, err := os.ReadFile(entries[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(whole, []byte("\x7fELF")) {
		t.Error("the entry holds no ELF file")
	}
	if err := os.WriteFile(entries[0], whole[:len(whole)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	var lines []string
	o.Log = func(line string) { lines = append(lines, line) }
	if _, err := CompileAll([]string{"good"}, "sm_90", o); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "damaged") {
		t.Errorf("log: %q", lines)
	}
	again, err := os.ReadFile(entries[0])
	if err != nil || !bytes.Equal(again, whole) {
		t.Errorf("the rebuilt entry differs from the first one, %v", err)
	}
}

// TestFusedMultiplyAddIsOff holds the one option that the numbers rest on: a*b+c must stay two roundings, fmaf one.
func TestFusedMultiplyAddIsOff(t *testing.T) {
	o := nvidiaOptions(t)
	o.Source = func(string) (string, map[string]string, error) {
		return `extern "C" __global__ void f(float *y, float a, float b, float c) { y[0] = a * b + c; y[1] = fmaf(a, b, c); }`, nil, nil
	}
	o = o.withDefaults()
	l := newLibraries()
	l.found, _ = Locate(o.Folders)
	if err := l.openCompiler(); err != nil {
		t.Fatal(err)
	}
	c := newCompiler(l, o)
	separate, err := c.cubin("f", "sm_90")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := o.Source("f")
	fused, err := c.compile("f", text, nil, []string{"--gpu-architecture=sm_90", "--fmad=true", "--std=c++17"})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(separate, fused) {
		t.Error("the compiler was not told to keep a*b+c apart")
	}
}

// TestPrototypesAreNvidias compiles our prototypes and constants against the real headers.
func TestPrototypesAreNvidias(t *testing.T) {
	needSource(t, "gcc")
	o := nvidiaOptions(t)
	found, _ := Locate(o.Folders)
	site := filepath.Dir(filepath.Dir(filepath.Dir(found.Include)))
	runtime := filepath.Join(site, "triton/backends/nvidia/include") // crt/host_defines.h, which torch's wheel lacks
	cudnn := filepath.Join(filepath.Dir(filepath.Dir(found.Cudnn)), "include")
	for _, file := range []string{filepath.Join(runtime, "crt/host_defines.h"), filepath.Join(cudnn, "cudnn.h"), filepath.Join(found.Include, "cuda.h")} {
		if !isFile(file) {
			t.Skipf("NVIDIA's headers are not all here: no %s", file)
		}
	}
	check := func(source string) string {
		out, _ := exec.Command("gcc", "-std=c11", "-fsyntax-only", "-Werror=incompatible-pointer-types",
			"-Wno-deprecated-declarations", "-I"+found.Include, "-I"+cudnn, "-I"+runtime, source).CombinedOutput()
		return string(out)
	}
	if out := check("testdata/headers.c"); out != "" {
		t.Errorf("our prototypes are not NVIDIA's:\n%s", out)
	}

	// The check itself sees a wrong prototype and a wrong constant.
	symbols, err := os.ReadFile("symbols.h")
	if err != nil {
		t.Fatal(err)
	}
	checks, err := os.ReadFile("testdata/headers.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range [][2]string{{"cuMemFree_v2, (sb_pointer)", "cuMemFree_v2, (void *)"}, {"SB_FORWARD_Y = 705", "SB_FORWARD_Y = 706"}} {
		folder := t.TempDir()
		changed := bytes.Replace(symbols, []byte(wrong[0]), []byte(wrong[1]), 1)
		if bytes.Equal(changed, symbols) {
			t.Fatalf("symbols.h has no %q", wrong[0])
		}
		if err := os.WriteFile(filepath.Join(folder, "symbols.h"), changed, 0o644); err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(folder, "headers.c")
		if err := os.WriteFile(source, bytes.Replace(checks, []byte("../symbols.h"), []byte("symbols.h"), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := check(source); !strings.Contains(out, "error") {
			t.Errorf("%q passes the check", wrong[1])
		}
	}
}
