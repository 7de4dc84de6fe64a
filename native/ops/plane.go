package ops

import (
	"fmt"
	"math"
	"slices"

	"samebits/bridge/recording"
	"samebits/native/device"
)

// This file is what pooling and resampling share: images of channels of rows and columns.

// plane is a tensor of 3 or 4 dimensions seen as images, channels, rows, columns.
type plane struct {
	sizes, strides [4]int64
}

func planeOf(op *recording.Operation, v *recording.Value, path string) (plane, error) {
	var p plane
	skip := 4 - len(v.Sizes)
	if skip != 0 && skip != 1 {
		return p, Refuse(op, path, "a tensor of %d dimensions, wanted 3 or 4", len(v.Sizes))
	}
	p.sizes[0] = 1
	copy(p.sizes[skip:], v.Sizes)
	copy(p.strides[skip:], v.Strides)
	last := int64(0)
	for d, n := range p.sizes {
		if last += max(n-1, 0) * p.strides[d]; n > math.MaxInt32 || p.strides[d] > math.MaxInt32 || last > math.MaxInt32 {
			return p, Refuse(op, path, "sizes %v of strides %v, at most 2^31 elements are done", v.Sizes, v.Strides)
		}
	}
	return p, nil
}

// args are the kernel parameters PLANES.
func (p *plane) args() []any {
	return []any{int32(p.strides[0]), int32(p.strides[1]), int32(p.strides[2]), int32(p.strides[3])}
}

// launchOutputs emits a kernel with a thread for each output; args precede the parameters OUTPUTS and more follow them.
func (b *Builder) launchOutputs(file, entry string, out plane, channelsLast bool, args []any, more ...any) {
	images, channels, height, width := out.sizes[0], out.sizes[1], out.sizes[2], out.sizes[3]
	inner, middle, outer := width, height, images*channels
	if channelsLast {
		inner, middle, outer = channels, width, images*height
	}
	x := int64(32)
	for x > 1 && x/2 >= inner {
		x /= 2
	}
	y := threads / x
	args = append(args, int32(images), int32(channels), int32(height), int32(width), flag(channelsLast))
	b.Emit(&device.Kernel{File: file, Entry: entry, Block: [3]uint32{uint32(x), uint32(y), 1},
		Grid: [3]uint32{uint32((inner + x - 1) / x), uint32(min((middle+y-1)/y, math.MaxUint16)), uint32(min(outer, math.MaxUint16))},
		Args: append(args, more...)})
}

// channelsLast is PyTorch's guess of the memory format from sizes and strides (c10's is_channels_last_strides_2d_s4):
// what is ambiguous is row-major.
func channelsLast(v *recording.Value) bool {
	if len(v.Sizes) != 4 || v.Strides[1] == 0 {
		return false
	}
	least := int64(0)
	for _, d := range []int{1, 3, 2, 0} {
		if v.Sizes[d] == 0 || v.Strides[d] < least || d == 0 && least == v.Strides[1] {
			return false
		}
		least = v.Strides[d]
		if v.Sizes[d] > 1 {
			least *= v.Sizes[d]
		}
	}
	return true
}

// planes reads the input and result number 0 of an operation that keeps images and channels.
func planes(b *Builder, op *recording.Operation) (self, out int, in, to plane, err error) {
	if self, err = ValueArg(op, "self"); err != nil {
		return
	}
	if out, err = Result(op, 0); err != nil {
		return
	}
	if in, err = planeOf(op, b.Value(self), argumentPath(op, "self")); err != nil {
		return
	}
	if to, err = planeOf(op, b.Value(out), "results[0]"); err != nil {
		return
	}
	x, y := b.Value(self), b.Value(out)
	switch {
	case in.sizes[0] != to.sizes[0] || in.sizes[1] != to.sizes[1]:
		err = Refuse(op, "results[0]", "sizes %v do not come from %v", y.Sizes, x.Sizes)
	case x.DType != y.DType:
		err = Refuse(op, "results[0]", "%s does not come from %s", y.DType, x.DType)
	}
	return
}

// window is where a pooling looks.
type window struct {
	kernel, stride, padding, dilation [2]int32
}

// args are the kernel parameters WINDOW.
func (w *window) args(in plane) []any {
	args := []any{int32(in.sizes[2]), int32(in.sizes[3])}
	for _, pair := range [][2]int32{w.kernel, w.stride, w.padding, w.dilation} {
		args = append(args, pair[0], pair[1])
	}
	return args
}

// suffix names the entry: square windows of the given sizes have their own, with all loads of a window in flight at once.
func (w *window) suffix(dtype string, in plane, last bool, own ...int32) string {
	k := w.kernel[0]
	if dtype != "f64" && !last && in.strides[3] == 1 && w.kernel[1] == k && w.dilation == [2]int32{1, 1} && slices.Contains(own, k) {
		return fmt.Sprintf("%s_%dx%d", dtype, k, k)
	}
	return dtype
}

func windowOf(op *recording.Operation) (window, error) {
	w := window{dilation: [2]int32{1, 1}}
	var err error
	if w.kernel, err = pair(op, "kernel_size", w.kernel, 1); err != nil {
		return w, err
	}
	if w.stride, err = pair(op, "stride", w.kernel, 1); err != nil { // none: that of the kernel
		return w, err
	}
	if w.padding, err = pair(op, "padding", w.padding, 0); err != nil {
		return w, err
	}
	if _, ok := op.Arg("dilation"); ok {
		w.dilation, err = pair(op, "dilation", w.dilation, 1)
	}
	return w, err
}

// pair reads one or two integers, for rows and columns; an empty list means what is missing stands for.
func pair(op *recording.Operation, name string, missing [2]int32, least int64) ([2]int32, error) {
	list, err := IntsArg(op, name)
	if err != nil {
		return missing, err
	}
	if len(list) == 0 && missing[0] >= int32(least) {
		return missing, nil
	}
	if len(list) == 1 {
		list = []int64{list[0], list[0]}
	}
	if len(list) != 2 {
		return missing, Refuse(op, argumentPath(op, name), "%s has %d numbers, wanted 2", name, len(list))
	}
	for _, n := range list {
		if n < least || n > math.MaxInt16 {
			return missing, Refuse(op, argumentPath(op, name), "%s is %d, wanted %d to %d", name, n, least, math.MaxInt16)
		}
	}
	return [2]int32{int32(list[0]), int32(list[1])}, nil
}

// check refuses what PyTorch's shape check would have: much padding, and windows that begin behind the input.
func (w *window) check(op *recording.Operation, in, out plane) error {
	for i := range w.kernel {
		if reach := (w.kernel[i]-1)*w.dilation[i] + 1; 2*w.padding[i] > reach {
			return Refuse(op, argumentPath(op, "padding"), "padding %d is more than half a window of %d", w.padding[i], reach)
		}
		if n := out.sizes[2+i]; n > 0 && (n-1)*int64(w.stride[i]) >= in.sizes[2+i]+int64(w.padding[i]) {
			return Refuse(op, "results[0]", "%d windows, %d apart, do not fit into %d", n, w.stride[i], in.sizes[2+i])
		}
	}
	return nil
}

// floatSuffix is Suffix for operations that are done in floating point only.
func floatSuffix(op *recording.Operation, v *recording.Value) (string, error) {
	suffix, err := Suffix(v.DType)
	if err == nil && !v.DType.Float() {
		err = fmt.Errorf("no kernels for %s", v.DType)
	}
	if err != nil {
		return "", Refuse(op, "results[0]", "%v", err)
	}
	return suffix, nil
}

func flag(on bool) int32 {
	if on {
		return 1
	}
	return 0
}
