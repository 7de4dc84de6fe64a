package ops

import (
	"math"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

func init() {
	Register(Registration{Name: "aten::nll_loss_forward", Class: Compute, Lower: lowerNLLLoss})
	Register(Registration{Name: "aten::nll_loss_backward", Class: Compute, Lower: lowerNLLLossBackward})
}

// nllLoss is what the loss and its gradient have in common: a matrix of log-probabilities and a class for each row.
type nllLoss struct {
	suffix        string
	target        device.Tensor
	mean          int32
	rows, classes int64
	ignore        int64
}

// readNLLLoss reads the arguments of both. A target that is no class cannot be refused here, for targets change from step
// to step: kernels/nll_loss.cu says what becomes of it.
func readNLLLoss(b *Builder, op *recording.Operation, dtype tensor.DType) (*nllLoss, error) {
	l := &nllLoss{}
	self, err := ValueArg(op, "self")
	if err != nil {
		return nil, err
	}
	target, err := ValueArg(op, "target")
	if err != nil {
		return nil, err
	}
	if _, weighted, err := OptionalValueArg(op, "weight"); err != nil || weighted {
		if err == nil {
			err = Refuse(op, argumentPath(op, "weight"), "weights of classes are not done")
		}
		return nil, err
	}
	reduction, err := IntArg(op, "reduction")
	if err != nil {
		return nil, err
	}
	if reduction != 1 && reduction != 2 {
		return nil, Refuse(op, argumentPath(op, "reduction"), "reduction %d; the mean (1) and the sum (2) are done", reduction)
	}
	if l.ignore, err = IntArg(op, "ignore_index"); err != nil {
		return nil, err
	}
	x, t := b.Value(self), b.Value(target)
	if len(x.Sizes) != 2 || len(t.Sizes) != 1 || t.Sizes[0] != x.Sizes[0] || x.Numel() == 0 || x.Sizes[0] > math.MaxInt32 {
		return nil, Refuse(op, argumentPath(op, "self"), "inputs of sizes %v with targets of sizes %v", x.Sizes, t.Sizes)
	}
	if t.DType != tensor.Int64 || x.DType != dtype {
		return nil, Refuse(op, argumentPath(op, "target"), "targets of %s, inputs of %s, a result of %s", t.DType, x.DType, dtype)
	}
	switch dtype {
	case tensor.Float32, tensor.BFloat16, tensor.Float16:
	default:
		return nil, Refuse(op, argumentPath(op, "self"), "no kernel for %s", dtype)
	}
	if l.suffix, err = Suffix(dtype); err != nil {
		return nil, err
	}
	l.mean, l.rows, l.classes = flag(reduction == 1), x.Sizes[0], x.Sizes[1]
	l.target, err = dense(b, op, b.Tensor(target), false)
	return l, err
}

// threads is PyTorch's nll_loss_threads: the size of the one block, and so the order of the sum.
func (l *nllLoss) threads() int64 {
	rounded := math.Round(math.Log2(float64(l.rows / 16)))
	return min(max(int64(1)<<int64(max(rounded, 0)), 32), 1024)
}

func (l *nllLoss) args(args ...any) []any {
	return append(args, l.mean, int32(l.rows), l.classes, l.ignore)
}

func lowerNLLLoss(b *Builder, op *recording.Operation) error {
	loss, err := Result(op, 0)
	if err != nil {
		return err
	}
	total, err := Result(op, 1)
	if err != nil {
		return err
	}
	l, err := readNLLLoss(b, op, b.Value(loss).DType)
	if err != nil {
		return err
	}
	if b.Value(loss).Numel() != 1 || b.Value(total).Numel() != 1 || b.Value(total).DType != b.Value(loss).DType {
		return Refuse(op, "results[0]", "a loss of sizes %v and a total weight of %s", b.Value(loss).Sizes, b.Value(total).DType)
	}
	self, _ := ValueArg(op, "self")
	x, err := dense(b, op, b.Tensor(self), false)
	if err != nil {
		return err
	}
	b.Emit(&device.Kernel{File: "nll_loss", Entry: "nll_loss_forward_" + l.suffix,
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{uint32(l.threads()), 1, 1}, Shared: uint32(8 * l.threads()),
		Args: l.args(b.Pointer(loss), b.Pointer(total), x.Pointer, l.target.Pointer)})
	return nil
}

func lowerNLLLossBackward(b *Builder, op *recording.Operation) error {
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	dx := b.Value(out)
	l, err := readNLLLoss(b, op, dx.DType)
	if err != nil {
		return err
	}
	var scalars [2]int
	for i, name := range []string{"grad_output", "total_weight"} {
		if scalars[i], err = ValueArg(op, name); err != nil {
			return err
		}
		if v := b.Value(scalars[i]); v.Numel() != 1 || v.DType != dx.DType {
			return Refuse(op, argumentPath(op, name), "%s of sizes %v", v.DType, v.Sizes)
		}
	}
	if !dx.Contiguous() || !equalSizes(dx.Sizes, []int64{l.rows, l.classes}) {
		return Refuse(op, "results[0]", "a gradient of sizes %v with strides %v", dx.Sizes, dx.Strides)
	}
	b.Emit(&device.Fill{To: b.Pointer(out), Bytes: dx.Numel() * dx.DType.Size()})
	b.launch("nll_loss", "nll_loss_backward_"+l.suffix, l.rows,
		l.args(b.Pointer(out), b.Pointer(scalars[0]), l.target.Pointer, b.Pointer(scalars[1])))
	return nil
}
