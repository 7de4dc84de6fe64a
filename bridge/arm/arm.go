// Package arm holds the plain Go types of one way to run a step: what a host asks of a plugin and what it answers.
// Both sides use them (bridge/host and bridge/serve give them their own names); wire types stop at bridge/proto.
package arm

import (
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// Protocol is the version of the wire that this code speaks. Host and plugin must agree.
const Protocol = 1

// The arms that the suite knows.
const (
	ReferenceEager = "reference-eager"
	ReferenceGraph = "reference-graph"
	ReferenceFP64  = "reference-fp64"
	ReferenceWhole = "reference-whole" // all of a family's forward, where the step is a segment of it
	ReferenceRest  = "reference-rest"  // what comes behind the segment, on what a segment gave
	NativeEager    = "native-eager"
	NativeGraph    = "native-graph"
	// ReferenceCompile is torch.compile, with graphs: to compare times with. Nobody claims that its bits are eager's.
	ReferenceCompile = "reference-compile"
)

// Region is a range of the shared memory in bytes. Offsets are multiples of Alignment.
type Region struct{ Offset, Length int64 }

// Alignment of every region in the shared memory.
const Alignment = 64

// Placed is a contiguous, little-endian tensor at its place in the shared memory.
type Placed struct {
	tensor.Spec
	Region Region
}

// Bank is a complete set of inputs or outputs. Steps name banks by their index in PrepareRequest.
type Bank []Placed

// Description says what a plugin is. Protocol is filled in by bridge/serve.
type Description struct {
	Protocol    uint32
	Plugin      string // reference, predictor
	Version     string
	Arms        []string
	Devices     []string // cuda:0, host, cpu
	Environment []recording.Setting
}

// BuildRequest asks a reference plugin for a family with seeded, seasoned weights.
type BuildRequest struct {
	Family, Size, Task string
	Seed               uint64
	Precision          string // fp32, bf16, fp16, fp64
	Profile            string // exact-1
	Device             string // cuda:0, cpu
	Arm                string
	FreshWeights       bool   // as the family initialises them, not seasoned
	ImgSize            int64  // 0: the family's own
	Batch              int64  // 0: 1
	Mode               string // predict (also where empty), train
	// ConstructOnly asks for the part of the work that leaves the device alone; a Build of the same follows. A plugin that
	// does not know it builds twice.
	ConstructOnly bool
	WeightsFile   string // a path: take its weights; empty: seeded ones
}

// BuildReply says what was built.
type BuildReply struct {
	Inputs        []tensor.Spec
	WeightsLength int64 // bytes of the safetensors file that Export gives
	Task, Size    string
	ImgSize       int64

	Outputs          []tensor.Spec // train: all that an output bank may list
	CheckpointLength int64         // train: bytes of the file that Export gives

	Segment string  // the part of the family's forward that the step is; empty: all of it
	Rest    bool    // ReferenceWhole and ReferenceRest can run what comes behind it
	Others  []Other // cells that graphs of this one must stand beside
}

// Other is a cell of the same weights: another image size, or a family's variant of another key.
type Other struct {
	Family  string
	ImgSize int64
}

// RecordReply says what Export will give.
type RecordReply struct {
	RecordingLength int64
	WeightsLength   int64
	Outputs         []tensor.Spec
}

// What an Export copies out.
type What uint8

const (
	TheRecording  What = 1
	TheWeights    What = 2
	TheCheckpoint What = 3 // train: parameters, buffers, momentum and EMA
)

func (w What) String() string {
	switch w {
	case TheRecording:
		return "recording"
	case TheWeights:
		return "weights"
	case TheCheckpoint:
		return "checkpoint"
	}
	return "nothing"
}

// ExportRequest asks for a result of Build or Record to be copied into Region.
type ExportRequest struct {
	What   What
	Region Region
}

// LoadRequest hands over a recording and weights, or weights alone after Build.
type LoadRequest struct {
	Recording  Region // length 0 after Build
	Weights    Region
	Device     string
	Arm        string
	Options    []recording.Setting // off switches: hoist=off, lanes=off, fuse=off, norms=off, keep=all; add=on keeps state; graph=asked (bridge/predict)
	Checkpoint Region              // train: restores state; length 0 where there is none
}

// LoadReply says what a step takes and gives.
type LoadReply struct {
	Inputs, Outputs []tensor.Spec
	RecordingDigest string
	ArenaBytes      int64
	PeakBytes       int64

	CheckpointLength int64 // train: bytes of the file that Export gives

	Launches LaunchList // of native arms; empty: nobody says
}

// PrepareRequest fixes the banks that steps will name.
type PrepareRequest struct {
	Inputs, Outputs []Bank
	CUDAGraph       bool
}

// PrepareReply says whether a graph was captured.
type PrepareReply struct {
	Captured  bool
	Nodes     int64
	PeakBytes int64
}

// DisturbRequest asks for what an unkind program would do between steps.
type DisturbRequest struct {
	PoisonOutputs bool // NaN bytes over every output and scratch byte of the arm
	Churn         bool // allocate and free blocks of many sizes
}

// Situations: what may happen between steps, and must not change their bits. docs/wire.md says what an arm does.
const (
	OtherStream  = "stream"  // steps run on another stream than the one that was captured
	OtherThread  = "thread"  // a capture in a thread that ends, while another one is busy
	Moved        = "move"    // parameters and buffers have other addresses
	Updated      = "update"  // floating parameters are halved in place
	Restored     = "restore" // undoes Updated
	OtherMode    = "mode"    // train, eval, grad and inference modes, or the graph switched off and on
	Released     = "release" // graphs are gone
	FailsCapture = "fail"    // graphs are gone, and the next capture fails
	Seeded       = "seed"    // the generator has another seed
	OtherDevice  = "device"  // another device is current
)

// SituateRequest puts an arm into a situation.
type SituateRequest struct {
	Situation string
	Seed      uint64 // of Seeded
}

// SituateReply says what the arm did, for people.
type SituateReply struct{ Facts []recording.Setting }

// TraceRequest asks for one eager step with the digest of every result. When Want is set, that result is also
// copied out.
type TraceRequest struct {
	InputBank int
	Want      *Wanted
}

// Wanted is one result of one operation, and where it shall go.
type Wanted struct {
	Operation int
	Result    int // index over the flat list of result tensors
	Region    Region
}

// TraceReply holds one entry an operation, in order.
type TraceReply struct {
	Operations []OperationTrace
	Wanted     tensor.Spec // of the result that was wanted
}

// OperationTrace has the digests of an operation's flat list of result tensors; empty text where the arm never
// made that tensor.
type OperationTrace struct {
	Operation int
	Digests   []string
}

// MeasureRequest asks for timed steps inside the plugin, transfers left out.
type MeasureRequest struct {
	InputBank          int
	Warmup, Iterations int
}

// MeasureReply has one synchronised time a step.
type MeasureReply struct{ Milliseconds []float64 }

// ProcessRequest asks for a stage of what lies around steps. Stages and their settings are the plugin's own.
type ProcessRequest struct {
	Stage    string
	Settings []recording.Setting // a key may come several times
	Bank     Bank                // tensors that the stage reads or writes
}

// ProcessReply says how far the work came.
type ProcessReply struct {
	Tensors []tensor.Spec // that the next stage wants
	Text    string        // a JSON object
}

// Stats counts what an arm did since Load.
type Stats struct {
	Captures, Replays, EagerSteps, Fallbacks int64
	Launches                                 int64 // operations or graph nodes sent to the device, all steps together
	PeakBytes                                int64
	Synchronisations                         int64 // waits for the device inside steps, the one that ends each step apart
	FallbackReason                           string
	ReservedBytes                            int64 // the most that a caching allocator held of the device; 0: there is none

	NodesByKind    map[string]int64 // of all captured graphs; nil: nobody can look into them
	Generator      string           // digest of the default generator's state; empty: the arm has none
	Invalidations  int64            // graphs dropped because what they held had moved or changed
	Latched        bool             // a capture failed, and no other is tried until Released
	AllocatedBytes int64            // of the device, held at this moment; 0: nobody counts
}

// Kinds of nodes in Stats.NodesByKind.
const (
	KernelNode = "kernel"
	CopyNode   = "memcpy_d2d"
	UploadNode = "memcpy_h2d"
	FetchNode  = "memcpy_d2h"
	SetNode    = "memset"
	AllocNode  = "alloc"
	FreeNode   = "free"
	HostNode   = "host"
	EventNode  = "event"
	GraphNode  = "graph"
	OtherNode  = "other"
)
