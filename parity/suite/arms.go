package suite

import (
	"context"
	"slices"

	"samebits/bridge/arm"
	"samebits/parity/gate"
)

// graphGates are judged for each graph arm.
var graphGates = []gate.ID{gate.Engaged, gate.Replay, gate.NotStale}

// repeat takes the eager reference's two fresh processes, and judges REPRODUCES and INPUT-SEEN.
func (v *verification) repeat(ctx context.Context, ps *parts) error {
	var both [2]gate.Repetition
	for i, p := range []*part{ps.eager, ps.again} {
		if p == nil {
			continue
		}
		e, err := v.await(ctx, p)
		if err != nil {
			return err
		}
		v.ran(p, reference, e.run)
		both[i] = gate.Repetition{Run: e.run, Again: v.probes[0], Last: e.again}
		if p == ps.eager && !v.asks(gate.Reproduces) { // otherwise it must be there if the two differ
			v.dismiss(ps, p)
		}
	}
	if v.eager = both[0].Run; v.eager == nil {
		return nil // nobody asks for anything of the eager reference
	}
	if v.asks(gate.Reproduces) {
		finding, err := gate.JudgeReproduces(both[0], both[1], v.probes)
		if err != nil {
			return err
		}
		if finding.Reason == gate.EagerNoise {
			v.blameNoise(ctx, &finding, [2]*session{ps.eager.session, ps.again.session})
		}
		v.judge(gate.Reproduces, finding)
		v.dismiss(ps, ps.eager)
	}
	if err := v.took(arm.ReferenceEager, v.eager); err != nil || v.failed(gate.Reproduces) {
		return err
	}
	if v.asks(gate.InputSeen) {
		v.judge(gate.InputSeen, gate.JudgeInputSeen(v.eager, v.probes))
	}
	if ps.again == nil || v.failed(gate.InputSeen) {
		return nil
	}
	return v.settle(ctx, ps.again)
}

// ran notes what a process gave, for PROC.
func (v *verification) ran(p *part, side string, run gate.Run) {
	v.processes = append(v.processes, gate.Process{Arm: p.name, Side: side, Cold: p.cold, Run: run})
}

// referenceGraph takes PyTorch's own graph; on the device host there is none.
func (v *verification) referenceGraph(ctx context.Context, ps *parts) error {
	if ps.graph == nil {
		for _, id := range slices.Concat(graphGates, gate.Situations) {
			if !v.asks(id) || v.asked.OnGPU() {
				continue
			}
			v.judgeArm(id, arm.ReferenceGraph, gate.Skip(gate.NoGPU, "PyTorch captures graphs on a GPU only"))
		}
		return nil
	}
	if _, err := v.graph(ctx, ps.graph, reference); err != nil {
		return err
	}
	return v.settle(ctx, ps.graph)
}

// graph takes the replays of a graph arm and judges the gates of graphs.
func (v *verification) graph(ctx context.Context, p *part, side string) (gate.Run, error) {
	e, err := v.await(ctx, p)
	if err != nil {
		return nil, err
	}
	v.ran(p, side, e.run)
	if e.watch != nil {
		for id, f := range map[gate.ID]gate.Finding{gate.Engaged: gate.JudgeEngaged(e.engage), gate.Replay: e.watch.Replay(), gate.NotStale: e.watch.NotStale()} {
			if v.asks(id) {
				v.judgeArm(id, p.name, f)
			}
		}
	}
	for id, f := range e.situations {
		v.judgeArm(id, p.name, f)
	}
	p.measured = p.measured && !e.lost
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
	if ps.nativeEager == nil {
		return nil
	}
	eager, err := v.await(ctx, ps.nativeEager)
	if err != nil {
		return err
	}
	v.ran(ps.nativeEager, native, eager.run)
	if err := v.took(arm.NativeEager, eager.run); err != nil {
		return err
	}
	if err := v.judgeNative(ctx, ps.nativeEager, eager.run, exact); err != nil {
		return err
	}
	if ps.nativeGraph == nil {
		return nil
	}
	replayed, err := v.graph(ctx, ps.nativeGraph, native)
	if err != nil {
		return err
	}
	if err := v.judgeNative(ctx, ps.nativeGraph, replayed, exact); err != nil {
		return err
	}
	return v.judgeProcesses(ctx, ps)
}

// judgeProcesses takes one more process, which on a GPU has to compile all its kernels, and judges PROC. If arms give other bits
// anyway it has nothing to say.
func (v *verification) judgeProcesses(ctx context.Context, ps *parts) error {
	if ps.fresh == nil || v.failed(gate.Replay) || v.failed(gate.Native) && v.cell.OnGPU() {
		if v.asks(gate.Processes) && ps.fresh == nil {
			v.judge(gate.Processes, gate.Skip(gate.NotApplicable, "no process can be started with a cold cache of kernels"))
		}
		return nil
	}
	e, err := v.await(ctx, ps.fresh)
	if err != nil {
		return err
	}
	v.ran(ps.fresh, native, e.run)
	cold := 0
	if ps.fresh.cold {
		cold = 1
	}
	finding, err := gate.JudgeProcesses(v.processes, cold, v.probes)
	if err != nil {
		return err
	}
	v.judge(gate.Processes, finding)
	return v.settle(ctx, ps.fresh)
}

// judgeNative compares a native arm with the eager reference: for the same bits on a GPU, for its error on the host.
func (v *verification) judgeNative(ctx context.Context, p *part, run, exact gate.Run) error {
	if !v.asks(gate.Native) {
		return v.settle(ctx, p)
	}
	var finding gate.Finding
	var err error
	if v.cell.OnGPU() {
		finding, err = gate.JudgeNative(v.eager, run, v.probes)
	} else {
		finding, err = v.judgeRounding(ctx, exact, run)
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
