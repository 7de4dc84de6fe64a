package certificate

import (
	"sort"
)

// Gates are part of what a certificate says: all of a mode must have passed. Package parity/gate judges them and has their names, too;
// docs/gates.md has a section on each.

// GateID names a gate.
type GateID string

// The gates, in the order in which they are judged. State to Resume are of training alone.
const (
	SameRecording GateID = "SAME-RECORDING"
	Reproduces    GateID = "REPRODUCES"
	InputSeen     GateID = "INPUT-SEEN"
	Engaged       GateID = "ENGAGED"
	Replay        GateID = "REPLAY"
	NotStale      GateID = "NOT-STALE"
	State         GateID = "STATE"
	HyperObeyed   GateID = "HYPER"
	PartialBatch  GateID = "PARTIAL"
	Resume        GateID = "RESUME"
	Native        GateID = "NATIVE"

	// What may happen to an arm of mode predict between its steps, and what is to be seen of it meanwhile. See Situations.
	Nodes         GateID = "NODES"
	OtherStream   GateID = "STREAM"
	OtherThread   GateID = "THREAD"
	Moved         GateID = "MOVE"
	Modes         GateID = "MODE"
	SeedObeyed    GateID = "SEED"
	FailedCapture GateID = "FAIL"
	MemoryKept    GateID = "MEMORY"
	OtherDevice   GateID = "DEV"
	Processes     GateID = "PROC"

	// Of some cells alone: those whose step is a segment, and those whose graphs must stand beside others.
	Seam  GateID = "SEAM"
	Shape GateID = "SHAPE"
)

// The modes of a cell.
const (
	Predict = "predict"
	Train   = "train"
)

// Order lists the gates of a mode in the order in which they are judged.
func Order(mode string) []GateID {
	if mode == Train {
		return []GateID{SameRecording, Reproduces, InputSeen, Engaged, Replay, NotStale, State, HyperObeyed, PartialBatch, Resume, Native}
	}
	return append(append([]GateID{SameRecording, Reproduces, InputSeen, Engaged, Replay, NotStale}, Situations...), Native, Processes)
}

// Situations are the gates that a graph arm goes through in one process after its replays, in this order: what cannot be undone
// comes last.
var Situations = []GateID{Nodes, OtherStream, OtherThread, Moved, Modes, SeedObeyed, FailedCapture, MemoryKept, OtherDevice}

// Outcome is how a gate ended.
type Outcome string

// The outcomes. Rounding is NATIVE's on a device without PyTorch's own bits: it was held to a distance, not to equality.
const (
	Passed   Outcome = "passed"
	Failed   Outcome = "failed"
	Skipped  Outcome = "skipped"
	Rounding Outcome = "rounding"
)

// Reason says why a gate failed or was skipped. Reasons are stable.
type Reason string

// The reasons for which a gate is skipped that asks for what an arm or the machine does not have, or that was not judged.
const (
	NotApplicable  Reason = "NOT_APPLICABLE"
	NoSecondDevice Reason = "NO_SECOND_DEVICE"
	NotReached     Reason = "NOT_REACHED"
)

// Finding is what a gate found. Of a gate that is judged for each arm, Arms holds one finding an arm and the rest sums
// them up.
type Finding struct {
	Outcome Outcome            `json:"outcome"`
	Reason  Reason             `json:"reason,omitempty"`
	Detail  string             `json:"detail,omitempty"` // one line for people
	Figures any                `json:"figures,omitempty"`
	Arms    map[string]Finding `json:"arms,omitempty"`
	// Reproduce is the command that shows the failure again.
	Reproduce string `json:"reproduce,omitempty"`
}

// Sum makes one finding of those of several arms: it fails if one does, and is skipped only if all are.
func Sum(arms map[string]Finding) Finding {
	names := make([]string, 0, len(arms))
	for name := range arms {
		names = append(names, name)
	}
	sort.Strings(names)
	sum := Finding{Arms: arms, Outcome: Skipped, Reason: NotReached}
	rank := map[Outcome]int{Skipped: 0, Passed: 1, Rounding: 2, Failed: 3}
	for i, name := range names {
		f := arms[name]
		if i > 0 && rank[f.Outcome] <= rank[sum.Outcome] {
			continue
		}
		sum.Outcome, sum.Reason, sum.Detail, sum.Reproduce = f.Outcome, f.Reason, f.Detail, f.Reproduce
		if f.Detail != "" {
			sum.Detail = name + ": " + f.Detail
		}
	}
	return sum
}
