package gate

import (
	"fmt"

	"samebits/bridge/arm"
)

// MoreReplays is how often an arm replays while its memory is watched.
const MoreReplays = 20

// Holding is what an arm held of the device: with a fresh graph, after replays of it, and with a graph captured again.
type Holding struct {
	Fresh, Replayed, Again arm.Stats
	Replays                int
	Unknown                bool  // the arm cannot release its graphs
	Refused                error // what a call or a step answered instead
}

// MemoryFigures has bytes of the device. 0: nobody counts.
type MemoryFigures struct {
	Replays   int       `json:"replays"`
	Allocated [3]uint64 `json:"allocated"` // with a fresh graph, after replays, with a graph captured again
	Reserved  [3]uint64 `json:"reserved"`  // the most so far
}

// JudgeMemory holds if neither replays nor another capture take more memory than there was.
func JudgeMemory(h Holding) Finding {
	if h.Unknown {
		return Skip(NotApplicable, fmt.Sprintf("it knows no situation %q", arm.Released))
	}
	figures := MemoryFigures{Replays: h.Replays}
	for i, s := range []arm.Stats{h.Fresh, h.Replayed, h.Again} {
		figures.Allocated[i], figures.Reserved[i] = uint64(max(s.AllocatedBytes, 0)), uint64(max(s.ReservedBytes, 0))
	}
	f := Finding{Outcome: Failed, Figures: figures}
	if h.Refused != nil {
		f.Reason, f.Detail = reasonOf(h.Refused), fmt.Sprint(h.Refused)
		return f
	}
	for _, of := range []struct {
		what  string
		bytes [3]uint64
	}{{"held", figures.Allocated}, {"reserved", figures.Reserved}} {
		switch b := of.bytes; {
		case b[1] > b[0]:
			f.Reason, f.Detail = MemoryGrowth, fmt.Sprintf("%d replays later %d bytes more are %s: %d instead of %d", h.Replays, b[1]-b[0], of.what, b[1], b[0])
			return f
		case b[2] > b[1]:
			f.Reason, f.Detail = MemoryGrowth, fmt.Sprintf("with a graph captured again %d bytes more are %s: %d instead of %d", b[2]-b[1], of.what, b[2], b[1])
			return f
		}
	}
	if figures.Allocated == [3]uint64{} && figures.Reserved == [3]uint64{} {
		return Finding{Outcome: Skipped, Reason: NotApplicable, Detail: "nobody counts its memory", Figures: figures}
	}
	f.Outcome = Passed
	return f
}
