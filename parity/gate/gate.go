// Package gate judges. Each gate takes what arms did and says whether one property held, with a stable reason and figures
// if not. Gates start nothing and read no files: package suite gathers the evidence. docs/gates.md has a page on each.
package gate

import (
	"fmt"
	"slices"

	"samebits/bridge/certificate"
)

// ID names a gate.
type ID = certificate.GateID

// The gates, in the order in which they are judged. State to Resume are of training alone.
const (
	SameRecording = certificate.SameRecording
	Reproduces    = certificate.Reproduces
	InputSeen     = certificate.InputSeen
	Engaged       = certificate.Engaged
	Replay        = certificate.Replay
	NotStale      = certificate.NotStale
	State         = certificate.State
	HyperObeyed   = certificate.HyperObeyed
	PartialBatch  = certificate.PartialBatch
	Resume        = certificate.Resume
	Native        = certificate.Native

	// What may happen to an arm of mode predict between its steps, and what is to be seen of it meanwhile. See Situations.
	Nodes         = certificate.Nodes
	OtherStream   = certificate.OtherStream
	OtherThread   = certificate.OtherThread
	Moved         = certificate.Moved
	Modes         = certificate.Modes
	SeedObeyed    = certificate.SeedObeyed
	FailedCapture = certificate.FailedCapture
	MemoryKept    = certificate.MemoryKept
	OtherDevice   = certificate.OtherDevice
	Processes     = certificate.Processes

	// Of some cells alone: those whose step is a segment, and those whose graphs must stand beside others.
	Seam  = certificate.Seam
	Shape = certificate.Shape
)

// The modes of a cell.
const (
	Predict = certificate.Predict
	Train   = certificate.Train
)

// Order lists the gates of a mode in the order in which they are judged: a certificate has all of them.
func Order(mode string) []ID { return certificate.Order(mode) }

// Situations are the gates that a graph arm goes through in one process after its replays, in this order: what cannot be undone
// comes last.
var Situations = certificate.Situations

// Of lists the gates of a result in the order in which they are judged: those of its mode, and those that only some cells
// have.
func Of(mode string, gates map[ID]Finding) []ID {
	all := Order(mode)
	if mode != Train {
		all = slices.DeleteFunc(all, func(id ID) bool { return absent(id, gates) })
	}
	for _, id := range []ID{Seam, Shape} {
		if _, has := gates[id]; has {
			all = append(all, id)
		}
	}
	return all
}

// absent reports whether a result is older than a gate.
func absent(id ID, gates map[ID]Finding) bool {
	_, has := gates[id]
	return !has && len(gates) > 0 && (id == Processes || slices.Contains(Situations, id))
}

// Outcome is how a gate ended.
type Outcome = certificate.Outcome

// The outcomes. Rounding is NATIVE's on a device without PyTorch's own bits: it was held to a distance, not to equality.
const (
	Passed   = certificate.Passed
	Failed   = certificate.Failed
	Skipped  = certificate.Skipped
	Rounding = certificate.Rounding
)

// Reason says why a gate failed or was skipped. Reasons are stable.
type Reason = certificate.Reason

