package convert

import (
	"bytes"
	"slices"
	"strings"

	"samebits/bridge/arm"
	pb "samebits/bridge/proto/samebitsv1"
)

// Description converts to the wire.
func Description(d arm.Description) *pb.DescribeReply {
	return &pb.DescribeReply{Protocol: d.Protocol, Plugin: valid(d.Plugin), Version: valid(d.Version),
		Arms: each(d.Arms, valid), Devices: each(d.Devices, valid), Environment: each(d.Environment, setting)}
}

// DescriptionFrom converts from the wire.
func DescriptionFrom(d *pb.DescribeReply) arm.Description {
	return arm.Description{Protocol: d.GetProtocol(), Plugin: d.GetPlugin(), Version: d.GetVersion(),
		Arms: slices.Clone(d.GetArms()), Devices: slices.Clone(d.GetDevices()), Environment: each(d.GetEnvironment(), settingFrom)}
}

// BuildReply converts to the wire.
func BuildReply(r arm.BuildReply) *pb.BuildReply {
	return &pb.BuildReply{Inputs: each(r.Inputs, spec), WeightsLength: unsigned(r.WeightsLength), Task: valid(r.Task),
		Size: valid(r.Size), Imgsz: r.ImgSize, Outputs: each(r.Outputs, spec),
		CheckpointLength: unsigned(r.CheckpointLength), Segment: valid(r.Segment), Rest: r.Rest, Others: each(r.Others, other)}
}

// BuildReplyFrom converts from the wire.
func BuildReplyFrom(r *pb.BuildReply) arm.BuildReply {
	return arm.BuildReply{Inputs: each(r.GetInputs(), specFrom), WeightsLength: signed(r.GetWeightsLength()),
		Task: r.GetTask(), Size: r.GetSize(), ImgSize: r.GetImgsz(), Outputs: each(r.GetOutputs(), specFrom),
		CheckpointLength: signed(r.GetCheckpointLength()), Segment: r.GetSegment(), Rest: r.GetRest(), Others: each(r.GetOthers(), otherFrom)}
}

func other(o arm.Other) *pb.Other { return &pb.Other{Family: valid(o.Family), Imgsz: o.ImgSize} }

func otherFrom(o *pb.Other) arm.Other { return arm.Other{Family: o.GetFamily(), ImgSize: o.GetImgsz()} }

// RecordReply converts to the wire.
func RecordReply(r arm.RecordReply) *pb.RecordReply {
	return &pb.RecordReply{RecordingLength: unsigned(r.RecordingLength), WeightsLength: unsigned(r.WeightsLength),
		Outputs: each(r.Outputs, spec)}
}

// RecordReplyFrom converts from the wire.
func RecordReplyFrom(r *pb.RecordReply) arm.RecordReply {
	return arm.RecordReply{RecordingLength: signed(r.GetRecordingLength()), WeightsLength: signed(r.GetWeightsLength()),
		Outputs: each(r.GetOutputs(), specFrom)}
}

// LoadReply converts to the wire.
func LoadReply(r arm.LoadReply) *pb.LoadReply {
	return &pb.LoadReply{Inputs: each(r.Inputs, spec), Outputs: each(r.Outputs, spec), RecordingDigest: valid(r.RecordingDigest),
		ArenaBytes: unsigned(r.ArenaBytes), PeakBytes: unsigned(r.PeakBytes), CheckpointLength: unsigned(r.CheckpointLength),
		Launches: launches(r.Launches)}
}

func launches(l arm.LaunchList) *pb.LaunchList {
	if len(l.Kind) == 0 {
		return nil
	}
	return &pb.LaunchList{Kinds: each(l.Kinds, valid), Kind: l.Kind, Lane: l.Lane}
}

func launchesFrom(l *pb.LaunchList) arm.LaunchList {
	return arm.LaunchList{Kinds: slices.Clone(l.GetKinds()), Kind: bytes.Clone(l.GetKind()), Lane: bytes.Clone(l.GetLane())}
}

// LoadReplyFrom converts from the wire.
func LoadReplyFrom(r *pb.LoadReply) arm.LoadReply {
	return arm.LoadReply{Inputs: each(r.GetInputs(), specFrom), Outputs: each(r.GetOutputs(), specFrom),
		RecordingDigest: r.GetRecordingDigest(), ArenaBytes: signed(r.GetArenaBytes()), PeakBytes: signed(r.GetPeakBytes()),
		CheckpointLength: signed(r.GetCheckpointLength()), Launches: launchesFrom(r.GetLaunches())}
}

