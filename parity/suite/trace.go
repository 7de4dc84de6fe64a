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

// Culprit is the first operation whose result differs between two sides: the eager reference and the native engine, or two
// processes of the eager reference.
type Culprit struct {
	Probe     string `json:"probe"`
	Operation int    `json:"operation"` // index in the recording
	Of        int    `json:"of"`        // number of operations
	Result    int    `json:"result"`    // index over the operation's result tensors
	Signature string `json:"signature"`
	Module    string `json:"module"`
	Source    string `json:"source"`
	Sides
	Operands  []Operand        `json:"operands"`
	Bits      *compare.Figures `json:"bits,omitempty"`
	Histogram []compare.Bucket `json:"histogram,omitempty"`

	fetched [2]string // digests of the result when both sides made it once more
}

// Operand is a tensor that the operation took, as each side had it. A digest is empty if the side never made that tensor;
// of inputs and weights it names the whole storage.
type Operand struct {
	Argument string `json:"argument"`
	Value    string `json:"value"` // dtype and sizes
	From     string `json:"from"`  // the operation or the storage that it comes from
	Sides

	weight string // name of the storage if it holds a weight
}

// Sides are the digests of a tensor on both sides, of which one is the eager reference.
type Sides struct {
	Reference string `json:"reference,omitempty"`
	Native    string `json:"native,omitempty"`
	Again     string `json:"again,omitempty"` // where the other side is another process of the reference
}

// sides is what the reference had and what s, the other side, had.
func (s *session) sides(reference, other string) Sides {
	if s.name == arm.ReferenceEager {
		return Sides{Reference: reference, Again: other}
	}
	return Sides{Reference: reference, Native: other}
}

// titles names two sides for people.
func titles(sides [2]*session) [2]string {
	names := [2]string{sides[0].name, sides[1].name}
	if names[0] == names[1] {
		names[1] += " again"
	}
	return names
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

// blame adds the first operation that differs to a finding of NATIVE. If it cannot be found, as with a plugin that has no Trace,
// the finding stays.
func (v *verification) blame(ctx context.Context, f *gate.Finding) error {
	figures := f.Figures.(gate.NativeFigures)
	name := figures.Differences[0].Probe
	var culprit *Culprit
	err := guarded(func() (err error) { culprit, err = v.trace(ctx, name); return err })
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f.Detail += "; the trace failed: " + err.Error()
		return nil
	}
	f.Reproduce = "parity trace " + v.flags() + " --probe " + name
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
	return v.compareTraces(ctx, [2]*session{eager, engine}, eager.bankOf(probe), probe, func(s recording.Storage) string {
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
func (v *verification) compareTraces(ctx context.Context, sides [2]*session, bank int, probe string,
	weight func(recording.Storage) string) (*Culprit, error) {
	rec := v.recorded.Recording
	names := titles(sides)
	var traces [2][]arm.OperationTrace
	for i, s := range sides {
		reply, err := s.arm.Trace(ctx, arm.TraceRequest{InputBank: bank})
		if err != nil {
			return nil, fmt.Errorf("%s: trace: %w", names[i], err)
		}
		if len(reply.Operations) != len(rec.Operations) {
			return nil, fmt.Errorf("%s: traced %d operations of %d", names[i], len(reply.Operations), len(rec.Operations))
		}
		traces[i] = reply.Operations
	}
	for i := range rec.Operations {
		want, got := traces[0][i].Digests, traces[1][i].Digests
		for j := range min(len(want), len(got)) {
			if want[j] == got[j] || want[j] == "" || got[j] == "" {
				continue
			}
			c := v.culprit(sides[1], traces, probe, i, j, weight)
			return c, c.fetch(ctx, rec, sides, bank)
		}
	}
	return nil, nil
}

// culprit says what the operation is and what it was given, on the reference and on the other side.
func (v *verification) culprit(other *session, traces [2][]arm.OperationTrace, probe string, at, result int,
	weight func(recording.Storage) string) *Culprit {
	rec := v.recorded.Recording
	o := &rec.Operations[at]
	c := &Culprit{Probe: probe, Operation: at, Of: len(rec.Operations), Result: result, Signature: rec.Signature(o), Module: o.Module,
		Source: o.Source, Sides: other.sides(traces[0][at].Digests[result], traces[1][at].Digests[result]), Operands: []Operand{}}
	for i := range o.Arguments {
		for _, value := range recording.Values(o.Arguments[i:i+1], nil) {
			operand := Operand{Argument: o.Arguments[i].Name, Value: rec.Values[value].String()}
			if before, j := producer(rec, at, value); before >= 0 {
				operand.From = fmt.Sprintf("operation %d, %s", before, rec.Operations[before].Name)
				operand.Sides = other.sides(digestAt(traces[0][before], j), digestAt(traces[1][before], j))
			} else {
				storage := rec.Storages[rec.Values[value].Storage]
				operand.From = fmt.Sprintf("%v %s", storage.Role, storage.Name)
				given := v.result.Digests.Inputs[probe][storage.Name]
				if storage.Role.Weight() {
					given, operand.weight = weight(storage), storage.Name
				}
				operand.Sides = other.sides(given, given)
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
func (c *Culprit) fetch(ctx context.Context, rec *recording.Recording, sides [2]*session, bank int) error {
	v := &rec.Values[recording.Values(rec.Operations[c.Operation].Results, nil)[c.Result]]
	spec := tensor.Spec{DType: v.DType, Sizes: v.Sizes}
	names := titles(sides)
	var results [2][]byte
	for i, s := range sides {
		region, data, err := s.arm.Alloc(ctx, spec.Bytes())
		if err != nil {
			return err
		}
		_, err = s.arm.Trace(ctx, arm.TraceRequest{InputBank: bank, Want: &arm.Wanted{Operation: c.Operation, Result: c.Result, Region: region}})
		if err != nil {
			return fmt.Errorf("%s: fetch a result of operation %d: %w", names[i], c.Operation, err)
		}
		results[i] = data[:spec.Bytes()]
		c.fetched[i] = digest.Tensor(spec, results[i])
	}
	bits, err := compare.Bits(v.DType, results[0], results[1])
	if err != nil {
		return err
	}
	c.Bits = &bits
	c.Histogram, _, err = compare.Histogram(v.DType, results[0], results[1])
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
