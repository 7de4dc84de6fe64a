package ops

import (
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// This file has what the operations on matrices share. Which strides cuBLAS takes as they are is PyTorch's rule; what
// it takes neither way PyTorch copies first. A matrix that is transposed in memory stays so: that decides which of
// cuBLAS's kernels runs.

// checkProduct refuses what is no product of matrices, or of batches of them.
func checkProduct(op *recording.Operation, a, b, d device.Tensor) error {
	r := len(d.Sizes)
	if (r != 2 && r != 3) || len(a.Sizes) != r || len(b.Sizes) != r || a.Sizes[r-1] != b.Sizes[r-2] ||
		d.Sizes[r-2] != a.Sizes[r-2] || d.Sizes[r-1] != b.Sizes[r-1] ||
		!slices.Equal(a.Sizes[:r-2], d.Sizes[:r-2]) || !slices.Equal(b.Sizes[:r-2], d.Sizes[:r-2]) {
		return Refuse(op, "results[0]", "sizes %v times %v to %v", a.Sizes, b.Sizes, d.Sizes)
	}
	switch a.DType {
	case tensor.Float32, tensor.BFloat16, tensor.Float16, tensor.Float64:
	default:
		return Refuse(op, "arguments[0]", "a product of %s", a.DType)
	}
	if b.DType != a.DType || d.DType != a.DType {
		return Refuse(op, "arguments[1]", "factors %s and %s, result %s", a.DType, b.DType, d.DType)
	}
	return nil
}

// blasMatrix reports whether cuBLAS takes a matrix as it is: without gaps, or with whole rows or columns side by side.
func blasMatrix(t device.Tensor) bool {
	rows, columns := t.Sizes[0], t.Sizes[1]
	byRow, byColumn := t.Strides[0], t.Strides[1]
	return tensor.IsContiguous(t.Sizes, t.Strides) ||
		(byRow == 1 && byColumn >= max(1, rows)) || (byColumn == 1 && byRow >= max(1, columns))
}

// blasBatch is blasMatrix for every matrix of a batch, by the rule of PyTorch's bmm, which looks at strides alone.
func blasBatch(t device.Tensor) bool {
	rows, columns := t.Sizes[1], t.Sizes[2]
	byRow, byColumn := t.Strides[1], t.Strides[2]
	return (byRow == 1 && byColumn >= max(1, rows)) || (byColumn == 1 && byRow >= max(1, columns)) ||
		(tensor.IsContiguous(t.Sizes, t.Strides) && byRow != 0 && byColumn != 0)
}

// contiguous copies a tensor into scratch, row-major, unless it is so already.
func contiguous(b *Builder, op *recording.Operation, t device.Tensor) (device.Tensor, error) {
	if tensor.IsContiguous(t.Sizes, t.Strides) {
		return t, nil
	}
	return copied(b, op, t)
}

// copied copies a tensor into scratch, row-major.
func copied(b *Builder, op *recording.Operation, t device.Tensor) (device.Tensor, error) {
	to := t
	to.Pointer = b.Scratch(tensor.Numel(t.Sizes) * t.DType.Size())
	to.Strides = tensor.ContiguousStrides(t.Sizes)
	return to, copyTensor(b, op, to, t)
}

// emitProduct gives cuBLAS a product. Factors that it does not take are copied first.
func emitProduct(b *Builder, op *recording.Operation, c *device.Matmul) error {
	fits := blasMatrix
	if len(c.D.Sizes) == 3 {
		fits = blasBatch
	}
	if !tensor.IsContiguous(c.D.Sizes, c.D.Strides) {
		return Refuse(op, "results[0]", "a result with strides %v", c.D.Strides)
	}
	for _, t := range []*device.Tensor{&c.A, &c.B} {
		if fits(*t) {
			continue
		}
		var err error
		if *t, err = copied(b, op, *t); err != nil {
			return err
		}
	}
	b.Emit(c)
	return nil
}

// readSum reads what an operation adds up: what is added to, two operands of a product, the result, and the factors.
func readSum(op *recording.Operation, self, a, b string) (index [3]int, out int, f device.Factors, err error) {
	for i, name := range []string{self, a, b} {
		if index[i], err = ValueArg(op, name); err != nil {
			return index, 0, f, err
		}
	}
	if out, err = Result(op, 0); err == nil {
		f, err = readFactors(op)
	}
	return index, out, f, err
}

// readFactors reads alpha and beta.
func readFactors(op *recording.Operation) (f device.Factors, err error) {
	if f.Alpha, err = number(op, "alpha"); err == nil {
		f.Beta, err = number(op, "beta")
	}
	return f, err
}

// addend lays what a product is added to into the result, where beta makes it count: PyTorch copies it there, repeated
// as it broadcasts.
func addend(b *Builder, op *recording.Operation, self int, d device.Tensor, f device.Factors) error {
	if f.Beta == 0 {
		return nil
	}
	by, err := broadcast(b.Value(self), d.Sizes)
	if err != nil {
		return Refuse(op, argumentPath(op, "self"), "%v", err)
	}
	from := b.Tensor(self)
	from.Sizes, from.Strides = d.Sizes, by
	return copyTensor(b, op, d, from)
}

// emitNoTerms does a product over no terms, which is beta times what it is added to.
func emitNoTerms(b *Builder, op *recording.Operation, d device.Tensor, f device.Factors) error {
	if f.Beta != 0 {
		return Refuse(op, "arguments[1]", "a product over no terms with beta %v", f.Beta)
	}
	if !tensor.IsContiguous(d.Sizes, d.Strides) {
		return Refuse(op, "results[0]", "a result with strides %v", d.Strides)
	}
	b.Emit(&device.Fill{To: d.Pointer, Bytes: tensor.Numel(d.Sizes) * d.DType.Size()})
	return nil
}
