package ops

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::convolution", Class: Compute, Lower: lowerConvolution})
}

// convolution is aten::convolution after one-dimensional ones were made two-dimensional, as PyTorch does. A transposed
// one has its result as x and its input as y, of which it is the gradient.
type convolution struct {
	op                        *recording.Operation
	transposed                bool
	x, w, y                   device.Tensor
	yPath                     string        // of y in the operation
	weight                    int           // the value that w is
	bias                      device.Tensor // valid if hasBias
	hasBias                   bool
	stride, padding, dilation []int64
	groups                    int64
}

func lowerConvolution(b *Builder, op *recording.Operation) error {
	c, err := readConvolution(b, op)
	if err != nil {
		return err
	}
	in, out := c.ends()
	if tensor.Numel(out.Sizes) == 0 {
		return nil
	}
	if tensor.Numel(in.Sizes) == 0 {
		return Refuse(op, "arguments[0]", "an input of sizes %v", in.Sizes)
	}
	last := c.channelsLast()
	// Of a depthwise convolution a result in NCHW for an input in channels-last says that the model had switched cuDNN
	// off, as rfdetr's segmentation head does.
	if c.depthwise() && (!c.depthwiseByCuDNN() || last && !inFormat(out.Sizes, out.Strides, last)) {
		return c.emitDepthwise(b)
	}
	if !inFormat(out.Sizes, out.Strides, last) {
		return Refuse(op, "results[0]", "a result with strides %v for an input with strides %v and a weight with strides %v",
			out.Strides, in.Strides, c.w.Strides)
	}
	if *in, err = dense(b, op, *in, last); err != nil {
		return err
	}
	if err := c.denseWeight(b, last); err != nil {
		return err
	}
	out.Strides = formatStrides(out.Sizes, last)
	command := &device.Convolution{X: c.x, W: c.w, Y: c.y,
		Padding: c.padding, Stride: c.stride, Dilation: c.dilation, Groups: c.groups}
	if c.transposed {
		command.Direction = device.BackwardData
	}
	b.Emit(command)
	if c.hasBias {
		return c.emitBias(b, *out)
	}
	return nil
}

// ends are the operation's input and result.
func (c *convolution) ends() (in, out *device.Tensor) {
	if c.transposed {
		return &c.y, &c.x
	}
	return &c.x, &c.y
}

// channelsLast is cudnn_conv_suggest_memory_format: channels-last if the input or the weight looks so.
func (c *convolution) channelsLast() bool {
	in, _ := c.ends()
	return in.DType != tensor.Float64 && (looksChannelsLast(*in) || looksChannelsLast(c.w))
}

// denseWeight is dense for the weight, which seldom changes from step to step.
func (c *convolution) denseWeight(b *Builder, last bool) (err error) {
	to := c.w
	to.Strides = formatStrides(c.w.Sizes, last)
	if !inFormat(c.w.Sizes, c.w.Strides, last) {
		bytes := tensor.Numel(c.w.Sizes) * c.w.DType.Size()
		to.Pointer = b.Precompute(bytes, []int{c.weight}, func(p device.Pointer) {
			to.Pointer = p
			err = copyTensor(b, c.op, to, c.w)
		})
	}
	c.w = to
	return err
}

// emitBias adds the bias to the stored result: PyTorch rounds the convolution before it adds.
func (c *convolution) emitBias(b *Builder, out device.Tensor) error {
	suffix, err := Suffix(out.DType)
	if err != nil {
		return err
	}
	s := collapse(out.Sizes, out.Strides, out.Strides, []int64{0, c.bias.Strides[0], 0, 0})
	one := parameter(out.DType, 1, 1) // alpha
	if s.isRows() {
		b.launchPairs("add", "add_"+suffix+"_rows", s, out.DType, [3]device.Pointer{out.Pointer, out.Pointer, c.bias.Pointer}, []any{one})
		return nil
	}
	if err := s.check(c.op); err != nil {
		return err
	}
	code, err := elementCode(out.DType)
	if err != nil {
		return err
	}
	args := append(append(s.args(), out.Pointer), s.steps(0)...)
	args = append(append(args, out.Pointer, code), s.steps(1)...)
	args = append(append(args, c.bias.Pointer, code), s.steps(2)...)
	b.launch("add", "add_"+suffix+"_strided", s.items(out.DType), append(args, one))
	return nil
}

func readConvolution(b *Builder, op *recording.Operation) (*convolution, error) {
	bias, hasBias, err := OptionalValueArg(op, "bias")
	if err != nil {
		return nil, err
	}
	out, err := Result(op, 0)
	if err != nil {
		return nil, err
	}
	c := &convolution{op: op, y: b.Tensor(out), yPath: "results[0]"}
	if c.transposed, err = BoolArg(op, "transposed"); err != nil {
		return nil, err
	}
	if hasBias {
		c.bias, c.hasBias = b.Tensor(bias), true
	}
	return c, c.read(b)
}

