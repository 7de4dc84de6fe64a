package ops

import (
	"fmt"
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::convolution_backward", Class: Compute, Lower: lowerConvolutionBackward})
}

// gradients are the results of convolution_backward: of the input, the weight and the bias. PyTorch makes none of those
// that output_mask does not ask for.
type gradients struct {
	*convolution
	input, weightGradient *device.Tensor
}

func lowerConvolutionBackward(b *Builder, op *recording.Operation) error {
	out, err := ValueArg(op, "grad_output")
	if err != nil {
		return err
	}
	g := gradients{convolution: &convolution{op: op, y: b.Tensor(out), yPath: argumentPath(op, "grad_output")}}
	if transposed, err := BoolArg(op, "transposed"); err != nil {
		return err
	} else if transposed {
		return Refuse(op, argumentPath(op, "transposed"), "gradients of transposed convolutions are not done")
	}
	if err := g.read(b); err != nil {
		return err
	}
	if err := g.readResults(b); err != nil {
		return err
	}
	if tensor.Numel(g.x.Sizes) == 0 || tensor.Numel(g.y.Sizes) == 0 {
		return Refuse(op, g.yPath, "gradients of sizes %v for an input of sizes %v", g.y.Sizes, g.x.Sizes)
	}
	if g.depthwise() && !g.depthwiseByCuDNN() {
		return Refuse(op, argumentPath(op, "weight"), "the gradients of a depthwise convolution of %s that PyTorch does not give to cuDNN", g.x.DType)
	}
	if g.input != nil || g.weightGradient != nil {
		if err := g.emit(b); err != nil {
			return err
		}
	}
	return g.emitBiasGradient(b, out)
}

// readResults reads which gradients are wanted; one that nobody reads is not computed.
func (g *gradients) readResults(b *Builder) error {
	for i, like := range []device.Tensor{g.x, g.w} {
		value, ok, err := OptionalResult(g.op, i)
		if err != nil {
			return err
		}
		if !ok || !b.Needed(value) {
			continue
		}
		t := b.Tensor(value)
		if len(t.Sizes) == 3 {
			t = twoDimensional(t)
		}
		if t.DType != like.DType || !slices.Equal(t.Sizes, like.Sizes) {
			return Refuse(g.op, fmt.Sprintf("results[%d]", i), "a gradient of %s and sizes %v of what is %s and %v", t.DType, t.Sizes, like.DType, like.Sizes)
		}
		if i == 0 {
			g.input = &t
		} else {
			g.weightGradient = &t
		}
	}
	return nil
}

// emit follows convolution_backward and cudnn_convolution_backward: each gradient has a memory format of its own, chosen
// from what has been made dense so far, and the input's comes first.
func (g *gradients) emit(b *Builder) error {
	x, y := g.x, g.y
	last := func(list ...device.Tensor) bool {
		for _, t := range list {
			if t.DType != tensor.Float64 && looksChannelsLast(t) {
				return true
			}
		}
		return false
	}
	var err error
	if _, asked, _ := OptionalResult(g.op, 1); asked {
		if format := g.channelsLast(); !inFormat(x.Sizes, x.Strides, format) { // else PyTorch leaves the strides as they are
			if x, err = dense(b, g.op, x, format); err != nil {
				return err
			}
		}
	}
	if format := looksChannelsLast(x); looksChannelsLast(y) != format {
		if y, err = dense(b, g.op, y, format); err != nil {
			return err
		}
	}
	command := device.Convolution{Padding: g.padding, Stride: g.stride, Dilation: g.dilation, Groups: g.groups}
	if g.input != nil {
		format, c := last(y, g.w), command
		if c.Y, err = dense(b, g.op, y, format); err != nil {
			return err
		}
		if err := g.denseWeight(b, format); err != nil {
			return err
		}
		c.Direction, c.X, c.W = device.BackwardData, *g.input, g.w
		if err := g.setFormat(&c.X, 0, format); err != nil {
			return err
		}
		b.Emit(&c)
	}
	if g.weightGradient != nil {
		format, c := last(x, y), command
		if c.Y, err = dense(b, g.op, y, format); err != nil {
			return err
		}
		if c.X, err = dense(b, g.op, x, format); err != nil {
			return err
		}
		c.Direction, c.W = device.BackwardFilter, *g.weightGradient
		if err := g.setFormat(&c.W, 1, format); err != nil {
			return err
		}
		b.Emit(&c)
	}
	return nil
}

// setFormat gives a result the strides that cuDNN is told, and refuses one in another format than PyTorch's.
func (g *gradients) setFormat(t *device.Tensor, result int, last bool) error {
	if !inFormat(t.Sizes, t.Strides, last) {
		return Refuse(g.op, fmt.Sprintf("results[%d]", result), "a gradient with strides %v for an input with strides %v, a weight with strides %v and gradients with strides %v",
			t.Strides, g.x.Strides, g.w.Strides, g.y.Strides)
	}
	t.Strides = formatStrides(t.Sizes, last)
	return nil
}

// emitBiasGradient sums the gradients as they came over everything but channels.
func (g *gradients) emitBiasGradient(b *Builder, out int) error {
	to, ok, err := OptionalResult(g.op, 2)
	if err != nil || !ok || !b.Needed(to) {
		return err
	}
	dims := []int64{0, 2, 3}
	r, err := reduce(b, g.op, "sum", out, to, dims[:len(b.Value(out).Sizes)-1], false)
	if err != nil {
		return err
	}
	return r.emitSum(b)
}
