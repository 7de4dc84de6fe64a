// Package recordingtest makes small recordings for tests.
package recordingtest

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// Builder makes a recording by hand.
type Builder struct{ R *recording.Recording }

// New starts a recording whose header is sound. device is cuda or cpu.
func New(device string) *Builder {
	return &Builder{&recording.Recording{Header: recording.Header{
		Family: "tiny", Size: "t", Task: "classify", Mode: "predict", Precision: "fp32", Profile: "exact-1",
		ProfileSettings: []recording.Setting{{Key: "cudnn.benchmark", Value: "false"}, {Key: "tf32", Value: "false"}},
		DeviceType:      device, Environment: []recording.Setting{{Key: "torch", Value: "2.11.0"}},
		Seed: 1, Seasoning: "none", ImgSize: 8, Batch: 1,
	}}}
}

// Tensor adds a storage with a contiguous value that covers it, and gives the value's index.
func (b *Builder) Tensor(role recording.Role, name string, dtype tensor.DType, sizes ...int64) int {
	b.R.Storages = append(b.R.Storages, recording.Storage{Bytes: tensor.Numel(sizes) * dtype.Size(), Role: role, Name: name, DType: dtype})
	b.R.Values = append(b.R.Values, recording.Value{Storage: len(b.R.Storages) - 1, DType: dtype, Sizes: sizes,
		Strides: tensor.ContiguousStrides(sizes), Alignment: recording.MaxAlignment})
	return len(b.R.Values) - 1
}

// Scratch adds a tensor that an operation of the step writes.
func (b *Builder) Scratch(dtype tensor.DType, sizes ...int64) int {
	return b.Tensor(recording.Scratch, "", dtype, sizes...)
}

// View adds a value on the storage of another one, with the alignment that its offset leaves.
func (b *Builder) View(of int, sizes, strides []int64, offset int64) int {
	v := b.R.Values[of]
	v.Sizes, v.Strides, v.Offset, v.Alignment = sizes, strides, offset, recording.MaxAlignment
	if bytes := offset * v.DType.Size() % recording.MaxAlignment; bytes != 0 {
		v.Alignment = uint32(bytes & -bytes)
	}
	b.R.Values = append(b.R.Values, v)
	return len(b.R.Values) - 1
}

// Op adds an operation. Results are values.
func (b *Builder) Op(name string, arguments []recording.Argument, results ...int) {
	o := recording.Operation{Name: name, Arguments: arguments, Module: "block", Source: "tiny/block.py:7"}
	for _, v := range results {
		o.Results = append(o.Results, recording.Argument{Kind: recording.ValueOf, Value: v})
	}
	b.R.Operations = append(b.R.Operations, o)
}

// Input names an input of the step.
func (b *Builder) Input(name string, value int) {
	b.R.Inputs = append(b.R.Inputs, recording.Named{Name: name, Value: value})
}

// Output names an output of the step and gives its storage that role if it was scratch.
func (b *Builder) Output(name string, value int) {
	b.R.Outputs = append(b.R.Outputs, recording.Named{Name: name, Value: value})
	if s := &b.R.Storages[b.R.Values[value].Storage]; s.Role == recording.Scratch {
		s.Role = recording.Output
	}
}

// Args is a list of arguments.
func Args(list ...recording.Argument) []recording.Argument { return list }

// None is an argument that is absent.
func None(name string) recording.Argument { return recording.Argument{Name: name} }

// Value is a tensor argument.
func Value(name string, v int) recording.Argument {
	return recording.Argument{Name: name, Kind: recording.ValueOf, Value: v}
}

// Values is an argument that is a list of tensors.
func Values(name string, vs ...int) recording.Argument {
	a := recording.Argument{Name: name, Kind: recording.List}
	for _, v := range vs {
		a.Items = append(a.Items, Value("", v))
	}
	return a
}

// Bool is a boolean argument.
func Bool(name string, v bool) recording.Argument {
	return recording.Argument{Name: name, Kind: recording.Boolean, Bool: v}
}

// Int is an integer argument.
func Int(name string, v int64) recording.Argument {
	return recording.Argument{Name: name, Kind: recording.Integer, Int: v}
}

// Ints is an argument that is a list of integers.
func Ints(name string, vs ...int64) recording.Argument {
	a := recording.Argument{Name: name, Kind: recording.List}
	for _, v := range vs {
		a.Items = append(a.Items, Int("", v))
	}
	return a
}

// Real is a floating-point argument.
func Real(name string, v float64) recording.Argument {
	return recording.Argument{Name: name, Kind: recording.Real, Real: v}
}
