package ops

import (
	"fmt"
	"slices"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/signature"
	"samebits/parity/values"
)

// batch is several operations in one recording, independent of each other: loading and stepping cost once for all.
type batch struct {
	ops     []*signature.Operation
	file    []byte
	inputs  []input
	outputs []output
	bytes   int64 // of inputs and outputs
	onCPU   bool
}

// input is a storage that an operation takes, whole, in memory order.
type input struct {
	op      int // of the batch
	storage int // of the operation's own recording
	spec    tensor.Spec
	domain  values.Domain
	placed  []int // values of the operation's own recording that have a Place
}

// output is one tensor that is compared: a result, or what an operation wrote into an argument. Where its elements fill
// memory without gaps it is read in memory order, which is faster.
type output struct {
	op    int
	value int    // of the operation's own recording
	label string // result 0, self
	// written: the whole storage of an argument, so that stray writes show.
	written bool
	memory  bool // the elements are in memory order, from the value's first
	number  int  // of a result, in the flat list
	nth     int  // output of its operation
	spec    tensor.Spec
}

// newBatch puts operations of one context together. On the CPU, values are left out on which it is known to differ.
func newBatch(ops []*signature.Operation, onCPU bool) (*batch, error) {
	b := &batch{ops: ops, onCPU: onCPU}
	merged := &recording.Recording{Header: ops[0].Alone.Header}
	for i, o := range ops {
		b.add(merged, i, o)
	}
	for i, in := range b.inputs {
		b.bytes += in.spec.Bytes()
		b.inputs[i].spec.Name = merged.Inputs[i].Name
	}
	for _, out := range b.outputs {
		b.bytes += out.spec.Bytes()
	}
	var err error
	b.file, err = recording.Encode(merged)
	return b, err
}

// add appends an operation to the merged recording.
func (b *batch) add(to *recording.Recording, at int, o *signature.Operation) {
	own := o.Alone
	storages, first := len(to.Storages), len(to.Values)
	for i, s := range own.Storages {
		if s.Name != "" {
			s.Name = fmt.Sprintf("o%d.s%d", at, i)
		}
		to.Storages = append(to.Storages, s)
	}
	for _, v := range own.Values {
		v.Storage += storages
		to.Values = append(to.Values, v)
	}
	op := *o.Op()
	op.Arguments, op.Results = moved(op.Arguments, first), moved(op.Results, first)
	to.Operations = append(to.Operations, op)

	// flat adds a value that covers part of a storage in memory order.
	flat := func(storage int, d tensor.DType, numel, offset int64) int {
		to.Values = append(to.Values, recording.Value{Storage: storages + storage, DType: d, Sizes: []int64{numel}, Strides: []int64{1},
			Offset: offset, Alignment: signature.Alignment(own, storage, offset*d.Size())})
		return len(to.Values) - 1
	}
	domains := values.Domains(own, o.Op())
	if b.onCPU {
		tame(own, o.Op(), domains)
	}
	covers := map[int]int{} // values that cover inputs, by storage
	for i, s := range own.Storages {
		if s.Role != recording.Input {
			continue
		}
		numel := s.Bytes / s.DType.Size()
		covers[i] = flat(i, s.DType, numel, 0)
		to.Inputs = append(to.Inputs, recording.Named{Name: to.Storages[storages+i].Name, Value: covers[i]})
		in := input{op: at, storage: i, spec: tensor.Spec{DType: s.DType, Sizes: []int64{numel}}}
		var here []int
		for v := range own.Values {
			if own.Values[v].Storage == i {
				here = append(here, v)
				if domains[v].Place != nil {
					in.placed = append(in.placed, v)
				}
			}
		}
		in.domain = values.Of(domains, here)
		b.inputs = append(b.inputs, in)
	}
	for _, result := range o.Results {
		v := &own.Values[result.Value]
		out := output{op: at, value: result.Value, number: result.Number, label: fmt.Sprintf("result %d", result.Number),
			spec: tensor.Spec{DType: v.DType, Sizes: v.Sizes}}
		named := first + result.Value
		if dense(v) {
			out.memory, out.spec.Sizes = true, []int64{v.Numel()}
			named = flat(v.Storage, v.DType, v.Numel(), v.Offset)
		}
		b.output(to, out, named)
	}
	var done []int
	for _, value := range o.Written {
		storage := own.Values[value].Storage
		if slices.Contains(done, storage) {
			continue
		}
		done = append(done, storage)
		s := own.Storages[storage]
		b.output(to, output{op: at, value: value, number: -1, label: argumentOf(o.Op(), value) + " as it was written", written: true, memory: true,
			spec: tensor.Spec{DType: s.DType, Sizes: []int64{s.Bytes / s.DType.Size()}}}, covers[storage])
	}
}

func (b *batch) output(to *recording.Recording, out output, value int) {
	if n := len(b.outputs); n > 0 && b.outputs[n-1].op == out.op {
		out.nth = b.outputs[n-1].nth + 1
	}
	out.spec.Name = fmt.Sprintf("o%d.r%d", out.op, out.nth)
	to.Outputs = append(to.Outputs, recording.Named{Name: out.spec.Name, Value: value})
	b.outputs = append(b.outputs, out)
}

func (b *batch) inputSpecs() []tensor.Spec {
	specs := make([]tensor.Spec, len(b.inputs))
	for i := range b.inputs {
		specs[i] = b.inputs[i].spec
	}
	return specs
}

// moved gives arguments whose values lie so many places further.
func moved(args []recording.Argument, by int) []recording.Argument {
	out := make([]recording.Argument, len(args))
	for i, a := range args {
		switch a.Kind {
		case recording.ValueOf:
			a.Value += by
		case recording.List:
			a.Items = moved(a.Items, by)
		}
		out[i] = a
	}
	return out
}

// tame leaves out what the CPU does in its own way: it truncates floats that no whole number can hold to anything, and sorts
// NaNs in another order.
func tame(r *recording.Recording, op *recording.Operation, domains map[int]values.Domain) {
	name := signature.Base(op.Name)
	from, named := map[string]string{"aten::_to_copy": "self", "aten::copy_": "src", "aten::topk": "self", "aten::sort": "self"}[name]
	a, ok := op.Arg(from)
	results := recording.Values(op.Results, nil)
	if !named || !ok || a.Kind != recording.ValueOf || !r.Values[a.Value].DType.Float() || len(results) == 0 {
		return
	}
	switch {
	case name == "aten::topk" || name == "aten::sort":
		domains[a.Value] = values.Domain{NoNaN: true}
	case !r.Values[results[0]].DType.Float():
		domains[a.Value] = values.Domain{Low: -100, High: 100}
	}
}

// argumentOf names the argument that a value is.
func argumentOf(op *recording.Operation, value int) string {
	for i := range op.Arguments {
		if slices.Contains(recording.Values(op.Arguments[i:i+1], nil), value) {
			return op.Arguments[i].Name
		}
	}
	return "an argument"
}

// dense reports whether the elements of v fill memory from its first to its last, each place once.
func dense(v *recording.Value) bool {
	type dimension struct{ size, stride int64 }
	var dims []dimension
	for d, n := range v.Sizes {
		if n != 1 {
			dims = append(dims, dimension{n, v.Strides[d]})
		}
	}
	slices.SortFunc(dims, func(a, b dimension) int { return int(a.stride - b.stride) })
	want := int64(1)
	for _, d := range dims {
		if d.stride != want {
			return false
		}
		want *= d.size
	}
	return true
}
