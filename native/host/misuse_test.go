//go:build linux && amd64

package host

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// TestPrepareRefuses gives every command something wrong, all in one list, and wants one problem for each.
func TestPrepareRefuses(t *testing.T) {
	dense := func(d tensor.DType, sizes ...int64) device.Tensor {
		return device.Tensor{DType: d, Sizes: sizes, Strides: tensor.ContiguousStrides(sizes)}
	}
	f32 := func(sizes ...int64) device.Tensor { return dense(tensor.Float32, sizes...) }
	convolution := func(change func(*device.Convolution)) *device.Convolution {
		c := &device.Convolution{X: f32(1, 4, 8, 8), W: f32(6, 4, 3, 3), Y: f32(1, 6, 8, 8), Padding: []int64{1, 1},
			Stride: []int64{1, 1}, Dilation: []int64{1, 1}, Groups: 1}
		change(c)
		return c
	}
	linear := func(change func(*device.Linear)) *device.Linear {
		c := &device.Linear{A: f32(3, 4), B: f32(4, 5), Bias: f32(5), D: f32(3, 5)}
		change(c)
		return c
	}
	norm := func(change func(*device.BatchNorm)) *device.BatchNorm {
		c := &device.BatchNorm{X: f32(1, 4, 2, 2), Y: f32(1, 4, 2, 2), Scale: f32(4), Bias: f32(4), Mean: f32(4), Variance: f32(4)}
		change(c)
		return c
	}
	nowhere := device.Pointer{Storage: 1}
	cases := []struct {
		name    string
		command device.Command
		reason  string
		says    string
	}{
		{"another type", convolution(func(c *device.Convolution) { c.W = dense(tensor.BFloat16, 6, 4, 3, 3) }), "UNSUPPORTED", "float32 and bfloat16"},
		{"integers", convolution(func(c *device.Convolution) {
			c.X.DType, c.W.DType, c.Y.DType = tensor.Int32, tensor.Int32, tensor.Int32
		}), "UNSUPPORTED", "int32"},
		{"three dimensions of space", convolution(func(c *device.Convolution) { c.X = f32(1, 4, 8, 8, 8) }), "UNSUPPORTED", "5 dimensions"},
		{"w of another rank", convolution(func(c *device.Convolution) { c.W = f32(6, 4, 3) }), "BAD_SHAPE", "w has sizes [6 4 3]"},
		{"no stride for a size", convolution(func(c *device.Convolution) { c.X.Strides = c.X.Strides[:3] }), "BAD_SHAPE", "x has"},
		{"negative size", convolution(func(c *device.Convolution) { c.X.Sizes = []int64{-1, 4, 8, 8} }), "BAD_SHAPE", "negative"},
		{"y of another size", convolution(func(c *device.Convolution) { c.Y = f32(1, 6, 8, 7) }), "BAD_SHAPE", "wanted [1 6 8 8]"},
		{"channels that do not fit", convolution(func(c *device.Convolution) { c.X = f32(1, 5, 8, 8) }), "BAD_SHAPE", "do not fit"},
		{"groups that do not fit", convolution(func(c *device.Convolution) { c.Groups = 4 }), "BAD_SHAPE", "4 groups"},
		{"no groups", convolution(func(c *device.Convolution) { c.Groups = 0 }), "BAD_SHAPE", "0 groups"},
		{"no stride", convolution(func(c *device.Convolution) { c.Stride = []int64{0, 1} }), "BAD_SHAPE", "stride [0 1]"},
		{"one padding", convolution(func(c *device.Convolution) { c.Padding = []int64{1} }), "BAD_SHAPE", "padding [1]"},
		{"large kernel", convolution(func(c *device.Convolution) { c.Dilation = []int64{9, 1} }), "BAD_SHAPE", "larger than x"},
		{"x nowhere", convolution(func(c *device.Convolution) { c.X.Pointer = nowhere }), "BAD_ADDRESS", "x has no address"},
		{"no direction", convolution(func(c *device.Convolution) { c.Direction = 9 }), "UNSUPPORTED", "direction 9"},
		{"k that does not fit", linear(func(c *device.Linear) { c.B = f32(5, 5) }), "BAD_SHAPE", "do not fit"},
		{"short bias", linear(func(c *device.Linear) { c.Bias = f32(4) }), "BAD_SHAPE", "bias [4]"},
		{"bias with gaps", linear(func(c *device.Linear) { c.Bias.Strides = []int64{2} }), "BAD_SHAPE", "bias [5]"},
		{"batches", linear(func(c *device.Linear) { c.A = f32(2, 3, 4) }), "BAD_SHAPE", "a has"},
		{"norm of doubles", norm(func(c *device.BatchNorm) { c.X.DType, c.Y.DType = tensor.Float64, tensor.Float64 }), "UNSUPPORTED", "float64"},
		{"norm of half statistics", norm(func(c *device.BatchNorm) { c.Mean = dense(tensor.Float16, 4) }), "BAD_SHAPE", "mean is float16"},
		{"norm of fewer channels", norm(func(c *device.BatchNorm) { c.Scale = f32(3) }), "BAD_SHAPE", "scale is float32 [3]"},
		{"norm to another size", norm(func(c *device.BatchNorm) { c.Y = f32(1, 4, 2, 3) }), "BAD_SHAPE", "y is"},
		{"copy from nowhere", &device.Copy{To: device.Pointer{}, From: nowhere, Bytes: 8}, "BAD_ADDRESS", "from has no address"},
		{"overlapping copy", &device.Copy{To: device.Pointer{}, From: device.Pointer{Offset: 7}, Bytes: 8}, "BAD_COPY", "overlap"},
		{"negative fill", &device.Fill{Bytes: -1}, "BAD_SIZE", "-1 bytes"},
		{"no command", nil, "UNSUPPORTED", "no command"},
	}
	list := make([]device.Command, len(cases))
	for i, c := range cases {
		list[i] = c.command
	}
	resolve := func(p device.Pointer) uintptr {
		if p.Storage == nowhere.Storage {
			return 0
		}
		return uintptr(1<<20 + p.Offset)
	}
	_, err := open(t).Prepare(list, resolve, device.Options{})
	problems, ok := diag.Of(err)
	if !ok {
		t.Fatalf("wanted problems, got %v", err)
	}
	for i, c := range cases {
		at := slices.IndexFunc(problems, func(p diag.Problem) bool { return p.Path == "commands["+strconv.Itoa(i)+"]" })
		if at < 0 {
			t.Errorf("%s: not refused", c.name)
			continue
		}
		if p := problems[at]; p.Reason != c.reason || !strings.Contains(p.Summary, c.says) {
			t.Errorf("%s: %v, wanted %s and %q", c.name, p, c.reason, c.says)
		}
	}
	if len(problems) != len(cases) {
		t.Errorf("%d problems of %d commands: %v", len(problems), len(cases), err)
	}
}
