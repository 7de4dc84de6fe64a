package cuda

import (
	"slices"
	"strings"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

func TestAlignmentOf(t *testing.T) {
	for _, test := range []struct {
		address     uint64
		limit, want int64
	}{
		{0x7f5287e88000, 32, 32}, {0x7f5287e88000, 256, 256}, {0x7f5287e88200, 256, 256}, {16, 32, 16}, {48, 256, 16},
		{1, 32, 1}, {6, 32, 2}, {0x80, 256, 128}, {0, 32, 32},
	} {
		if got := alignmentOf(test.address, test.limit); got != test.want {
			t.Errorf("%#x up to %d: %d, want %d", test.address, test.limit, got, test.want)
		}
	}
}

func TestCanonicalStrides(t *testing.T) {
	for _, test := range []struct {
		name           string
		sizes, strides []int64
		last           bool
		want           []int64
	}{
		{"contiguous", []int64{1, 64, 40, 40}, []int64{102400, 1600, 40, 1}, false, []int64{102400, 1600, 40, 1}},
		{"batch of one with an odd stride", []int64{1, 64, 40, 40}, []int64{7, 1600, 40, 1}, false, []int64{102400, 1600, 40, 1}},
		{"1x1 weight", []int64{32, 16, 1, 1}, []int64{16, 1, 1, 1}, false, []int64{16, 1, 1, 1}},
		{"1x1 weight, odd strides", []int64{32, 16, 1, 1}, []int64{16, 1, 16, 16}, false, []int64{16, 1, 1, 1}},
		{"1x1 weight, channels last", []int64{32, 16, 1, 1}, []int64{16, 1, 1, 1}, true, []int64{16, 1, 16, 16}},
		{"one channel, channels last", []int64{2, 1, 5, 7}, []int64{35, 35, 7, 1}, true, []int64{35, 1, 7, 1}},
		{"part of a wider tensor keeps its strides", []int64{2, 16, 8, 8}, []int64{4096, 64, 8, 1}, false, []int64{4096, 64, 8, 1}},
		{"batch of one out of a wider tensor", []int64{1, 16, 8, 8}, []int64{4096, 64, 8, 1}, false, []int64{1024, 64, 8, 1}},
		{"three spatial dimensions", []int64{1, 2, 1, 3, 4}, []int64{9, 12, 9, 4, 1}, false, []int64{24, 12, 12, 4, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := slices.Clone(test.strides)
			if got := canonicalStrides(test.sizes, test.strides, test.last); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
			if !slices.Equal(test.strides, before) {
				t.Errorf("the argument was changed to %v", test.strides)
			}
		})
	}
}

func TestIsChannelsLast(t *testing.T) {
	for _, test := range []struct {
		name           string
		sizes, strides []int64
		want           bool
	}{
		{"contiguous", []int64{2, 3, 4, 5}, []int64{60, 20, 5, 1}, false},
		{"channels last", []int64{2, 3, 4, 5}, []int64{60, 1, 15, 3}, true},
		{"1x1 weight", []int64{64, 32, 1, 1}, []int64{32, 1, 1, 1}, false},
		{"1x1 weight in channels last", []int64{64, 32, 1, 1}, []int64{32, 1, 32, 32}, true},
		{"one channel", []int64{2, 1, 4, 4}, []int64{16, 16, 4, 1}, false},
		{"one channel, stride 1", []int64{2, 1, 4, 4}, []int64{16, 1, 4, 1}, true},
		{"N111", []int64{4, 1, 1, 1}, []int64{1, 1, 1, 1}, false},
		{"expanded channels", []int64{2, 3, 4, 5}, []int64{20, 0, 5, 1}, false},
		{"three dimensions", []int64{2, 3, 4}, []int64{12, 1, 3}, false},
		{"volume", []int64{2, 3, 4, 5, 6}, []int64{360, 1, 90, 18, 3}, true},
		{"contiguous volume", []int64{2, 3, 4, 5, 6}, []int64{360, 120, 30, 6, 1}, false},
	} {
		if got := isChannelsLast(test.sizes, test.strides); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func matrix(rows, cols, rowStride, colStride int64) device.Tensor {
	return device.Tensor{DType: tensor.Float32, Sizes: []int64{rows, cols}, Strides: []int64{rowStride, colStride}}
}

func TestDescribeLinear(t *testing.T) {
	for _, test := range []struct {
		name                   string
		a, b                   device.Tensor
		transa, transb         bool
		m, n, k, lda, ldb, ldd int64
	}{
		{"activation and weight.t()", matrix(4, 512, 512, 1), matrix(512, 1000, 1, 512), true, false, 1000, 4, 512, 512, 512, 1000},
		{"one row", matrix(1, 512, 512, 1), matrix(512, 1000, 1, 512), true, false, 1000, 1, 512, 512, 512, 1000},
		{"one row with a stride of its own", matrix(1, 512, 1, 1), matrix(512, 1000, 1, 512), true, false, 1000, 1, 512, 512, 1, 1000},
		{"row-major weight", matrix(4, 8, 8, 1), matrix(8, 6, 6, 1), false, false, 6, 4, 8, 6, 8, 6},
		{"column-major activation", matrix(4, 8, 1, 4), matrix(8, 6, 6, 1), false, true, 6, 4, 8, 6, 4, 6},
		{"both transposed", matrix(4, 8, 1, 4), matrix(8, 6, 1, 8), true, true, 6, 4, 8, 8, 4, 6},
		{"rows out of a wider matrix", matrix(4, 8, 20, 1), matrix(8, 6, 1, 30), true, false, 6, 4, 8, 30, 20, 6},
		{"columns out of a taller matrix", matrix(4, 8, 1, 9), matrix(8, 6, 11, 1), false, true, 6, 4, 8, 11, 9, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows, cols := test.a.Sizes[0], test.b.Sizes[1]
			got, err := describeLinear(&device.Linear{A: test.a, B: test.b, Bias: contiguous(0, tensor.Float32, cols),
				D: contiguous(0, tensor.Float32, rows, cols)}, 64, 512, 16, 128, device.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := linear{
				product: product{swapped: true, transa: test.transa, transb: test.transb, m: test.m, n: test.n, k: test.k,
					lda: test.lda, ldb: test.ldb, ldd: test.ldd},
				dtype: tensor.Float32, alpha: 1, biased: true, alignA: 256, alignB: 64, alignD: 128, alignBias: 16,
			}
			if got != want {
				t.Errorf("%+v\nwant %+v", got, want)
			}
		})
	}
}

func TestLinearRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*device.Linear)
		want   string
	}{
		{"shapes", func(l *device.Linear) { l.A.Sizes = []int64{1, 511} }, "do not fit"},
		{"type", func(l *device.Linear) { l.Bias.DType = tensor.BFloat16 }, "bias is bfloat16, a is float32"},
		{"double", func(l *device.Linear) { l.A.DType = tensor.Float64 }, "a is float64"},
		{"strides that fit neither way", func(l *device.Linear) { l.B.Strides = []int64{2, 1024} }, "PyTorch would copy it first"},
		{"result not contiguous", func(l *device.Linear) {
			l.D.Sizes, l.A.Sizes = []int64{2, 1000}, []int64{2, 512}
			l.D.Strides = []int64{1, 2}
		}, "must be contiguous"},
		{"vector", func(l *device.Linear) {
			l.B.Sizes = []int64{512, 1}
			l.Bias.Sizes = []int64{1}
			l.D.Sizes = []int64{1, 1}
		}, "side of 1"},
		{"dimensions", func(l *device.Linear) { l.Bias.Sizes = []int64{1, 1000} }, "bias has 2 sizes and 1 strides"},
		{"empty", func(l *device.Linear) { l.A.Sizes = []int64{0, 512} }, "a is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := torchLinear(tensor.Float32, 1)
			test.change(l)
			_, err := describeLinear(l, 0, 0, 0, 0, device.Options{})
			mustHave(t, err, test.want)
		})
	}
}

