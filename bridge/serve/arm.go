package serve

import (
	"context"
	"strconv"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
)

// The types that an author needs, under one roof.
type (
	Region         = arm.Region
	Placed         = arm.Placed
	Bank           = arm.Bank
	Description    = arm.Description
	BuildRequest   = arm.BuildRequest
	BuildReply     = arm.BuildReply
	RecordReply    = arm.RecordReply
	ExportRequest  = arm.ExportRequest
	LoadRequest    = arm.LoadRequest
	LoadReply      = arm.LoadReply
	PrepareRequest = arm.PrepareRequest
	PrepareReply   = arm.PrepareReply
	DisturbRequest = arm.DisturbRequest
	SituateRequest = arm.SituateRequest
	SituateReply   = arm.SituateReply
	TraceRequest   = arm.TraceRequest
	Wanted         = arm.Wanted
	TraceReply     = arm.TraceReply
	OperationTrace = arm.OperationTrace
	MeasureRequest = arm.MeasureRequest
	MeasureReply   = arm.MeasureReply
	Stats          = arm.Stats
	ProcessRequest = arm.ProcessRequest
	ProcessReply   = arm.ProcessReply
)

// Errors that choose the gRPC status; wrap them around diag.Problems. Problems alone mean bad input; any other error
// means that something broke inside.
var (
	ErrUnimplemented = arm.ErrUnimplemented
	ErrWrongOrder    = arm.ErrWrongOrder
	ErrOutOfMemory   = arm.ErrOutOfMemory
)

// Arm is what an author writes: one way to run a step. Embed Unimplemented and add the methods that you have.
//
// Every method runs on one and the same OS thread, one at a time, so an Arm needs no locks and may keep a device context
// current. A method that panics gives an error to the host, and the plugin goes on serving.
//
// Slices from Memory stay valid until the process ends, also when the host makes the memory larger: resolve the banks
// once in Prepare and keep the slices for Step.
type Arm interface {
	// Describe says what the plugin is; it must be quick and work without a device.
	Describe(ctx context.Context) (Description, error)
	// Load takes a recording and weights. It may be called again: the newest counts.
	Load(ctx context.Context, memory *Memory, request LoadRequest) (LoadReply, error)
	// Prepare fixes the banks that Step will name, and captures if a graph is asked for.
	Prepare(ctx context.Context, memory *Memory, request PrepareRequest) (PrepareReply, error)
	// Step reads an input bank, runs one step to its end, and writes an output bank. Indices are in range.
	Step(input, output int) error
	// Disturb poisons outputs and churns memory.
	Disturb(ctx context.Context, request DisturbRequest) error
	// Situate does what may happen to an arm between steps, after Prepare. Return UnknownSituation for what you do not know.
	Situate(ctx context.Context, request SituateRequest) (SituateReply, error)
	// Trace runs one eager step and gives the digest of every result.
	Trace(ctx context.Context, memory *Memory, request TraceRequest) (TraceReply, error)
	// Measure times steps.
	Measure(ctx context.Context, request MeasureRequest) (MeasureReply, error)
	// Stats counts what was done since Load.
	Stats(ctx context.Context) (Stats, error)
}

// Builder is an Arm that makes a family itself.
type Builder interface {
	Build(ctx context.Context, memory *Memory, request BuildRequest) (BuildReply, error)
}

// Recorder is an Arm that records a step on the given inputs.
type Recorder interface {
	Record(ctx context.Context, memory *Memory, inputs Bank) (RecordReply, error)
}

// Exporter is an Arm that hands out what Build or Record made. The region has exactly the length that was announced.
type Exporter interface {
	Export(ctx context.Context, memory *Memory, request ExportRequest) error
}

// Processor is an Arm that does what lies around steps, in stages of its own.
type Processor interface {
	Process(ctx context.Context, memory *Memory, request ProcessRequest) (ProcessReply, error)
}

// Closer is an Arm that wants to free things at a graceful end. There is no call when the host died.
type Closer interface {
	Close() error
}

// Unimplemented answers every call with ErrUnimplemented. Embed it, so that methods which later versions add break nothing.
type Unimplemented struct{}

func unimplemented(call string) error {
	return refuse(ErrUnimplemented, diag.Problem{Reason: "UNIMPLEMENTED", Summary: "this plugin has no " + call})
}

func (Unimplemented) Describe(context.Context) (Description, error) {
	return Description{}, unimplemented("Describe")
}

func (Unimplemented) Load(context.Context, *Memory, LoadRequest) (LoadReply, error) {
	return LoadReply{}, unimplemented("Load")
}

func (Unimplemented) Prepare(context.Context, *Memory, PrepareRequest) (PrepareReply, error) {
	return PrepareReply{}, unimplemented("Prepare")
}

func (Unimplemented) Step(int, int) error { return unimplemented("Step") }

func (Unimplemented) Disturb(context.Context, DisturbRequest) error { return unimplemented("Disturb") }

func (Unimplemented) Situate(_ context.Context, request SituateRequest) (SituateReply, error) {
	return SituateReply{}, UnknownSituation(request.Situation)
}

// UnknownSituation is the error of an arm that is asked for a situation it does not know. The gate for it is then skipped.
func UnknownSituation(situation string) error {
	return refuse(ErrUnimplemented, diag.Problem{Reason: "UNKNOWN_SITUATION", Summary: "this arm knows no situation " + strconv.Quote(situation)})
}

func (Unimplemented) Trace(context.Context, *Memory, TraceRequest) (TraceReply, error) {
	return TraceReply{}, unimplemented("Trace")
}

func (Unimplemented) Measure(context.Context, MeasureRequest) (MeasureReply, error) {
	return MeasureReply{}, unimplemented("Measure")
}

func (Unimplemented) Stats(context.Context) (Stats, error) { return Stats{}, unimplemented("Stats") }
