package suite_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/digest"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/schedule"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

func trainCell(device string) suite.Cell {
	c := fakeCell(device)
	c.Mode, c.Batch, c.Training = gate.Train, 4, schedule.Default(8)
	return c
}

func train(t *testing.T, f suitetest.Faults, device string) (result.Result, *suitetest.Starter) {
	t.Helper()
	start := &suitetest.Starter{Faults: f}
	s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), EngineBuild: "e0"}
	r := s.Verify(t.Context(), trainCell(device))
	if start.Alive != 0 {
		t.Errorf("%d processes were left behind", start.Alive)
	}
	return r, start
}

func inTraining(f suitetest.Training) suitetest.Faults { return suitetest.Faults{Training: f} }

// gradientULPs adds n ULP to one element of a gradient.
func gradientULPs(n uint32) func([]float64) {
	return func(grad []float64) { grad[5] = float64(math.Float32frombits(math.Float32bits(float32(grad[5])) + n)) }
}

// Every gate of training must refuse its fault with its own reason, and the healthy twin must pass.
func TestTrainingFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  suitetest.Faults
		gate    gate.ID
		reason  gate.Reason
		verdict result.Verdict
		arm     string // whose finding it is, of a gate that is judged for each
		says    string
	}{
		{"a scalar of the step", suitetest.Faults{ScalarFromStep: true}, gate.SameRecording, gate.RecordingChangesWithStep, result.Refused, "", "batch 1, step 2"},
		{"eager differs from process to process", suitetest.Faults{Noise: true}, gate.Reproduces, gate.EagerNoise, result.EagerNoise, "", "step 1, loss"},
		{"a fresh start is none", inTraining(suitetest.Training{EagerMoves: true}), gate.Reproduces, gate.StateMoved, result.EagerNoise, "", "running_mean"},
		{"targets are ignored", inTraining(suitetest.Training{TargetsIgnored: true}), gate.InputSeen, gate.InputNotSeen, result.Refused, "", "other targets"},
		{"a hyperparameter is ignored", inTraining(suitetest.Training{HyperIgnored: "momentum"}), gate.HyperObeyed, gate.HyperNotSeen, result.Refused, arm.ReferenceEager, "momentum"},
		{"a decay is ignored", inTraining(suitetest.Training{HyperIgnored: "ema_decay"}), gate.HyperObeyed, gate.HyperNotSeen, result.Refused, arm.ReferenceEager, "ema_decay"},
		{"steps fall back", suitetest.Faults{FallsBack: true}, gate.Engaged, gate.FellBack, result.Refused, arm.NativeGraph, ""},
		{"graphs are captured again", suitetest.Faults{CapturesAgain: true}, gate.Engaged, gate.CapturedAgain, result.Refused, arm.ReferenceGraph, ""},
		{"graphs are captured again when hyperparameters change", suitetest.Faults{CapturesAgain: true}, gate.HyperObeyed, gate.CapturedAgain, result.Refused, arm.NativeGraph, "while hyperparameters change"},
		{"a stale batch", inTraining(suitetest.Training{StaleBatch: true}), gate.Replay, gate.OutputDiffers, result.Differs, arm.ReferenceGraph, "step 2, loss"},
		{"gradients are added up", inTraining(suitetest.Training{GradientKept: true}), gate.Replay, gate.OutputDiffers, result.Differs, arm.NativeGraph, "grad.fc.bias"},
		{"a gradient is not written", inTraining(suitetest.Training{GradientUnwritten: true}), gate.Replay, gate.OutputNotWritten, result.Differs, arm.NativeGraph, "grad.fc.weight"},
		{"an older result is overwritten", suitetest.Faults{LeavesBankBehind: true}, gate.Replay, gate.OutputOverwritten, result.Differs, arm.ReferenceGraph, "step 1"},
		{"poison is read", suitetest.Faults{ReadsPoison: true}, gate.Replay, gate.OutputDiffers, result.Differs, arm.NativeGraph, "NaN"},
		{"a buffer moves in the warm-up", inTraining(suitetest.Training{WarmupMoves: true}), gate.State, gate.StateDiffers, result.Differs, arm.ReferenceGraph, "step 1, buffer.bn.num_batches_tracked: 1 of 1 elements differ"},
		{"the average is skipped", inTraining(suitetest.Training{AverageSkipped: true}), gate.State, gate.StateDiffers, result.Differs, arm.NativeGraph, "step 1, ema."},
		{"no gradient becomes zeros", inTraining(suitetest.Training{ZeroGradient: true}), gate.State, gate.OtherTensors, result.Differs, arm.ReferenceGraph, "reference-graph has grad.unused, reference-eager does not"},
		{"a stale lr", inTraining(suitetest.Training{StaleHyper: "lr"}), gate.HyperObeyed, gate.HyperStale, result.Differs, arm.ReferenceGraph, "lr keeps its value of the first step"},
		{"a stale momentum", inTraining(suitetest.Training{StaleHyper: "momentum"}), gate.HyperObeyed, gate.HyperStale, result.Differs, arm.NativeGraph, "momentum keeps"},
		{"a stale weight decay", inTraining(suitetest.Training{StaleHyper: "weight_decay"}), gate.HyperObeyed, gate.HyperStale, result.Differs, arm.NativeGraph, "weight_decay keeps"},
		{"a stale decay of the average", inTraining(suitetest.Training{StaleHyper: "ema_decay"}), gate.HyperObeyed, gate.HyperStale, result.Differs, arm.ReferenceGraph, "ema_decay keeps"},
		{"all hyperparameters stale", inTraining(suitetest.Training{StaleHyper: "all"}), gate.HyperObeyed, gate.HyperStale, result.Differs, arm.NativeGraph, "all keeps"},
		{"a short batch poisons later steps", inTraining(suitetest.Training{ShortPoisons: true}), gate.PartialBatch, gate.AfterShortBatch, result.Differs, arm.NativeGraph, "step 4, grad.bn.weight"},
		{"a short batch is padded", inTraining(suitetest.Training{ShortPadded: true}), gate.PartialBatch, gate.ShortBatchDiffers, result.Differs, arm.ReferenceGraph, "step 3"},
		{"momentum is not restored", inTraining(suitetest.Training{MomentumLost: true}), gate.Resume, gate.ResumeDiffers, result.Differs, arm.ReferenceEager, "step 5, momentum."},
		{"checkpoints cannot be exchanged", inTraining(suitetest.Training{ForeignMomentum: true}), gate.Resume, gate.CheckpointNotExchanged, result.Differs, arm.ReferenceEager, "from the checkpoint of native-graph: step 5, momentum.fc.weight"},
		{"a checkpoint is not the state", inTraining(suitetest.Training{ForeignMomentum: true}), gate.Resume, gate.ResumeDiffers, result.Differs, arm.NativeEager, "1 tensors of it are not what the state was: momentum.fc.weight"},
		{"native is off by an ULP", suitetest.Faults{Training: suitetest.Training{NativeGradient: gradientULPs(1)}, NativeTrace: true}, gate.Native, gate.NativeDiffers, result.Differs, arm.NativeEager, "first at operation 1 of 2"},
		{"native's optimizer is off", inTraining(suitetest.Training{NativeOptimizer: true}), gate.Native, gate.NativeDiffers, result.Differs, arm.NativeEager, "look at the optimizer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := train(t, c.faults, "cuda:0")
			f := r.Gates[c.gate]
			if c.arm != "" {
				f = f.Arms[c.arm]
			}
			if f.Outcome != gate.Failed || f.Reason != c.reason || !strings.Contains(f.Detail, c.says) {
				t.Errorf("gate %s: %s %s %s", c.gate, f.Outcome, f.Reason, f.Detail)
			}
			if f.Detail == "" || !strings.HasPrefix(f.Reproduce, "parity ") {
				t.Errorf("detail %q, reproduce %q", f.Detail, f.Reproduce)
			}
			if r.Verdict != c.verdict || r.Verdict.Exit() == 0 {
				t.Errorf("verdict %s: %s", r.Verdict, r.Summary)
			}
			if len(r.Gates) != len(gate.Order(gate.Train)) {
				t.Errorf("%d gates", len(r.Gates))
			}
		})
	}
}

