package suite

import (
	"context"

	"samebits/bridge/arm"
	"samebits/parity/gate"
)

// graphGates are judged for each graph arm.
var graphGates = []gate.ID{gate.Engaged, gate.Replay, gate.NotStale}

// referenceGraph runs PyTorch's own graph; on the device host there is none.
func (v *verification) referenceGraph(ctx context.Context) error {
	if !v.cell.OnGPU() {
		for _, id := range graphGates {
			v.judgeArm(id, arm.ReferenceGraph, gate.Skip(gate.NoGPU, "PyTorch captures graphs on a GPU only"))
		}
		return nil
	}
	v.progress(arm.ReferenceGraph)
	s, err := v.openReference(ctx, arm.ReferenceGraph)
	if err != nil {
		return err
	}
	defer s.arm.Stop()
	_, err = v.graph(ctx, s, v.eager)
	return err
}

// graph replays a graph arm, judges the gates of graphs and measures.
func (v *verification) graph(ctx context.Context, s *session, eager gate.Run) (gate.Run, error) {
	e, err := v.replays(ctx, s, eager)
	if err != nil {
		return nil, err
	}
	v.judgeArm(gate.Engaged, s.name, gate.JudgeEngaged(e.engage))
	v.judgeArm(gate.Replay, s.name, e.watch.Replay())
	v.judgeArm(gate.NotStale, s.name, e.watch.NotStale())
	if err := v.took(s.name, e.run); err != nil {
		return nil, err
	}
	return e.run, v.measure(ctx, s)
}

// native runs the native engine's arms and judges NATIVE.
func (v *verification) native(ctx context.Context) error {
	var exact gate.Run
	if !v.cell.OnGPU() {
		var err error
		if exact, err = v.doublePrecision(ctx); err != nil {
			return err
		}
	}
	eager, err := v.nativeEager(ctx)
	if err != nil {
		return err
	}
	if err := v.judgeNative(ctx, arm.NativeEager, eager, exact); err != nil {
		return err
	}
	v.progress(arm.NativeGraph)
	s, err := v.openNative(ctx, arm.NativeGraph)
	if err != nil {
		return err
	}
	defer s.arm.Stop()
	replayed, err := v.graph(ctx, s, eager)
	if err != nil {
		return err
	}
	return v.judgeNative(ctx, arm.NativeGraph, replayed, exact)
}

func (v *verification) nativeEager(ctx context.Context) (gate.Run, error) {
	v.progress(arm.NativeEager)
	s, err := v.openNative(ctx, arm.NativeEager)
	if err != nil {
		return nil, err
	}
	defer s.arm.Stop()
	run, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.took(s.name, run); err != nil {
		return nil, err
	}
	return run, v.measure(ctx, s)
}

// doublePrecision runs the same model in double precision: the measure of errors where bits cannot be demanded.
func (v *verification) doublePrecision(ctx context.Context) (gate.Run, error) {
	v.progress(arm.ReferenceFP64)
	s, err := v.openReference(ctx, arm.ReferenceFP64)
	if err != nil {
		return nil, err
	}
	defer s.arm.Stop()
	return s.all(ctx)
}

// judgeNative compares a native arm with the eager reference: for the same bits on a GPU, for its error on the host.
func (v *verification) judgeNative(ctx context.Context, name string, run, exact gate.Run) error {
	var finding gate.Finding
	var err error
	if v.cell.OnGPU() {
		finding, err = gate.JudgeNative(v.eager, run, v.probes)
	} else {
		finding, err = gate.JudgeRounding(exact, v.eager, run, v.probes)
	}
	if err != nil {
		return err
	}
	if finding.Reason == gate.NativeDiffers && name == arm.NativeEager {
		if err := v.blame(ctx, &finding); err != nil {
			return err
		}
	}
	v.judgeArm(gate.Native, name, finding)
	return nil
}
