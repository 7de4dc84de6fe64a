package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/parity/gate"
	"samebits/parity/result"
)

// Interrupted is the reason of a cell that was in work when the run ended.
const Interrupted gate.Reason = "INTERRUPTED"

// finish writes the verdict, and marks the gates that were not reached.
func (v *verification) finish(ctx context.Context, err error) {
	r := &v.result
	why := "the verification broke off"
	for _, id := range append(gate.Order(v.cell.mode()), v.recorded.furtherGates()...) {
		f, judged := r.Gates[id]
		if !judged {
			r.Gates[id] = gate.Skip(gate.NotReached, why)
			if !v.asks(id) {
				r.Gates[id] = gate.Skip(gate.NotAsked, "")
			}
		} else if f.Outcome == gate.Failed && err == nil {
			why = fmt.Sprintf("%s failed before", id)
		} else if len(f.Arms) == 1 && f.Arms[arm.ReferenceGraph].Reason == gate.NoGPU {
			v.judgeArm(id, arm.NativeGraph, gate.Skip(gate.NotReached, why)) // a GPU is not all that it lacks
		}
	}
	r.Environment = v.mergedEnvironment()
	v.account.close(r)
	if err != nil {
		verdict, problems := Classify(ctx, err)
		r.Verdict, r.Problems = verdict, result.Problems(problems)
		r.Reason, r.Summary = gate.Reason(problems[0].Reason), problems[0].Summary
		if n := len(problems); n > 1 {
			r.Summary += fmt.Sprintf(" (and %d more)", n-1)
		}
		return
	}
	r.Verdict, r.Reason, r.Summary = v.verdict()
}

// verdict sums up the gates. Refusals come first: what they doubt, no later gate can prove.
func (v *verification) verdict() (result.Verdict, gate.Reason, string) {
	words := map[gate.ID]result.Verdict{gate.SameRecording: result.Refused, gate.Reproduces: result.EagerNoise,
		gate.InputSeen: result.Refused, gate.Engaged: result.Refused}
	for _, id := range gate.Of(v.cell.mode(), v.result.Gates) {
		f := v.result.Gates[id]
		if f.Outcome != gate.Failed {
			continue
		}
		word, special := words[id]
		if !special {
			word = result.Differs
		}
		if slices.Contains(gate.Situations, id) && !slices.Contains(otherBits, f.Reason) {
			word = result.Refused
		}
		switch f.Reason {
		case gate.HyperNotSeen, gate.UpdateNotSeen, gate.TooFewProcesses:
			word = result.Refused
		case gate.EagerNoise:
			word = result.EagerNoise
		case gate.ProcessDiffers:
			if id == gate.Replay && f.Arms[arm.ReferenceGraph].Reason == gate.ProcessDiffers {
				word = result.EagerNoise // the reference's processes do not agree
			}
		}
		return word, f.Reason, fmt.Sprintf("%s: %s", id, f.Detail)
	}
	if len(v.suite.Gates) > 0 {
		return v.alone()
	}
	outputs := len(v.recorded.Outputs)
	same := fmt.Sprintf("%d probes, %d outputs", len(v.probes), outputs)
	if v.cell.Trains() {
		same = fmt.Sprintf("%d steps, %d tensors after each", v.cell.Training.Steps, v.training.tensors)
	}
	if v.cell.OnGPU() {
		return result.Exact, "", fmt.Sprintf("%s give the same bits (%s)", strings.Join(v.result.Arms, ", "), same) + v.notApplicable()
	}
	rounding := fmt.Sprintf("against double precision, native's error is at most %.2f times PyTorch's", v.worstRounding())
	if v.sameBits() {
		rounding = "they are PyTorch's bits, too"
	}
	return result.Consistent, "", fmt.Sprintf("native-graph gives native-eager's bits (%s); %s; only a GPU can prove it exact", same, rounding) + v.notApplicable()
}

