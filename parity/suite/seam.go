package suite

import (
	"context"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/tensor"
	"samebits/parity/gate"
	"samebits/parity/probe"
	"samebits/parity/result"
)

// further judges the gates that only some cells have.
func (v *verification) further(ctx context.Context) error {
	if v.recorded.Rest && v.asks(gate.Seam) {
		v.progress("what comes behind " + v.recorded.Segment)
		if err := v.seam(ctx); err != nil {
			return err
		}
	}
	if len(v.recorded.Others) > 0 && v.asks(gate.Shape) {
		v.progress("other shapes in between")
		return v.shapes(ctx)
	}
	return nil
}

// noteSeam puts into the result where the captured segment ends.
func (v *verification) noteSeam() {
	if v.recorded.Segment != "" {
		v.result.Seam = &result.Seam{Segment: v.recorded.Segment, Rest: v.recorded.Rest}
	}
}

// seam runs what comes behind the segment on what each arm's segment gave, and judges SEAM: all must give the bits of the
// family's whole forward. On the host only the reference can: native has bits of its own there.
func (v *verification) seam(ctx context.Context) error {
	whole, err := v.whole(ctx)
	if err != nil || v.failed(gate.Seam) {
		return err
	}
	s, err := v.openRest(ctx)
	if err != nil {
		return err
	}
	defer s.arm.Stop()
	for _, name := range v.result.Arms {
		if !v.cell.OnGPU() && name != arm.ReferenceEager {
			v.judgeArm(gate.Seam, name, gate.Skip(gate.NoGPU, "on the host native has bits of its own, and so has what comes behind them"))
			continue
		}
		rest, err := s.behind(ctx, v.runs[name])
		if err != nil {
			return err
		}
		finding, err := gate.JudgeSeam(v.recorded.Segment, whole, rest, v.probes)
		if err != nil {
			return err
		}
		v.judgeArm(gate.Seam, name, finding)
	}
	return nil
}

// whole runs the family's whole forward, and judges whether it gives the same again.
func (v *verification) whole(ctx context.Context) (gate.Run, error) {
	s, err := v.openReference(ctx, arm.ReferenceWhole)
	if err != nil {
		return nil, err
	}
	defer s.arm.Stop()
	e, err := v.eagerly(ctx, s)
	if err != nil {
		return nil, err
	}
	finding, err := gate.JudgeWhole(v.recorded.Segment, e.run, e.again, v.probes[0])
	if err == nil && finding.Outcome == gate.Failed {
		v.judge(gate.Seam, finding)
	}
	return e.run, err
}

// openRest builds what comes behind the segment, with one bank a probe that has its images.
func (v *verification) openRest(ctx context.Context) (*session, error) {
	a, err := v.start(ctx, arm.ReferenceRest, v.suite.Start.Reference)
	if err != nil {
		return nil, err
	}
	s := &session{arm: a, name: arm.ReferenceRest, probes: v.probes, made: v.recorded.Outputs}
	return opened(s, func() error { return v.build(ctx, s) })
}

// behind runs what comes behind a segment on what the segment gave.
func (s *session) behind(ctx context.Context, segment gate.Run) (gate.Run, error) {
	for i, name := range s.probes {
		for _, output := range segment[name] {
			at := slices.IndexFunc(s.inputs[i], func(p arm.Placed) bool { return p.Name == output.Name })
			if at < 0 || len(s.given[i][at]) != len(output.Data) {
				return nil, fmt.Errorf("%s: it takes no %s %v%v", s.name, output.Name, output.DType, output.Sizes)
			}
			copy(s.given[i][at], output.Data)
		}
	}
	return s.all(ctx)
}

// fill writes what an input holds: a probe's bits, or what the recording says of a key. What a segment makes comes later.
func (s *session) fill(name string, spec tensor.Spec, seed uint64, dst []byte) error {
	if slices.ContainsFunc(s.made, func(made tensor.Spec) bool { return made.Name == spec.Name }) {
		return nil
	}
	if s.keys != nil {
		if _, is := s.keys.Key(spec.Name); is {
			return s.keys.PutKey(spec, dst)
		}
	}
	return probe.Fill(name, spec, seed, dst)
}