func TestDescribeConvolution(t *testing.T) {
	c := torchConvolution(tensor.Float32)
	c.X.Sizes, c.X.Strides = []int64{1, 64, 40, 40}, []int64{5, 1600, 40, 1}
	got, err := describeConvolution(c, 512, 48, 8, exact)
	if err != nil {
		t.Fatal(err)
	}
	if got.x.strides != [maxDims]int64{102400, 1600, 40, 1} || got.x.alignment != 32 || got.w.alignment != 16 || got.y.alignment != 8 {
		t.Errorf("%+v", got)
	}
	if !got.deterministic || !got.noTensorCore {
		t.Errorf("options are lost: %+v", got)
	}
	again, err := describeConvolution(torchConvolution(tensor.Float32), 1024, 16, 24, exact)
	if err != nil {
		t.Fatal(err)
	}
	if got != again {
		t.Errorf("equal convolutions differ:\n%+v\n%+v", got, again)
	}
	for name, change := range map[string]func(*device.Convolution){
		"another padding": func(c *device.Convolution) {
			c.Padding = []int64{0, 0}
			c.Y = contiguous(0, tensor.Float32, 1, 64, 38, 38)
		},
		"another type": func(c *device.Convolution) {
			c.X.DType, c.W.DType, c.Y.DType = tensor.Float16, tensor.Float16, tensor.Float16
		},
	} {
		other := torchConvolution(tensor.Float32)
		change(other)
		if described, err := describeConvolution(other, 512, 48, 8, exact); err != nil || described == got {
			t.Errorf("%s: the same signature, or %v", name, err)
		}
	}
}

func TestConvolutionRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*device.Convolution)
		want   string
	}{
		{"output size", func(c *device.Convolution) { c.Y.Sizes = []int64{1, 64, 38, 40} }, "y is [1 64 38 40], x [1 64 40 40] and w [64 64 3 3] give [1 64 40 40]"},
		{"groups", func(c *device.Convolution) { c.Groups = 3 }, "do not fit with 3 groups"},
		{"mixed types", func(c *device.Convolution) { c.W.DType = tensor.BFloat16 }, "w is bfloat16, x is float32"},
		{"integers", func(c *device.Convolution) { c.X.DType = tensor.Int32 }, "x is int32"},
		{"empty batch", func(c *device.Convolution) { c.X.Sizes = []int64{0, 64, 40, 40} }, "x is empty"},
		{"missing padding", func(c *device.Convolution) { c.Padding = []int64{1} }, "2 of each are wanted"},
		{"stride 0", func(c *device.Convolution) { c.Stride = []int64{0, 1} }, "stride [0 1]"},
		{"one spatial dimension", func(c *device.Convolution) { c.X.Sizes = []int64{1, 64, 40} }, "of 3 dimensions"},
		{"strides", func(c *device.Convolution) { c.W.Strides = []int64{9} }, "w has 4 sizes and 1 strides"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := torchConvolution(tensor.Float32)
			test.change(c)
			_, err := describeConvolution(c, 0, 0, 0, exact)
			mustHave(t, err, test.want)
		})
	}
}

func TestBatchNorms(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*device.BatchNorm)
		want   string // of the error; empty: none
	}{
		{"as it is", func(*device.BatchNorm) {}, ""},
		{"three dimensions", func(b *device.BatchNorm) {
			b.X = contiguous(0, tensor.Float32, 2, 64, 9)
			b.Y = contiguous(0, tensor.Float32, 2, 64, 9)
		}, ""},
		{"half precision", func(b *device.BatchNorm) { b.X.DType, b.Y.DType = tensor.Float16, tensor.Float16 }, ""},
		{"bfloat16", func(b *device.BatchNorm) { b.X.DType, b.Y.DType = tensor.BFloat16, tensor.BFloat16 }, "must be float32 or float16"},
		{"other layout of y", func(b *device.BatchNorm) { b.Y.Strides = []int64{102400, 1, 2560, 64} }, "one description holds for both"},
		{"channels", func(b *device.BatchNorm) { b.Mean.Sizes = []int64{63} }, "mean is float32 [63]; a contiguous float32 [64]"},
		{"parameters in half precision", func(b *device.BatchNorm) { b.Scale.DType = tensor.Float16 }, "scale is float16"},
		{"two dimensions", func(b *device.BatchNorm) { b.X.Sizes = []int64{1, 64} }, "of 2 dimensions"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := torchBatchNorm()
			test.change(b)
			_, err := describeBatchNorm(b)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			mustHave(t, err, test.want)
		})
	}
	three := torchBatchNorm()
	three.X = contiguous(0, tensor.Float32, 2, 64, 9)
	three.Y = three.X
	got, err := describeBatchNorm(three)
	if err != nil {
		t.Fatal(err)
	}
	if got.x.dims != 4 || got.x.sizes != [maxDims]int64{2, 64, 9, 1} || got.x.strides != [maxDims]int64{576, 9, 1, 1} {
		t.Errorf("three dimensions are described as %+v", got.x)
	}
}

func TestArgument(t *testing.T) {
	resolve := func(p device.Pointer) (uint64, error) { return 1<<40 + uint64(p.Offset), nil }
	for _, test := range []struct {
		value any
		bits  uint64
		size  int
	}{
		{device.Pointer{Offset: 8}, 1<<40 + 8, 8},
		{int32(-1), 0xffffffff, 4},
		{uint32(7), 7, 4},
		{int64(-2), 0xfffffffffffffffe, 8},
		{uint64(1 << 63), 1 << 63, 8},
		{float32(1), 0x3f800000, 4},
		{float64(1), 0x3ff0000000000000, 8},
	} {
		bits, size, err := argument(test.value, resolve)
		if err != nil || bits != test.bits || size != test.size {
			t.Errorf("%T %v: %#x of %d bytes, %v", test.value, test.value, bits, size, err)
		}
	}
	for _, wrong := range []any{1, "x", nil, true, []int32{1}} {
		if _, _, err := argument(wrong, resolve); err == nil || !strings.Contains(err.Error(), "no kernel takes") {
			t.Errorf("%T: %v", wrong, err)
		}
	}
}
