// Package opstest has a tiny engine that runs recordings of a few operations in single precision, right or with one planted
// fault. It knows nothing of the native engine or of PyTorch.
package opstest

import (
	"encoding/binary"
	"fmt"
	"math"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

// Fault is what an engine does wrong. The zero Fault is nothing.
type Fault struct {
	Operation string                   // whose fault it is, empty: none
	Element   int                      // of the result, in row-major order; of memory where Beside is set
	Change    func(x float32) float32  // what becomes of that element
	Beside    bool                     // it is memory of the result's storage
	Refuse    map[string]string        // reason by operation: Load refuses it
	Lists     bool                     // of the operations that Load refuses, each name is listed once
	Fails     map[string]error         // by operation: the step that has it fails
	Every     func(x float64) float64  // what becomes of every result
	After     string                   // the fault is there only if this operation runs right before
	Steps     func(step int) (add int) // ULPs that every first element gets in a step
}

// Engine runs a recording.
type Engine struct {
	Fault  Fault
	Double bool // as if every float were a float64

	r       *recording.Recording
	weights *safetensors.File
	steps   int
	before  string // the operation that ran last
}

// Load takes a recording with its weights, a safetensors file.
func (e *Engine) Load(file, weights []byte) error {
	r, err := recording.Decode(file)
	if err != nil {
		return err
	}
	var problems diag.Problems
	listed := map[string]bool{}
	for i := range r.Operations {
		name := r.Operations[i].Name
		reason, refused := e.Fault.Refuse[name]
		if !refused && operations[name] == nil {
			reason, refused = "UNKNOWN_OPERATION", true
		}
		if refused && !(e.Fault.Lists && listed[name]) {
			listed[name] = true
			problems.Add(reason, fmt.Sprintf("operations[%d].arguments[0]", i), "no %s here", name)
		}
	}
	e.r = r
	if e.weights, err = safetensors.Decode(weights); err != nil {
		return err
	}
	return problems.Err()
}

// Inputs says what a step takes.
func (e *Engine) Inputs() []tensor.Spec { return e.specs(e.r.Inputs, false) }

// Outputs says what a step gives.
func (e *Engine) Outputs() []tensor.Spec { return e.specs(e.r.Outputs, e.Double) }

func (e *Engine) specs(named []recording.Named, double bool) []tensor.Spec {
	var all []tensor.Spec
	for _, n := range named {
		v := e.r.Values[n.Value]
		d := v.DType
		if double && d.Float() {
			d = tensor.Float64
		}
		all = append(all, tensor.Spec{Name: n.Name, DType: d, Sizes: v.Sizes})
	}
	return all
}

// Step runs a step. Storages hold float32, or float64 for an engine of double precision.
func (e *Engine) Step(inputs, outputs [][]byte) error { return e.run(inputs, outputs, nil) }

// Trace runs a step and tells of the first result of each operation, in single precision.
func (e *Engine) Trace(inputs [][]byte, tell func(operation int, spec tensor.Spec, data []byte)) error {
	return e.run(inputs, nil, tell)
}

func (e *Engine) run(inputs, outputs [][]byte, tell func(int, tensor.Spec, []byte)) error {
	e.steps++
	e.before = ""
	storages := make([][]float64, len(e.r.Storages))
	for i, s := range e.r.Storages {
		storages[i] = make([]float64, s.Bytes/s.DType.Size())
		if w, has := e.weights.Get(s.Name); has && s.Role.Weight() {
			for j := range storages[i] {
				storages[i][j] = float64(math.Float32frombits(binary.LittleEndian.Uint32(w.Data[4*j:])))
			}
		}
	}
	for i, n := range e.r.Inputs {
		v := &e.r.Values[n.Value]
		each(v, func(logical, at int64) {
			storages[v.Storage][at] = float64(math.Float32frombits(binary.LittleEndian.Uint32(inputs[i][4*logical:])))
		})
	}
	for i := range e.r.Operations {
		op := &e.r.Operations[i]
		if err := e.Fault.Fails[op.Name]; err != nil {
			return err
		}
		call := &call{e, op, storages}
		operations[op.Name](call)
		e.spoil(call)
		if tell != nil {
			v := &e.r.Values[recording.Values(op.Results, nil)[0]]
			var data []byte
			each(v, func(_, at int64) {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(storages[v.Storage][at])))
			})
			tell(i, tensor.Spec{DType: v.DType, Sizes: v.Sizes}, data)
		}
	}
	if outputs == nil {
		return nil
	}
	for i, n := range e.r.Outputs {
		v := &e.r.Values[n.Value]
		each(v, func(logical, at int64) {
			x := storages[v.Storage][at]
			if e.Double {
				binary.LittleEndian.PutUint64(outputs[i][8*logical:], math.Float64bits(x))
				return
			}
			binary.LittleEndian.PutUint32(outputs[i][4*logical:], math.Float32bits(float32(x)))
		})
	}
	return nil
}

