package suite

import (
	"context"

	"samebits/bridge/arm"
	"samebits/parity/gate"
)

// graphGates are judged for each graph arm.
var graphGates = []gate.ID{gate.Engaged, gate.Replay, gate.NotStale}

// repeat takes the eager reference's two fresh processes, and judges REPRODUCES and INPUT-SEEN.
func (v *verification) repeat(ctx context.Context, ps *parts) error {
	var both [2]gate.Repetition
	for i, p := range []*part{ps.eager, ps.again} {
		e, err := v.await(ctx, p)
		if err != nil {
			return err
		}
		both[i] = gate.Repetition{Run: e.run, Again: v.probes[0], Last: e.again}
		if i == 0 {
			if err := v.settle(ctx, p); err != nil {
				return err
			}
		}
	}
	v.eager = both[0].Run
	finding, err := gate.JudgeReproduces(both[0], both[1], v.probes)
	if err != nil {
		return err
	}
	v.judge(gate.Reproduces, finding)
	if err := v.took(arm.ReferenceEager, v.eager); err != nil || v.failed(gate.Reproduces) {
		return err
	}
	v.judge(gate.InputSeen, gate.JudgeInputSeen(v.eager, v.probes))
	if v.failed(gate.InputSeen) {
		return nil
	}
	return v.settle(ctx, ps.again)
}

// referenceGraph takes PyTorch's own graph; on the device host there is none.
func (v *verification) referenceGraph(ctx context.Context, ps *parts) error {
	if ps.graph == nil {
		for _, id := range graphGates {
			v.judgeArm(id, arm.ReferenceGraph, gate.Skip(gate.NoGPU, "PyTorch captures graphs on a GPU only"))
		}
		return nil
	}
	if _, err := v.graph(ctx, ps.graph); err != nil {
		return err
	}
	return v.settle(ctx, ps.graph)
}

// graph takes the replays of a graph arm and judges the gates of graphs.
func (v *verification) graph(ctx context.Context, p *part) (gate.Run, error) {
	e, err := v.await(ctx, p)
	if err != nil {
		return nil, err
	}
	v.judgeArm(gate.Engaged, p.name, gate.JudgeEngaged(e.engage))
	v.judgeArm(gate.Replay, p.name, e.watch.Replay())
	v.judgeArm(gate.NotStale, p.name, e.watch.NotStale())
	return e.run, v.took(p.name, e.run)
}

// native takes the native engine's arms and judges NATIVE. On the host the measure of errors is the same model in double
// precision.
func (v *verification) native(ctx context.Context, ps *parts) error {
	var exact gate.Run
	if ps.double != nil {
		e, err := v.await(ctx, ps.double)
		if err != nil {
			return err
		}
		exact = e.run
		if err := v.settle(ctx, ps.double); err != nil {
			return err
		}
	}
	eager, err := v.await(ctx, ps.nativeEager)
	if err != nil {
		return err
	}
	if err := v.took(arm.NativeEager, eager.run); err != nil {
		return err
	}
	if err := v.judgeNative(ctx, ps.nativeEager, eager.run, exact); err != nil {
		return err
	}
	replayed, err := v.graph(ctx, ps.nativeGraph)
	if err != nil {
		return err
	}
	return v.judgeNative(ctx, ps.nativeGraph, replayed, exact)
}

// judgeNative compares a native arm with the eager reference: for the same bits on a GPU, for its error on the host.
func (v *verification) judgeNative(ctx context.Context, p *part, run, exact gate.Run) error {
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
	if err := v.settle(ctx, p); err != nil { // before a trace takes memory for two more
		return err
	}
	if finding.Reason == gate.NativeDiffers && p.name == arm.NativeEager {
		if err := v.blame(ctx, &finding); err != nil {
			return err
		}
	}
	v.judgeArm(gate.Native, p.name, finding)
	return nil
}
