package ops

import (
	"context"
	"slices"

	"samebits/bridge/diag"
	"samebits/parity/signature"
	"samebits/parity/values"
)

// measured is what an operation gives in double precision, output by output, or why it gives nothing.
type measured struct {
	outputs [][]byte
	problem *diag.Problem
}

// measure runs in double precision those operations of a batch that have an output among these whose error is bounded.
// Inputs are the same as in the batch.
func (r *run) measure(ctx context.Context, b *batch, outputs []int, kind values.Kind) (map[*signature.Operation]measured, error) {
	var ops []*signature.Operation
	for _, i := range outputs {
		out := &b.outputs[i]
		if o := b.ops[out.op]; demandOf(o.Alone, o.Op(), out.spec.DType) == bounded && !slices.Contains(ops, o) {
			ops = append(ops, o)
		}
	}
	found := map[*signature.Operation]measured{}
	for work := [][]*signature.Operation{ops}; len(work) > 0; work = work[1:] {
		if len(work[0]) == 0 {
			continue
		}
		part, err := newBatch(work[0], b.onCPU)
		if err != nil {
			return nil, err
		}
		err = r.inDouble(ctx, part, kind)
		if err == nil {
			for i, out := range part.outputs {
				o := part.ops[out.op]
				found[o] = measured{outputs: append(found[o].outputs, slices.Clone(r.double.outputs[i]))}
			}
			continue
		}
		if ctx.Err() != nil || r.double.arm == nil {
			return nil, err
		}
		if died(err) {
			r.double.stop()
		}
		named := part.blame(err, nil)
		if len(named) == 0 && len(part.ops) == 1 {
			named = []blame{{part.ops[0], problemOf(err)}}
		}
		for _, n := range named {
			found[n.o] = measured{problem: &n.problem}
		}
		work = append(work, part.without(named)...)
	}
	return found, nil
}

// inDouble runs a batch once in double precision.
func (r *run) inDouble(ctx context.Context, b *batch, kind values.Kind) error {
	s := r.double
	if err := s.ensure(ctx, b.room(true)); err != nil {
		return err
	}
	if err := s.load(ctx, b); err != nil {
		return err
	}
	b.fill(kind, r.Seed, s.inputs)
	return s.step(ctx, referencePoison)
}