// notApplicable says which gates could not be judged because an arm does not know their situations.
func (v *verification) notApplicable() string {
	var lacks []string
	for _, id := range gate.Order(v.cell.mode()) {
		f := v.result.Gates[id]
		if f.Arms == nil && f.Reason == gate.NotApplicable {
			lacks = append(lacks, string(id))
		}
		for _, name := range slices.Sorted(maps.Keys(f.Arms)) {
			if f.Arms[name].Reason == gate.NotApplicable {
				lacks = append(lacks, fmt.Sprintf("%s of %s", id, name))
			}
		}
	}
	if lacks == nil {
		return ""
	}
	return "; not judged: " + strings.Join(lacks, ", ")
}

// alone sums up gates that were judged alone, none of which failed.
func (v *verification) alone() (result.Verdict, gate.Reason, string) {
	var held, not []string
	var reason gate.Reason
	for _, id := range v.suite.Gates {
		switch f, judged := v.result.Gates[id]; {
		case !judged:
			not, reason = append(not, string(id)+" (not of this cell)"), gate.NotApplicable
		case f.Outcome == gate.Skipped:
			not, reason = append(not, fmt.Sprintf("%s (%s)", id, f.Reason)), f.Reason
		default:
			held = append(held, string(id))
		}
	}
	lacks := ""
	if not != nil {
		lacks = "; not judged: " + strings.Join(not, ", ")
	}
	if held == nil {
		return result.Refused, reason, "nothing was judged" + lacks
	}
	return result.Passed, "", strings.Join(held, ", ") + " passed, of the gates alone that were asked for" + lacks
}

// otherBits are the reasons of situations that speak of bits. The others say that something cannot be relied upon.
var otherBits = []gate.Reason{gate.StaleStream, gate.ThreadUnsafeCapture, gate.PointerMoved, gate.ModelMutated, gate.ModeNotKeyed,
	gate.RNGNotReplayed, gate.RNGStreamDiffers, gate.ContextPoisoned, gate.WrongDevice, gate.OutputsOfOtherShape}

// sameBits reports whether the host gave the eager reference's bits after all.
func (v *verification) sameBits() bool {
	for _, f := range v.result.Gates[gate.Native].Arms {
		if figures, _ := f.Figures.(gate.RoundingFigures); !figures.Same {
			return false
		}
	}
	return true
}

// worstRounding is the largest ratio of native's largest error to PyTorch's.
func (v *verification) worstRounding() float64 {
	worst := 0.0
	for _, f := range v.result.Gates[gate.Native].Arms {
		figures, _ := f.Figures.(gate.RoundingFigures)
		for _, o := range figures.Outputs {
			if base := max(o.Reference.Max, o.Floor); base > 0 {
				worst = max(worst, o.Native.Max/base)
			}
		}
	}
	return worst
}

// Classify says whether an error is a refusal, which says something of the cell, or a break, which says something of this
// machine, and gives its problems: at least one.
func Classify(ctx context.Context, err error) (result.Verdict, diag.Problems) {
	problems, known := diag.Of(err)
	if !known || len(problems) == 0 {
		problems = diag.Problems{{Reason: "BROKEN", Summary: err.Error()}}
	}
	var gone *host.Error
	var refused *host.CallError
	var mistake *panicked
	switch {
	case errors.As(err, &mistake):
		return result.Broken, diag.Problems{{Reason: "PANIC", Summary: mistake.Error(), Detail: string(mistake.stack)}}
	case ctx.Err() != nil:
		return result.Broken, diag.Problems{{Reason: string(Interrupted), Summary: "interrupted before the cell was finished"}}
	case errors.As(err, &gone), errors.Is(err, arm.ErrOutOfMemory):
		return result.Broken, problems
	case errors.As(err, &refused):
		if refused.Code == codes.InvalidArgument || refused.Code == codes.Unimplemented {
			return result.Refused, problems
		}
		return result.Broken, problems
	case known:
		return result.Refused, problems
	}
	return result.Broken, problems
}

// panicked is a panic: a mistake of ours, or a plugin that we trusted too far. It must not end the other cells.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprint("panic: ", p.value) }

// guarded makes an error of a panic.
func guarded(work func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicked{value, debug.Stack()}
		}
	}()
	return work()
}
