package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/compare"
	"samebits/parity/gate"
)

// Culprit is the first operation whose result differs between the eager reference and the native engine.
type Culprit struct {
	Probe     string           `json:"probe"`
	Operation int              `json:"operation"` // index in the recording
	Of        int              `json:"of"`        // number of operations
	Result    int              `json:"result"`    // index over the operation's result tensors
	Signature string           `json:"signature"`
	Module    string           `json:"module"`
	Source    string           `json:"source"`
	Reference string           `json:"reference"` // digest
	Native    string           `json:"native"`    // digest
	Operands  []Operand        `json:"operands"`
	Bits      *compare.Figures `json:"bits,omitempty"`
	Histogram []compare.Bucket `json:"histogram,omitempty"`
}

// Operand is a tensor that the operation took, as each side had it. A digest is empty if the side never made that tensor;
// of inputs and weights it names the whole storage, which both sides were given.
type Operand struct {
	Argument  string `json:"argument"`
	Value     string `json:"value"` // dtype and sizes
	From      string `json:"from"`  // the operation or the storage that it comes from
	Reference string `json:"reference,omitempty"`
	Native    string `json:"native,omitempty"`
}

func (c *Culprit) String() string {
	s := fmt.Sprintf("operation %d of %d, %s", c.Operation, c.Of, c.Signature)
	if c.Module != "" {
		s += " in " + c.Module
	}
	if c.Bits != nil {
		s += ": " + c.Bits.String()
	}
	return s
}

// blame adds the first operation that differs to a finding of NATIVE.
func (v *verification) blame(ctx context.Context, f *gate.Finding) error {
	figures := f.Figures.(gate.NativeFigures)
	name := figures.Differences[0].Probe
	f.Reproduce = "parity trace " + v.cell.Flags() + " --probe " + name
	culprit, err := v.trace(ctx, name)
	if err != nil {
		return err
	}
	if culprit == nil {
		f.Detail += "; traced one by one, all operations agree: look at fusions and at how outputs are copied"
		return nil
	}
	figures.First = culprit
	f.Figures = figures
	f.Detail += "; first at " + culprit.String()
	return nil
}

// trace runs one step on both sides, one operation after the other, and finds the first result that differs.
func (v *verification) trace(ctx context.Context, probe string) (*Culprit, error) {
	eager, err := v.openReference(ctx, arm.ReferenceEager)
	if err != nil {
		return nil, err
	}
	defer eager.arm.Stop()
	engine, err := v.openNative(ctx, arm.NativeEager)
	if err != nil {
		return nil, err
	}
	defer engine.arm.Stop()
	weights, err := safetensors.Decode(v.recorded.Weights)
	if err != nil {
		return nil, err
	}
	return v.compareTraces(ctx, eager, engine, eager.bankOf(probe), probe, func(s recording.Storage) string {
		return digestIn(weights, s.Name)
	})
}

func digestIn(file *safetensors.File, name string) string {
	if t, ok := file.Get(name); ok {
		return digest.Tensor(t.Spec, t.Data)
	}
	return ""
}

// compareTraces traces the step on an input bank, and finds the first result that differs. weight gives the digest of a
// parameter or buffer, as both sides have it before the step.
func (v *verification) compareTraces(ctx context.Context, eager, engine *session, bank int, probe string,
	weight func(recording.Storage) string) (*Culprit, error) {
	rec := v.recorded.Recording
	var traces [2][]arm.OperationTrace
	for i, s := range []*session{eager, engine} {
		reply, err := s.arm.Trace(ctx, arm.TraceRequest{InputBank: bank})
		if err != nil {
			return nil, fmt.Errorf("%s: trace: %w", s.name, err)
		}
		if len(reply.Operations) != len(rec.Operations) {
			return nil, fmt.Errorf("%s: traced %d operations of %d", s.name, len(reply.Operations), len(rec.Operations))
		}
		traces[i] = reply.Operations
	}
	for i := range rec.Operations {
		want, got := traces[0][i].Digests, traces[1][i].Digests
		for j := range min(len(want), len(got)) {
			if want[j] == got[j] || want[j] == "" || got[j] == "" {
				continue
			}
			c := v.culprit(traces, probe, i, j, weight)
			return c, c.fetch(ctx, rec, eager, engine, bank)
		}
	}
	return nil, nil
}