// The reasons.
const (
	RecordingChangesWithInput Reason = "RECORDING_CHANGES_WITH_INPUT"
	RecordingChangesWithStep  Reason = "RECORDING_CHANGES_WITH_STEP"
	EagerNoise                Reason = "EAGER_NOISE"
	StateMoved                Reason = "STATE_MOVED"
	InputNotSeen              Reason = "INPUT_NOT_SEEN"
	NotCaptured               Reason = "NOT_CAPTURED"
	FellBack                  Reason = "FELL_BACK"
	NotReplayed               Reason = "NOT_REPLAYED"
	CapturedAgain             Reason = "CAPTURED_AGAIN"
	NotLaunched               Reason = "NOT_LAUNCHED"
	Synchronised              Reason = "SYNCHRONISED"
	OutputDiffers             Reason = "OUTPUT_DIFFERS"
	OutputNotWritten          Reason = "OUTPUT_NOT_WRITTEN"
	OutputOverwritten         Reason = "OUTPUT_OVERWRITTEN"
	OutputsOfOtherShape       Reason = "OUTPUTS_OF_OTHER_SHAPE"
	TooFewReplays             Reason = "TOO_FEW_REPLAYS"
	StaleOutput               Reason = "STALE_OUTPUT"
	NativeDiffers             Reason = "NATIVE_DIFFERS"
	RoundingWorse             Reason = "ROUNDING_WORSE"
	StateDiffers              Reason = "STATE_DIFFERS"
	OtherTensors              Reason = "OTHER_TENSORS"
	HyperNotSeen              Reason = "HYPER_NOT_SEEN"
	HyperStale                Reason = "HYPER_STALE"
	HyperDiffers              Reason = "HYPER_DIFFERS"
	ShortBatchDiffers         Reason = "SHORT_BATCH_DIFFERS"
	AfterShortBatch           Reason = "AFTER_SHORT_BATCH"
	ResumeDiffers             Reason = "RESUME_DIFFERS"
	CheckpointNotExchanged    Reason = "CHECKPOINT_NOT_EXCHANGED"
	SeamDiffers               Reason = "SEAM_DIFFERS"
	ShapeDiffers              Reason = "SHAPE_DIFFERS"
	KeyIgnored                Reason = "KEY_IGNORED"
	EmptyGraph                Reason = "EMPTY_GRAPH"
	AllocInRegion             Reason = "ALLOC_IN_REGION"
	UploadInRegion            Reason = "H2D_IN_REGION"
	FetchInRegion             Reason = "D2H_IN_REGION"
	HostInRegion              Reason = "HOST_IN_REGION"
	OffStreamWork             Reason = "OFF_STREAM_WORK"
	StaleStream               Reason = "STALE_STREAM"
	ThreadUnsafeCapture       Reason = "THREAD_UNSAFE_CAPTURE"
	PointerMoved              Reason = "POINTER_MOVED"
	ModelMutated              Reason = "MODEL_MUTATED"
	UpdateNotSeen             Reason = "UPDATE_NOT_SEEN"
	ModeNotKeyed              Reason = "MODE_NOT_KEYED"
	RNGNotReplayed            Reason = "RNG_NOT_REPLAYED"
	RNGStreamDiffers          Reason = "RNG_STREAM_DIFFERS"
	CaptureSurvived           Reason = "CAPTURE_SURVIVED"
	ContextPoisoned           Reason = "CONTEXT_POISONED"
	NotLatched                Reason = "NOT_LATCHED"
	RecaptureFailed           Reason = "RECAPTURE_FAILED"
	MemoryGrowth              Reason = "MEMORY_GROWTH"
	WrongDevice               Reason = "WRONG_DEVICE"
	ProcessDiffers            Reason = "PROCESS_DIFFERS"
	ColdDiffers               Reason = "COLD_DIFFERS"
	TooFewProcesses           Reason = "TOO_FEW_PROCESSES"
	SituationFailed           Reason = "SITUATION_FAILED"
	NoGPU                     Reason = "NO_GPU"
	NotReached                       = certificate.NotReached
	NotApplicable                    = certificate.NotApplicable
	NoSecondDevice                   = certificate.NoSecondDevice
	NotAsked                  Reason = "NOT_ASKED"
)

// Finding is what a gate found. Of a gate that is judged for each arm, Arms holds one finding an arm and the rest sums
// them up.
type Finding = certificate.Finding

// Skip is the finding of a gate that was not judged.
func Skip(reason Reason, detail string) Finding {
	return Finding{Outcome: Skipped, Reason: reason, Detail: detail}
}

// fail makes a finding one of a failure. The first counts: what comes behind it may come of it.
func fail(f *Finding, reason Reason, format string, args ...any) {
	if f.Outcome != Failed {
		f.Outcome, f.Reason, f.Detail = Failed, reason, fmt.Sprintf(format, args...)
	}
}

// Sum makes one finding of those of several arms: it fails if one does, and is skipped only if all are.
func Sum(arms map[string]Finding) Finding { return certificate.Sum(arms) }