func TestTrainingExact(t *testing.T) {
	r, start := train(t, suitetest.Faults{}, "cuda:0")
	if r.Verdict != result.Exact || r.Reason != "" {
		t.Fatalf("verdict %s: %s %s", r.Verdict, r.Reason, r.Summary)
	}
	arms := []string{arm.ReferenceEager, arm.ReferenceGraph, arm.NativeEager, arm.NativeGraph}
	if !slices.Equal(r.Arms, arms) || start.Processes != 10 {
		t.Errorf("arms %v, %d processes", r.Arms, start.Processes)
	}
	for _, id := range gate.Order(gate.Train) {
		if f := r.Gates[id]; f.Outcome != gate.Passed {
			t.Errorf("gate %s: %s %s", id, f.Outcome, f.Detail)
		}
	}
	for _, name := range arms {
		if r.Timings[name].MedianMS != 1.5 {
			t.Errorf("%s took %+v", name, r.Timings[name])
		}
		if len(r.Digests.Steps[name]) != 8 || !slices.Equal(r.Digests.Steps[name], r.Digests.Steps[arm.ReferenceEager]) {
			t.Errorf("%s has steps %v", name, r.Digests.Steps[name])
		}
		if len(r.Digests.Outputs[name]["step 8"]) != 1+3+4+2+3+5 {
			t.Errorf("%s has digests %v", name, r.Digests.Outputs[name])
		}
	}
	if len(r.Digests.Inputs) != 8 || len(r.Digests.Inputs["step 3"]) != 6 {
		t.Errorf("inputs %v", r.Digests.Inputs)
	}
	if r.Mode != gate.Train || r.Training.Steps != 8 || r.Training.Classes != 4 || r.Training.ShortBatch != 2 {
		t.Errorf("%s %+v", r.Mode, r.Training)
	}
	frozen := r.Gates[gate.HyperObeyed].Arms[arm.ReferenceEager].Figures.(gate.StateFigures).Frozen
	for _, name := range append(schedule.Names(), gate.AllFrozen) {
		if frozen[name] == 0 {
			t.Errorf("%s makes no difference: %v", name, frozen)
		}
	}
	for name, want := range map[string][]string{arm.ReferenceEager: {arm.ReferenceEager, arm.NativeGraph},
		arm.NativeGraph: {arm.NativeGraph, arm.ReferenceEager}, arm.NativeEager: {arm.NativeEager}, arm.ReferenceGraph: {arm.ReferenceGraph}} {
		f := r.Gates[gate.Resume].Arms[name].Figures.(gate.StateFigures)
		if !slices.Equal(f.Checkpoints, want) || f.After != 4 {
			t.Errorf("%s was resumed from %v after %d", name, f.Checkpoints, f.After)
		}
	}
}

