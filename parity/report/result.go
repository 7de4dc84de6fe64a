// Package report writes results, progress and findings for people. What programs read is JSON, in package result.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/matrix"
	"samebits/parity/result"
)

// Result writes one cell's result: the verdict, each gate, the times of the arms and what it ran on.
func Result(w io.Writer, r result.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", Title(r), r.Verdict)
	if !failed(r) && len(r.Problems) == 0 {
		fmt.Fprintf(&b, "  %s\n", r.Summary)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "  problem %s", p.Reason)
		if p.Path != "" {
			fmt.Fprintf(&b, " at %s", p.Path)
		}
		fmt.Fprintf(&b, ": %s\n", p.Summary)
		if p.Detail != "" {
			fmt.Fprintf(&b, "    %s\n", p.Detail)
		}
	}
	gates(&b, r)
	timings(&b, r)
	if line := environment(r.Environment); line != "" {
		fmt.Fprintf(&b, "  on %s\n", line)
	}
	if r.Verdict.Exit() != result.ExitExact && !failed(r) {
		fmt.Fprintf(&b, "  again: %s\n", r.Reproduce)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Reused writes a line for a result that was finished before.
func Reused(w io.Writer, r result.Result, path string) error {
	_, err := fmt.Fprintf(w, "%s: %s\n  finished before, in %s\n", Title(r), r.Verdict, path)
	return err
}

// failed reports whether a gate failed: then its line says more than the summary.
func failed(r result.Result) bool {
	for _, f := range r.Gates {
		if f.Outcome == gate.Failed {
			return true
		}
	}
	return false
}

// Title names a cell for people.
func Title(r result.Result) string {
	name := r.Family
	if r.Size != "" {
		name += "-" + r.Size
	}
	if r.Task != "" {
		name += " " + r.Task
	}
	if r.Mode == gate.Train {
		name += " train"
	}
	if r.ImgSize != 0 {
		name += fmt.Sprintf(" %d", r.ImgSize)
	}
	return fmt.Sprintf("%s batch %d %s on %s", name, r.Batch, r.Precision, r.Device)
}

// gates writes a line a gate and, of a gate that did not pass, why.
func gates(b *strings.Builder, r result.Result) {
	if !slices.ContainsFunc(gate.Of(r.Mode, r.Gates), func(id gate.ID) bool { return r.Gates[id].Outcome != gate.Skipped }) {
		return // none was reached
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, id := range gate.Of(r.Mode, r.Gates) {
		f := r.Gates[id]
		if f.Reason == gate.NotAsked {
			continue
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", id, f.Outcome, note(f, r.Arms))
	}
	_ = t.Flush() // a strings.Builder never fails
	for _, id := range gate.Of(r.Mode, r.Gates) {
		f := r.Gates[id]
		if f.Outcome == gate.Failed {
			fmt.Fprintf(b, "  %s: %s\n    reproduce: %s\n", id, strings.ReplaceAll(f.Detail, "; ", "\n    "), f.Reproduce)
		}
	}
}

// note says in a few words what stands behind an outcome.
func note(f gate.Finding, arms []string) string {
	if f.Outcome == gate.Skipped || f.Outcome == gate.Failed {
		return string(f.Reason)
	}
	var parts []string
	for _, name := range arms {
		if a, judged := f.Arms[name]; judged && a.Outcome != gate.Skipped {
			parts = append(parts, name+figures(a.Figures))
		}
	}
	if f.Arms == nil {
		return strings.TrimSpace(figures(f.Figures))
	}
	return strings.Join(parts, ", ")
}

func figures(f any) string {
	switch f := f.(type) {
	case gate.RecordingFigures:
		return fmt.Sprintf(" %d recordings of %d operations", f.Recordings, f.Operations)
	case gate.NoiseFigures:
		return fmt.Sprintf(" %d processes, %d probes, %d outputs", f.Processes, f.Probes, f.Outputs)
	case gate.SeenFigures:
		return fmt.Sprintf(" %d pairs of probes differ", len(f.Different))
	case gate.EngagedFigures:
		return fmt.Sprintf(" %d nodes, %d replays", f.Nodes, f.Replays)
	case gate.StateFigures:
		return stateFigures(f)
	case gate.ShapeFigures:
		return fmt.Sprintf(" %d graphs of %s, %d replays", f.Captures, strings.Join(f.Shapes, " and "), f.Replays)
	case gate.NodesFigures:
		if f.Kinds == nil {
			return fmt.Sprintf(" %d commands", f.Nodes)
		}
		return fmt.Sprintf(" %d kernels", f.Kinds[arm.KernelNode])
	case gate.MemoryFigures:
		return fmt.Sprintf(" %d replays", f.Replays)
	case gate.ProcessFigures:
		return fmt.Sprintf(" %d processes, %d cold", f.Processes, f.Cold)
	case gate.RoundingFigures:
		if f.Same {
			return " same bits"
		}
	}
	return ""
}

func stateFigures(f gate.StateFigures) string {
	switch {
	case f.Frozen != nil:
		return fmt.Sprintf(" %d hyperparameters matter", len(f.Frozen)-1) // and all of them together
	case f.Checkpoints != nil:
		return " from " + strings.Join(f.Checkpoints, " and ")
	case f.ShortBatch > 0:
		return fmt.Sprintf(" a batch of %d among %d", f.ShortBatch, f.Steps)
	}
	return fmt.Sprintf(" %d steps, %d tensors", f.Steps, f.Tensors)
}

// timings writes a line an arm that was measured, in the arms' order.
func timings(b *strings.Builder, r result.Result) {
	if len(r.Timings) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, name := range r.Arms {
		if m, measured := r.Timings[name]; measured {
			fmt.Fprintf(t, "  %s\t%.3f ms\t(least %.3f, %d steps)\n", name, m.MedianMS, m.MinMS, m.Iterations)
		}
	}
	_ = t.Flush() // a strings.Builder never fails
}

// environment is the short list of what decides bits.
func environment(e map[string]string) string {
	var parts []string
	for _, key := range matrix.Decisive {
		if v := e[key]; v != "" {
			parts = append(parts, strings.TrimPrefix(key, "host.")+" "+v)
		}
	}
	return strings.Join(parts, ", ")
}
