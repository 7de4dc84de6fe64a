//go:build gpu

package cuda

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// manyConvolutions are in every type, direction and layout, with filters of 1, 3 and 7, with groups and without.
func manyConvolutions() []*device.Convolution {
	var list []*device.Convolution
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
		for _, direction := range []device.Direction{device.Forward, device.BackwardData, device.BackwardFilter} {
			for _, s := range []struct{ c, k, size, filter, stride, groups int64 }{
				{64, 64, 40, 3, 1, 1}, {3, 16, 64, 3, 2, 1}, {96, 48, 20, 1, 1, 1}, {3, 32, 56, 7, 2, 1}, {32, 64, 18, 3, 1, 4},
			} {
				for _, last := range []bool{false, true} {
					pad := s.filter / 2
					out := (s.size+2*pad-s.filter)/s.stride + 1
					c := &device.Convolution{
						Direction: direction,
						X:         contiguous(0, dtype, 2, s.c, s.size, s.size),
						W:         contiguous(4<<20, dtype, s.k, s.c/s.groups, s.filter, s.filter),
						Y:         contiguous(8<<20, dtype, 2, s.k, out, out),
						Padding:   []int64{pad, pad}, Stride: []int64{s.stride, s.stride}, Dilation: []int64{1, 1}, Groups: s.groups,
					}
					if last {
						for _, t := range []*device.Tensor{&c.X, &c.W, &c.Y} {
							n := t.Sizes
							t.Strides = []int64{n[1] * n[2] * n[3], 1, n[1] * n[3], n[1]}
						}
					}
					list = append(list, c)
				}
			}
		}
	}
	return list
}

// possible leaves those that cuDNN has an engine for under these options.
func possible(t *testing.T, o Options, all []*device.Convolution) (left []*device.Convolution) {
	t.Helper()
	o.Replan = true
	d, err := Open(0, o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m, err := d.Alloc(12 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	for _, c := range all {
		p, err := d.Prepare([]device.Command{c}, func(at device.Pointer) uintptr { return m.Address() + uintptr(at.Offset) }, exact)
		if err != nil {
			mustHave(t, err, "NO_ENGINE")
			t.Logf("left out: %v", err)
			continue
		}
		left = append(left, c)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(left) < len(all)/2 {
		t.Fatalf("%d of %d convolutions are possible", len(left), len(all))
	}
	return left
}

// TestGPUKeptPlans: a load with kept choices makes the same plans as one that asks the heuristics, and the plans have the
// same bits.
func TestGPUKeptPlans(t *testing.T) {
	o := gpuOptions(t)
	convolutions := possible(t, o, manyConvolutions())
	var list []device.Command
	for _, c := range convolutions {
		list = append(list, c)
	}
	load := func(name string, o Options) (choices []string, results [][]byte) {
		t.Helper()
		o.Log = func(line string) { t.Errorf("%s: %s", name, line) }
		d, err := Open(0, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}()
		m, err := d.Alloc(12 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		start := time.Now()
		p, err := d.Prepare(list, func(at device.Pointer) uintptr { return m.Address() + uintptr(at.Offset) }, exact)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		t.Logf("%s: %d convolutions prepared in %v", name, len(list), time.Since(start))
		for i, c := range convolutions {
			for j, of := range []device.Tensor{c.X, c.W, c.Y} {
				if err := m.Write(of.Offset, encode(of.DType, randoms(int64(3+j), tensor.Numel(of.Sizes)))); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Run(i, i+1); err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			result := written(c)
			results = append(results, read(t, m, result.Offset, tensor.Numel(result.Sizes)*result.DType.Size()))
		}
		return slices.Clone(p.Choices()), results
	}
	first, wanted := load("heuristics asked, choices kept", o)
	files := planFiles(t, o)
	if len(files) != 1 {
		t.Fatalf("files of choices: %v", files)
	}
	before, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of choices", len(before))
	for _, replan := range []bool{false, true} {
		name := map[bool]string{false: "choices kept", true: "heuristics asked again"}[replan]
		o.Replan = replan
		choices, results := load(name, o)
		for i, c := range convolutions {
			if choices[i] != first[i] {
				t.Errorf("%s: %s of %s %v: %q, first %q", name, convolutionNames[c.Direction], c.X.DType, c.W.Sizes, choices[i], first[i])
			}
			if !bytes.Equal(results[i], wanted[i]) {
				t.Errorf("%s: %s has other bits", name, choices[i])
			}
		}
	}
	// Nothing was asked that was not kept, or the file had grown.
	if after, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file of choices changed from %d to %d bytes, %v", len(before), len(after), err)
	}
}
