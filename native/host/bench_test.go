//go:build linux && amd64

package host

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// BenchmarkConvolution measures layers of resnet-18 and yolo9-t at 640, a grouped and a depthwise one.
func BenchmarkConvolution(b *testing.B) {
	for _, c := range []struct {
		name                         string
		ci, size, co, kernel, stride int64
		groups                       int64
	}{
		{"resnet first 7x7", 3, 640, 64, 7, 2, 1},
		{"resnet 64 3x3", 64, 160, 64, 3, 1, 1},
		{"resnet 512 3x3", 512, 20, 512, 3, 1, 1},
		{"yolo9 first 3x3", 3, 640, 16, 3, 2, 1},
		{"yolo9 16 3x3", 16, 160, 16, 3, 1, 1},
		{"yolo9 64 1x1", 64, 160, 32, 1, 1, 1},
		{"yolo9 64 3x3 in 4 groups", 64, 80, 64, 3, 1, 4},
		{"yolo9 256 1x1", 256, 20, 128, 1, 1, 1},
		{"depthwise 96 3x3", 96, 112, 96, 3, 1, 96},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
			for _, vector := range vectors() {
				for _, layout := range []string{"nchw", "nhwc"} {
					b.Run(fmt.Sprintf("%s/%s/avx%d/%s", c.name, d, vector, layout), func(b *testing.B) {
						benchmarkConvolution(b, d, vector, layout, c.ci, c.size, c.co, c.kernel, c.stride, c.groups)
					})
				}
			}
		}
	}
}

func benchmarkConvolution(b *testing.B, d tensor.DType, vector int, layout string, ci, size, co, kernel, stride, groups int64) {
	dev, err := Open(Threads(1), vectorBits(vector), Cache(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	out := (size+2*(kernel/2)-kernel)/stride + 1
	var memories []device.Memory
	place := func(sizes ...int64) device.Tensor {
		m, err := dev.Alloc(tensor.Numel(sizes) * d.Size())
		if err != nil {
			b.Fatal(err)
		}
		memories = append(memories, m)
		return device.Tensor{Pointer: device.Pointer{Storage: len(memories) - 1}, DType: d, Sizes: sizes, Strides: layoutStrides(layout, sizes)}
	}
	c := &device.Convolution{
		X: place(1, ci, size, size), W: place(co, ci/groups, kernel, kernel), Y: place(1, co, out, out),
		Padding: []int64{kernel / 2, kernel / 2}, Stride: []int64{stride, stride}, Dilation: []int64{1, 1}, Groups: groups,
	}
	p, err := dev.Prepare([]device.Command{c}, func(p device.Pointer) uintptr { return memories[p.Storage].Address() }, device.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		p.Close()
		for _, m := range memories {
			m.Free()
		}
	}()
	before := cpuSeconds()
	for b.Loop() {
		if err := p.Run(0, 1); err != nil {
			b.Fatal(err)
		}
	}
	flops := 2 * float64(co*out*out) * float64(ci/groups*kernel*kernel)
	// By processor time, which other work on the machine disturbs less.
	b.ReportMetric(flops*float64(b.N)/(cpuSeconds()-before)/1e9, "GFLOP/s")
}

// cpuSeconds is the processor time of this process.
func cpuSeconds() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
