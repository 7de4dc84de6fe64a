package convert

import (
	"samebits/bridge/arm"
	pb "samebits/bridge/proto/samebitsv1"
)

// RegionFrom reads an AttachRequest.
func RegionFrom(r *pb.AttachRequest) arm.Region { return regionFrom(r.GetRegion()) }

// Build converts to the wire.
func Build(r arm.BuildRequest) *pb.BuildRequest {
	return &pb.BuildRequest{
		Family: valid(r.Family), Size: valid(r.Size), Task: valid(r.Task), Seed: r.Seed, Precision: valid(r.Precision),
		Profile: valid(r.Profile), Device: valid(r.Device), Arm: valid(r.Arm), FreshWeights: r.FreshWeights,
		Imgsz: r.ImgSize, Batch: r.Batch, Mode: valid(r.Mode), ConstructOnly: r.ConstructOnly, WeightsFile: valid(r.WeightsFile),
	}
}

// BuildFrom converts from the wire.
func BuildFrom(r *pb.BuildRequest) arm.BuildRequest {
	return arm.BuildRequest{
		Family: r.GetFamily(), Size: r.GetSize(), Task: r.GetTask(), Seed: r.GetSeed(), Precision: r.GetPrecision(),
		Profile: r.GetProfile(), Device: r.GetDevice(), Arm: r.GetArm(), FreshWeights: r.GetFreshWeights(),
		ImgSize: r.GetImgsz(), Batch: r.GetBatch(), Mode: r.GetMode(), ConstructOnly: r.GetConstructOnly(), WeightsFile: r.GetWeightsFile(),
	}
}

// RecordFrom converts from the wire.
func RecordFrom(r *pb.RecordRequest) arm.Bank { return bankFrom(r.GetInputs()) }

// Export converts to the wire.
func Export(r arm.ExportRequest) *pb.ExportRequest {
	return &pb.ExportRequest{What: pb.ExportRequest_What(r.What), Region: Region(r.Region)}
}

// ExportFrom converts from the wire.
func ExportFrom(r *pb.ExportRequest) arm.ExportRequest {
	what := arm.What(0)
	switch r.GetWhat() {
	case pb.ExportRequest_WHAT_RECORDING:
		what = arm.TheRecording
	case pb.ExportRequest_WHAT_WEIGHTS:
		what = arm.TheWeights
	case pb.ExportRequest_WHAT_CHECKPOINT:
		what = arm.TheCheckpoint
	}
	return arm.ExportRequest{What: what, Region: regionFrom(r.GetRegion())}
}

// Load converts to the wire.
func Load(r arm.LoadRequest) *pb.LoadRequest {
	return &pb.LoadRequest{Recording: Region(r.Recording), Weights: Region(r.Weights), Device: valid(r.Device),
		Arm: valid(r.Arm), Options: each(r.Options, setting), Checkpoint: Region(r.Checkpoint)}
}

// LoadFrom converts from the wire.
func LoadFrom(r *pb.LoadRequest) arm.LoadRequest {
	return arm.LoadRequest{Recording: regionFrom(r.GetRecording()), Weights: regionFrom(r.GetWeights()),
		Device: r.GetDevice(), Arm: r.GetArm(), Options: each(r.GetOptions(), settingFrom),
		Checkpoint: regionFrom(r.GetCheckpoint())}
}

// Prepare converts to the wire.
func Prepare(r arm.PrepareRequest) *pb.PrepareRequest {
	return &pb.PrepareRequest{Inputs: each(r.Inputs, Bank), Outputs: each(r.Outputs, Bank), CudaGraph: r.CUDAGraph}
}

// PrepareFrom converts from the wire.
func PrepareFrom(r *pb.PrepareRequest) arm.PrepareRequest {
	return arm.PrepareRequest{Inputs: each(r.GetInputs(), bankFrom), Outputs: each(r.GetOutputs(), bankFrom),
		CUDAGraph: r.GetCudaGraph()}
}

// Disturb converts to the wire.
func Disturb(r arm.DisturbRequest) *pb.DisturbRequest {
	return &pb.DisturbRequest{PoisonOutputs: r.PoisonOutputs, Churn: r.Churn}
}

// DisturbFrom converts from the wire.
func DisturbFrom(r *pb.DisturbRequest) arm.DisturbRequest {
	return arm.DisturbRequest{PoisonOutputs: r.GetPoisonOutputs(), Churn: r.GetChurn()}
}

// Situate converts to the wire.
func Situate(r arm.SituateRequest) *pb.SituateRequest {
	return &pb.SituateRequest{Situation: valid(r.Situation), Seed: r.Seed}
}

// SituateFrom converts from the wire.
func SituateFrom(r *pb.SituateRequest) arm.SituateRequest {
	return arm.SituateRequest{Situation: r.GetSituation(), Seed: r.GetSeed()}
}

// Trace converts to the wire.
func Trace(r arm.TraceRequest) *pb.TraceRequest {
	out := &pb.TraceRequest{InputBank: index(r.InputBank)}
	if w := r.Want; w != nil {
		out.Want, out.Operation, out.Result, out.Region = true, index(w.Operation), index(w.Result), Region(w.Region)
	}
	return out
}

// TraceFrom converts from the wire.
func TraceFrom(r *pb.TraceRequest) arm.TraceRequest {
	out := arm.TraceRequest{InputBank: int(r.GetInputBank())}
	if r.GetWant() {
		out.Want = &arm.Wanted{Operation: int(r.GetOperation()), Result: int(r.GetResult()), Region: regionFrom(r.GetRegion())}
	}
	return out
}

// Process converts to the wire.
func Process(r arm.ProcessRequest) *pb.ProcessRequest {
	return &pb.ProcessRequest{Stage: valid(r.Stage), Settings: each(r.Settings, setting), Bank: Bank(r.Bank)}
}

// ProcessFrom converts from the wire.
func ProcessFrom(r *pb.ProcessRequest) arm.ProcessRequest {
	return arm.ProcessRequest{Stage: r.GetStage(), Settings: each(r.GetSettings(), settingFrom), Bank: bankFrom(r.GetBank())}
}

// Measure converts to the wire.
func Measure(r arm.MeasureRequest) *pb.MeasureRequest {
	return &pb.MeasureRequest{InputBank: index(r.InputBank), Warmup: index(r.Warmup), Iterations: index(r.Iterations)}
}

// MeasureFrom converts from the wire.
func MeasureFrom(r *pb.MeasureRequest) arm.MeasureRequest {
	return arm.MeasureRequest{InputBank: int(r.GetInputBank()), Warmup: int(r.GetWarmup()), Iterations: int(r.GetIterations())}
}