// That an operation cannot be named is no reason not to say that bits differ.
func TestTrainingWithoutTrace(t *testing.T) {
	r, _ := train(t, suitetest.Faults{Training: suitetest.Training{NativeGradient: gradientULPs(3)},
		TraceFails: func() error { return arm.ErrUnimplemented }}, "cuda:0")
	f := r.Gates[gate.Native].Arms[arm.NativeEager]
	if r.Verdict != result.Differs || f.Reason != gate.NativeDiffers || !strings.Contains(f.Detail, "; looking closer failed: ") {
		t.Errorf("%s: %s %q", r.Verdict, f.Reason, f.Detail)
	}
}

func TestTrainingCulprit(t *testing.T) {
	faults := suitetest.Faults{Training: suitetest.Training{NativeGradient: gradientULPs(3)}, NativeTrace: true}
	r, _ := train(t, faults, "cuda:0")
	f := r.Gates[gate.Native].Arms[arm.NativeEager]
	figures := f.Figures.(gate.StateFigures)
	d := figures.Differences[0]
	if d.Step != 1 || d.Tensor != "grad.fc.weight" || d.Bits == nil || d.Bits.MaxULP != 3 || d.Bits.Different != 1 || d.Bits.FirstIndex != 5 {
		t.Errorf("difference %+v %+v", d, d.Bits)
	}
	c, ok := figures.First.(*suite.Culprit)
	if !ok || c.Operation != 1 || c.Probe != "step 1" || c.Bits.MaxULP != 3 || len(c.Operands) != 2 || len(c.Operands[1].Reference) != 64 {
		t.Fatalf("culprit %+v: %s", c, f.Detail)
	}
	if !strings.HasPrefix(f.Reproduce, "parity trace fake") || !strings.HasSuffix(f.Reproduce, "--mode train --steps 8 --lr 0.01 --warmup-steps 2 "+
		"--plateau-steps 0 --min-lr-ratio 0.01 --momentum 0.937 --weight-decay 0.0001 --ema-decay 0.9998 --ema-tau 2000 --step 1") {
		t.Errorf("reproduce: %s", f.Reproduce)
	}
	s := &suite.Suite{Start: &suitetest.Starter{Faults: faults}}
	found, err := s.TraceStep(t.Context(), trainCell("cuda:0"), 6)
	if err != nil || found == nil || found.Probe != "step 6" || found.Operation != 1 {
		t.Errorf("trace: %+v, %v", found, err)
	}
	if _, err := s.TraceStep(t.Context(), trainCell("cuda:0"), 9); err == nil {
		t.Error("no error for a step that is not there")
	}
}