// read reads what a convolution and its gradients have in common.
func (c *convolution) read(b *Builder) error {
	op := c.op
	in, err := ValueArg(op, "input")
	if err != nil {
		return err
	}
	if c.weight, err = ValueArg(op, "weight"); err != nil {
		return err
	}
	if c.groups, err = IntArg(op, "groups"); err != nil {
		return err
	}
	c.x, c.w = b.Tensor(in), b.Tensor(c.weight)
	if c.transposed {
		c.x, c.y = c.y, c.x
	}
	spatial := len(c.w.Sizes) - 2
	if spatial != 1 && spatial != 2 {
		return Refuse(op, argumentPath(op, "weight"), "a convolution over %d dimensions", spatial)
	}
	for _, p := range []struct {
		name string
		to   *[]int64
	}{{"stride", &c.stride}, {"padding", &c.padding}, {"dilation", &c.dilation}} {
		list, err := IntsArg(op, p.name)
		if err != nil {
			return err
		}
		if len(list) == 1 && spatial == 2 {
			list = []int64{list[0], list[0]}
		}
		if len(list) != spatial {
			return Refuse(op, argumentPath(op, p.name), "%d numbers for %d dimensions", len(list), spatial)
		}
		*p.to = list
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.transposed {
		if err := c.checkOutputPadding(); err != nil {
			return err
		}
	}
	if spatial == 1 {
		return c.makeTwoDimensional(b)
	}
	return nil
}

// checkOutputPadding refuses an output padding as large as the stride, for which PyTorch does not take cuDNN.
func (c *convolution) checkOutputPadding() error {
	list, err := IntsArg(c.op, "output_padding")
	if err != nil {
		return err
	}
	for d := range c.stride {
		more := list[min(d, len(list)-1)]
		if more < 0 || more >= c.stride[d] {
			return Refuse(c.op, argumentPath(c.op, "output_padding"), "an output padding of %v for a stride of %v", list, c.stride)
		}
		if want := (c.y.Sizes[2+d]-1)*c.stride[d] - 2*c.padding[d] + c.dilation[d]*(c.w.Sizes[2+d]-1) + 1 + more; c.x.Sizes[2+d] != want {
			return Refuse(c.op, "results[0]", "a result of sizes %v, wanted %d in dimension %d", c.x.Sizes, want, 2+d)
		}
	}
	return nil
}

// check refuses what does not fit together.
func (c *convolution) check() error {
	rank := len(c.w.Sizes)
	if len(c.x.Sizes) != rank || len(c.y.Sizes) != rank {
		return Refuse(c.op, c.yPath, "input %v, weight %v, result %v", c.x.Sizes, c.w.Sizes, c.y.Sizes)
	}
	if c.groups < 1 || c.x.Sizes[1] != c.w.Sizes[1]*c.groups || c.w.Sizes[0]%c.groups != 0 {
		return Refuse(c.op, argumentPath(c.op, "groups"), "%d groups of input %v and weight %v", c.groups, c.x.Sizes, c.w.Sizes)
	}
	want := []int64{c.x.Sizes[0], c.w.Sizes[0]}
	for d := range c.stride {
		if c.stride[d] < 1 || c.dilation[d] < 1 || c.padding[d] < 0 {
			return Refuse(c.op, argumentPath(c.op, "stride"), "stride %v, padding %v, dilation %v", c.stride, c.padding, c.dilation)
		}
		reach := c.dilation[d]*(c.w.Sizes[2+d]-1) + 1
		want = append(want, (c.x.Sizes[2+d]+2*c.padding[d]-reach)/c.stride[d]+1)
	}
	for d := range want {
		if c.y.Sizes[d] != want[d] {
			return Refuse(c.op, c.yPath, "a result of sizes %v, wanted %v", c.y.Sizes, want)
		}
	}
	switch c.x.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64:
	default:
		return Refuse(c.op, "arguments[0]", "a convolution of %s", c.x.DType)
	}
	if c.w.DType != c.x.DType || c.y.DType != c.x.DType || (c.hasBias && c.bias.DType != c.x.DType) {
		return Refuse(c.op, "arguments[1]", "input %s, weight %s, result %s", c.x.DType, c.w.DType, c.y.DType)
	}
	if _, out := c.ends(); c.hasBias && (len(c.bias.Sizes) != 1 || c.bias.Sizes[0] != out.Sizes[1]) {
		return Refuse(c.op, argumentPath(c.op, "bias"), "a bias of sizes %v for %d channels", c.bias.Sizes, out.Sizes[1])
	}
	return nil
}

// makeTwoDimensional views [N,C,L] as [N,C,1,L]; PyTorch makes the input contiguous first.
func (c *convolution) makeTwoDimensional(b *Builder) error {
	in, _ := c.ends()
	var err error
	if *in, err = contiguous(b, c.op, *in); err != nil {
		return err
	}
	c.x, c.w, c.y = twoDimensional(c.x), twoDimensional(c.w), twoDimensional(c.y)
	c.stride = []int64{1, c.stride[0]}
	c.padding = []int64{0, c.padding[0]}
	c.dilation = []int64{1, c.dilation[0]}
	return nil
}

func twoDimensional(t device.Tensor) device.Tensor {
	n, channels, length, s := t.Sizes[0], t.Sizes[1], t.Sizes[2], t.Strides
	t.Sizes, t.Strides = []int64{n, channels, 1, length}, []int64{s[0], s[1], length * s[2], s[2]}
	return t
}
