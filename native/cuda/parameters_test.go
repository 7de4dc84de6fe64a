package cuda

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"samebits/native/kernels"
)

const parameterKernels = `
struct Mixed { int a; double b; char c; };
struct Odd { char c[3]; };
struct alignas(16) Four { float x[4]; };
struct Large { int n[1100]; };
extern "C" __global__ void none() {}
extern "C" __global__ void scalars(const float *x, float *y, float a, int n) { y[n] = a * x[n]; }
extern "C" __global__ void unused(double a, int b, float *y, char c) { *y = 1; }
extern "C" __global__ void structs(Mixed m, Odd o, float *y, short z) { *y = m.a + m.b + o.c[1] + z; }
extern "C" __global__ void aligned(int a, Four f, float *y) { *y = a + f.x[2]; }
extern "C" __global__ void constant(const __grid_constant__ Mixed m, float *y) { *y = m.b; }
extern "C" __global__ void large(float *y, Large l, int k) { *y = l.n[k]; }
`

// nvidiaCompiler compiles with NVRTC.
func nvidiaCompiler(t *testing.T, o Options) *compiler {
	t.Helper()
	l := newLibraries()
	t.Cleanup(l.free)
	l.found, _ = Locate(o.Folders)
	if err := l.openCompiler(); err != nil {
		t.Fatal(err)
	}
	return newCompiler(l, o.withDefaults())
}

// TestParameters reads cubins of NVRTC, for GPUs of three generations.
func TestParameters(t *testing.T) {
	o := nvidiaOptions(t)
	o.Source = func(string) (string, map[string]string, error) { return parameterKernels, nil, nil }
	c := nvidiaCompiler(t, o)
	for _, arch := range []string{"sm_75", "sm_90", "sm_100"} {
		t.Run(arch, func(t *testing.T) {
			cubin, err := c.cubin("parameters", arch)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parameters(cubin)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]parameter{
				"none":     {},
				"scalars":  {{0, 8}, {8, 8}, {16, 4}, {20, 4}},
				"unused":   {{0, 8}, {8, 4}, {16, 8}, {24, 1}},
				"structs":  {{0, 24}, {24, 3}, {32, 8}, {40, 2}},
				"aligned":  {{0, 4}, {16, 16}, {32, 8}},
				"constant": {{0, 24}, {24, 8}},
				"large":    {{0, 8}, {8, 4400}, {4408, 4}},
			}
			for entry, list := range want {
				if kernel, ok := got[entry]; !ok || !slices.Equal(kernel, list) {
					t.Errorf("%s takes %v, want %v", entry, kernel, list)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d kernels, want %d", len(got), len(want))
			}
		})
	}
}

// TestParametersOfEveryKernel holds that none of our own cubins is refused, and that each of their kernels is found.
func TestParametersOfEveryKernel(t *testing.T) {
	o := nvidiaOptions(t)
	o.Cache = CacheFolder()
	cubins, err := nvidiaCompiler(t, o).cubins(kernels.Files(), "sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for file, cubin := range cubins {
		got, err := parameters(cubin)
		if err != nil || len(got) == 0 {
			t.Errorf("%s: %d kernels, %v", file, len(got), err)
		}
	}
}

// attribute is one entry of a kernel's section: data after it if there is any.
func attribute(format, number byte, value uint16, data ...byte) []byte {
	return append(binary.LittleEndian.AppendUint16([]byte{format, number}, value), data...)
}

func parameterAttribute(position, offset, bytes uint16) []byte {
	data := binary.LittleEndian.AppendUint16(make([]byte, 4), position)
	data = binary.LittleEndian.AppendUint16(data, offset)
	return attribute(4, 0x17, 12, binary.LittleEndian.AppendUint32(data, uint32(bytes)<<18|0x1f000)...)
}

func TestParametersRefusals(t *testing.T) {
	first, second, total := parameterAttribute(0, 0, 8), parameterAttribute(1, 8, 4), attribute(3, 0x19, 12)
	if got, err := kernelParameters(slices.Concat(second, first, total)); err != nil || !slices.Equal(got, []parameter{{0, 8}, {8, 4}}) {
		t.Fatalf("%v, %v", got, err)
	}
	for _, c := range []struct {
		name, want string
		info       [][]byte
	}{
		{"half an attribute", "2 bytes after the last attribute", [][]byte{first, {4, 0x17}}},
		{"data past the end", "attribute 0x17 has 12 bytes, 11 are left", [][]byte{first[:15]}},
		{"another layout", "parameter attribute 0x17 has 8 bytes, not 12", [][]byte{attribute(4, 0x17, 8, make([]byte, 8)...)}},
		{"a value for data", "parameter attribute 0x17 has 0 bytes, not 12", [][]byte{attribute(3, 0x17, 12)}},
		{"the first one absent", "parameter 0 of 1 is not there", [][]byte{second, total}},
		{"the last one absent", "parameters end at byte 8 of 12", [][]byte{first, total}},
		{"all absent", "parameters end at byte 0 of 12", [][]byte{total}},
		{"no total", "parameters end at byte 8 of 0", [][]byte{first}},
		{"one twice", "parameter 0 is there twice", [][]byte{first, first, total}},
		{"an overlap", "parameter 1 has 4 bytes at 4, after one that ends at 8", [][]byte{first, parameterAttribute(1, 4, 4), total}},
		{"an empty one", "parameter 0 has 0 bytes", [][]byte{parameterAttribute(0, 0, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := kernelParameters(slices.Concat(c.info...))
			mustHave(t, err, c.want)
		})
	}
	_, err := parameters([]byte(strings.Repeat("no cubin ", 20)))
	mustHave(t, err, "read the cubin")
}