func TestTrainingOnHost(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  suitetest.Faults
		verdict result.Verdict
		reason  gate.Reason
	}{
		{"the same bits", suitetest.Faults{}, result.Consistent, ""},
		{"another rounding", inTraining(suitetest.Training{NativeGradient: gradientULPs(1)}), result.Consistent, ""},
		{"far off", inTraining(suitetest.Training{NativeGradient: gradientULPs(1 << 12)}), result.Differs, gate.RoundingWorse},
		{"graph differs from eager", suitetest.Faults{ReadsChurn: true}, result.Differs, gate.OutputDiffers},
		{"a stale lr", suitetest.Faults{Training: suitetest.Training{NativeGradient: gradientULPs(1), StaleHyper: "lr"}}, result.Differs, gate.OutputDiffers},
		{"checkpoints lose something", inTraining(suitetest.Training{ForeignMomentum: true}), result.Differs, gate.ResumeDiffers},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, start := train(t, c.faults, suite.HostDevice)
			if r.Verdict != c.verdict || r.Reason != c.reason {
				t.Fatalf("%s %s: %s", r.Verdict, r.Reason, r.Summary)
			}
			if r.Verdict == result.Consistent {
				if !slices.Equal(r.Arms, []string{arm.ReferenceEager, arm.NativeEager, arm.NativeGraph}) || start.Processes != 9 {
					t.Errorf("arms %v, %d processes", r.Arms, start.Processes)
				}
				if f := r.Gates[gate.Native]; f.Outcome != gate.Rounding {
					t.Errorf("NATIVE: %s", f.Outcome)
				}
			}
			if c.faults.StaleHyper != "" {
				if f := r.Gates[gate.HyperObeyed].Arms[arm.NativeGraph]; f.Reason != gate.HyperStale {
					t.Errorf("HYPER: %s %s", f.Reason, f.Detail)
				}
			}
			if f := r.Gates[gate.State].Arms[arm.ReferenceGraph]; f.Reason != gate.NoGPU {
				t.Errorf("reference-graph: %+v", f)
			}
		})
	}
}

func TestTrainingRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults suitetest.Faults
		spoil  func(*suite.Cell)
		reason gate.Reason
	}{
		{"one image", suitetest.Faults{}, func(c *suite.Cell) { c.Batch = 1 }, "BAD_BATCH"},
		{"too few steps", suitetest.Faults{}, func(c *suite.Cell) { c.Training = schedule.Default(3) }, "BAD_SCHEDULE"},
		{"recording moves state", inTraining(suitetest.Training{RecordMoves: true}), func(*suite.Cell) {}, "RECORDING_MOVES_STATE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell := trainCell("cuda:0")
			c.spoil(&cell)
			r := (&suite.Suite{Start: &suitetest.Starter{Faults: c.faults}, Timing: suite.DefaultTiming()}).Verify(t.Context(), cell)
			if r.Verdict != result.Refused || r.Reason != c.reason {
				t.Errorf("%s %s: %s", r.Verdict, r.Reason, r.Summary)
			}
		})
	}
}

func TestTrainingKeep(t *testing.T) {
	dir := t.TempDir()
	s := &suite.Suite{Start: &suitetest.Starter{}, Timing: suite.DefaultTiming(), Keep: dir}
	r := s.Verify(t.Context(), trainCell("cuda:0"))
	if r.Verdict != result.Exact {
		t.Fatal(r.Summary)
	}
	cell := filepath.Join(dir, "classify-fake-s-8-b4-train-fp32-cuda")
	for path, want := range map[string]string{
		"recording.pb":            r.Digests.Recording,
		"weights.safetensors":     r.Digests.Weights,
		"native-graph/step-8.txt": r.Digests.Steps[arm.NativeGraph][7],
	} {
		data, err := os.ReadFile(filepath.Join(cell, path))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := digest.Bytes(data); got != want { // what b3sum prints
			t.Errorf("%s: %s instead of %s", path, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(cell, arm.ReferenceGraph, "step-4.safetensors")); err != nil {
		t.Error(err)
	}
}