// PrepareReply converts to the wire.
func PrepareReply(r arm.PrepareReply) *pb.PrepareReply {
	return &pb.PrepareReply{Captured: r.Captured, Nodes: unsigned(r.Nodes), PeakBytes: unsigned(r.PeakBytes)}
}

// PrepareReplyFrom converts from the wire.
func PrepareReplyFrom(r *pb.PrepareReply) arm.PrepareReply {
	return arm.PrepareReply{Captured: r.GetCaptured(), Nodes: signed(r.GetNodes()), PeakBytes: signed(r.GetPeakBytes())}
}

// SituateReply converts to the wire.
func SituateReply(r arm.SituateReply) *pb.SituateReply {
	return &pb.SituateReply{Facts: each(r.Facts, setting)}
}

// SituateReplyFrom converts from the wire.
func SituateReplyFrom(r *pb.SituateReply) arm.SituateReply {
	return arm.SituateReply{Facts: each(r.GetFacts(), settingFrom)}
}

// ProcessReply converts to the wire.
func ProcessReply(r arm.ProcessReply) *pb.ProcessReply {
	return &pb.ProcessReply{Tensors: each(r.Tensors, spec), Text: valid(r.Text)}
}

// ProcessReplyFrom converts from the wire.
func ProcessReplyFrom(r *pb.ProcessReply) arm.ProcessReply {
	return arm.ProcessReply{Tensors: each(r.GetTensors(), specFrom), Text: r.GetText()}
}

// TraceReply converts to the wire.
func TraceReply(r arm.TraceReply) *pb.TraceReply {
	return &pb.TraceReply{
		Operations: each(r.Operations, func(o arm.OperationTrace) *pb.OperationTrace {
			return &pb.OperationTrace{Operation: index(o.Operation), Digests: each(o.Digests, valid)}
		}),
		Wanted: spec(r.Wanted),
	}
}

// TraceReplyFrom converts from the wire.
func TraceReplyFrom(r *pb.TraceReply) arm.TraceReply {
	return arm.TraceReply{
		Operations: each(r.GetOperations(), func(o *pb.OperationTrace) arm.OperationTrace {
			return arm.OperationTrace{Operation: int(o.GetOperation()), Digests: slices.Clone(o.GetDigests())}
		}),
		Wanted: specFrom(r.GetWanted()),
	}
}

// MeasureReply converts to the wire.
func MeasureReply(r arm.MeasureReply) *pb.MeasureReply {
	return &pb.MeasureReply{Milliseconds: r.Milliseconds}
}

// MeasureReplyFrom converts from the wire.
func MeasureReplyFrom(r *pb.MeasureReply) arm.MeasureReply {
	return arm.MeasureReply{Milliseconds: slices.Clone(r.GetMilliseconds())}
}

// Stats converts to the wire.
func Stats(s arm.Stats) *pb.StatsReply {
	return &pb.StatsReply{Captures: unsigned(s.Captures), Replays: unsigned(s.Replays), EagerSteps: unsigned(s.EagerSteps),
		Fallbacks: unsigned(s.Fallbacks), Launches: unsigned(s.Launches), PeakBytes: unsigned(s.PeakBytes),
		FallbackReason: valid(s.FallbackReason), Synchronisations: unsigned(s.Synchronisations), ReservedBytes: unsigned(s.ReservedBytes),
		NodesByKind: eachOf(s.NodesByKind, valid, unsigned), Generator: valid(s.Generator), Invalidations: unsigned(s.Invalidations),
		Latched: s.Latched, AllocatedBytes: unsigned(s.AllocatedBytes)}
}

// StatsFrom converts from the wire.
func StatsFrom(s *pb.StatsReply) arm.Stats {
	return arm.Stats{Captures: signed(s.GetCaptures()), Replays: signed(s.GetReplays()), EagerSteps: signed(s.GetEagerSteps()),
		Fallbacks: signed(s.GetFallbacks()), Launches: signed(s.GetLaunches()), PeakBytes: signed(s.GetPeakBytes()),
		FallbackReason: s.GetFallbackReason(), Synchronisations: signed(s.GetSynchronisations()), ReservedBytes: signed(s.GetReservedBytes()),
		NodesByKind: eachOf(s.GetNodesByKind(), strings.Clone, signed), Generator: s.GetGenerator(), Invalidations: signed(s.GetInvalidations()),
		Latched: s.GetLatched(), AllocatedBytes: signed(s.GetAllocatedBytes())}
}