// culprit says what the operation is and what it was given.
func (v *verification) culprit(traces [2][]arm.OperationTrace, probe string, at, result int, weight func(recording.Storage) string) *Culprit {
	rec := v.recorded.Recording
	o := &rec.Operations[at]
	c := &Culprit{Probe: probe, Operation: at, Of: len(rec.Operations), Result: result, Signature: rec.Signature(o), Module: o.Module,
		Source: o.Source, Reference: traces[0][at].Digests[result], Native: traces[1][at].Digests[result], Operands: []Operand{}}
	for i := range o.Arguments {
		for _, value := range recording.Values(o.Arguments[i:i+1], nil) {
			operand := Operand{Argument: o.Arguments[i].Name, Value: rec.Values[value].String()}
			if before, j := producer(rec, at, value); before >= 0 {
				operand.From = fmt.Sprintf("operation %d, %s", before, rec.Operations[before].Name)
				operand.Reference, operand.Native = digestAt(traces[0][before], j), digestAt(traces[1][before], j)
			} else {
				storage := rec.Storages[rec.Values[value].Storage]
				operand.From = fmt.Sprintf("%v %s", storage.Role, storage.Name)
				operand.Reference = v.result.Digests.Inputs[probe][storage.Name]
				if storage.Role.Weight() {
					operand.Reference = weight(storage)
				}
				operand.Native = operand.Reference
			}
			c.Operands = append(c.Operands, operand)
		}
	}
	return c
}

// producer finds the last operation before at that gave a value, and the value's place among its results; -1 if none did.
func producer(rec *recording.Recording, at, value int) (operation, result int) {
	for before := at - 1; before >= 0; before-- {
		if j := slices.Index(recording.Values(rec.Operations[before].Results, nil), value); j >= 0 {
			return before, j
		}
	}
	return -1, -1
}

func digestAt(t arm.OperationTrace, i int) string {
	if i < len(t.Digests) {
		return t.Digests[i]
	}
	return ""
}

// fetch copies the result out of both sides and compares it.
func (c *Culprit) fetch(ctx context.Context, rec *recording.Recording, eager, engine *session, bank int) error {
	v := &rec.Values[recording.Values(rec.Operations[c.Operation].Results, nil)[c.Result]]
	spec := tensor.Spec{DType: v.DType, Sizes: v.Sizes}
	var sides [2][]byte
	for i, s := range []*session{eager, engine} {
		region, data, err := s.arm.Alloc(ctx, spec.Bytes())
		if err != nil {
			return err
		}
		_, err = s.arm.Trace(ctx, arm.TraceRequest{InputBank: bank, Want: &arm.Wanted{Operation: c.Operation, Result: c.Result, Region: region}})
		if err != nil {
			return fmt.Errorf("%s: fetch a result of operation %d: %w", s.name, c.Operation, err)
		}
		sides[i] = data[:spec.Bytes()]
	}
	bits, err := compare.Bits(v.DType, sides[0], sides[1])
	if err != nil {
		return err
	}
	c.Bits = &bits
	c.Histogram, _, err = compare.Histogram(v.DType, sides[0], sides[1])
	return err
}

// Trace records a cell and compares its operations one by one on a probe. It gives nil if all agree.
func (s *Suite) Trace(ctx context.Context, cell Cell, probe string) (*Culprit, error) {
	v := s.begin(cell)
	if !slices.Contains(v.probes, probe) {
		return nil, diag.New("UNKNOWN_PROBE", "", "no probe %q; there are %s", probe, strings.Join(v.probes, ", "))
	}
	if err := v.record(ctx, false); err != nil {
		return nil, err
	}
	v.progress("tracing")
	return v.trace(ctx, probe)
}
