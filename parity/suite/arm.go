package suite

import (
	"context"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// Arm is one way to run a step, in a process of its own. A *host.Plugin is one, with its memory's methods beside its own.
type Arm interface {
	Describe(ctx context.Context) (arm.Description, error)
	Build(ctx context.Context, request arm.BuildRequest) (arm.BuildReply, error)
	Record(ctx context.Context, inputs arm.Bank) (arm.RecordReply, error)
	Export(ctx context.Context, request arm.ExportRequest) error
	Load(ctx context.Context, request arm.LoadRequest) (arm.LoadReply, error)
	Prepare(ctx context.Context, request arm.PrepareRequest) (arm.PrepareReply, error)
	Step(ctx context.Context, input, output int) error
	Disturb(ctx context.Context, request arm.DisturbRequest) error
	Situate(ctx context.Context, request arm.SituateRequest) (arm.SituateReply, error)
	Trace(ctx context.Context, request arm.TraceRequest) (arm.TraceReply, error)
	Measure(ctx context.Context, request arm.MeasureRequest) (arm.MeasureReply, error)
	Stats(ctx context.Context) (arm.Stats, error)
	Process(ctx context.Context, request arm.ProcessRequest) (arm.ProcessReply, error)

	// Alloc and AllocBank give places in memory that the process shares.
	Alloc(ctx context.Context, bytes int64) (arm.Region, []byte, error)
	AllocBank(ctx context.Context, specs []tensor.Spec) (arm.Bank, [][]byte, error)
	// Stop ends the process. It may be called again.
	Stop()
}

// Starter starts a fresh process for an arm.
type Starter interface {
	// Reference starts the plugin that builds families in PyTorch.
	Reference(ctx context.Context) (Arm, error)
	// Native starts the plugin around the native engine. The settings are what the reference says of its environment, so
	// that native can open the very libraries that the reference uses.
	Native(ctx context.Context, reference []recording.Setting) (Arm, error)
	// NativeTrainer starts the native engine's plugin for training in the same way.
	NativeTrainer(ctx context.Context, reference []recording.Setting) (Arm, error)
}

// Compiling is a Starter whose native engine may keep what it compiles in a folder of its own. The suite gives one process an
// empty folder, so that what was compiled before cannot hide.
type Compiling interface {
	NativeIn(ctx context.Context, cache string, reference []recording.Setting) (Arm, error)
}

// FromScratch is a Starter whose Reference may give forks of one process. Its other processes have nothing in common with
// those: the suite takes one for the second run of the eager reference, so that what forks share cannot hide.
type FromScratch interface {
	ReferenceFromScratch(ctx context.Context) (Arm, error)
}