func (e *Engine) spoil(c *call) {
	f := &e.Fault
	before := e.before
	if e.before = c.op.Name; f.After != "" && before != f.After {
		return
	}
	v := &e.r.Values[recording.Values(c.op.Results, nil)[0]]
	memory := c.storages[v.Storage]
	each(v, func(logical, at int64) {
		switch {
		case f.Every != nil:
			memory[at] = f.Every(memory[at])
		case f.Steps != nil && logical == 0:
			memory[at] = float64(math.Float32frombits(math.Float32bits(float32(memory[at])) + uint32(f.Steps(e.steps))))
		case c.op.Name == f.Operation && !f.Beside && logical == int64(f.Element):
			memory[at] = float64(f.Change(float32(memory[at])))
		}
	})
	if c.op.Name == f.Operation && f.Beside {
		memory[f.Element] = float64(f.Change(float32(memory[f.Element])))
	}
}

// call is one call of an operation.
type call struct {
	e        *Engine
	op       *recording.Operation
	storages [][]float64
}

// round gives what the engine's type holds.
func (c *call) round(x float64) float64 {
	if c.e.Double {
		return x
	}
	return float64(float32(x))
}

// elements gives an argument in row-major order, and how to find its places.
func (c *call) elements(argument string) ([]float64, *recording.Value) {
	a, _ := c.op.Arg(argument)
	v := &c.e.r.Values[a.Value]
	var all []float64
	each(v, func(_, at int64) { all = append(all, c.storages[v.Storage][at]) })
	return all, v
}

// give writes the first result.
func (c *call) give(element func(i int64) float64) {
	v := &c.e.r.Values[recording.Values(c.op.Results, nil)[0]]
	each(v, func(logical, at int64) { c.storages[v.Storage][at] = c.round(element(logical)) })
}

func relu(c *call) {
	x, _ := c.elements("self")
	c.give(func(i int64) float64 {
		if x[i] < 0 {
			return 0
		}
		return x[i]
	})
}

// operations are those that the engine knows.
var operations = map[string]func(*call){
	"aten::relu":  relu,
	"aten::relu_": relu,
	"aten::neg": func(c *call) {
		x, _ := c.elements("self")
		c.give(func(i int64) float64 { return -x[i] })
	},
	"aten::add.Tensor": func(c *call) {
		x, _ := c.elements("self")
		y, _ := c.elements("other")
		c.give(func(i int64) float64 { return x[i] + y[i%int64(len(y))] }) // broadcast over rows
	},
	"aten::mul.Tensor": func(c *call) {
		x, _ := c.elements("self")
		y, _ := c.elements("other")
		c.give(func(i int64) float64 { return x[i] * y[i] })
	},
	// exp stands for what a libm computes.
	"aten::exp": func(c *call) {
		x, _ := c.elements("self")
		c.give(func(i int64) float64 { return math.Exp(x[i]) })
	},
}

// each calls f for every element: its number in row-major order, and its place in the storage.
func each(v *recording.Value, f func(logical, at int64)) {
	index := make([]int64, len(v.Sizes))
	for logical := range v.Numel() {
		rest, at := logical, v.Offset
		for d := len(index) - 1; d >= 0; d-- {
			at += rest % v.Sizes[d] * v.Strides[d]
			rest /= v.Sizes[d]
		}
		f(logical, at)
	}
}
