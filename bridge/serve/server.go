package serve

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/proto/convert"
	pb "samebits/bridge/proto/samebitsv1"
)

// server is the gRPC side: it brings every call to the arm's thread and its errors to the host.
type server struct {
	pb.UnimplementedArmServer
	arm    Arm
	memory *Memory
	loop   *loop
}

// answer runs a call on the arm's thread.
func answer[Reply, Wire any](ctx context.Context, s *server, toWire func(Reply) *Wire, call func() (Reply, error)) (*Wire, error) {
	// The call may run on after its caller has gone, so what it writes is its own.
	reply := new(Reply)
	err := s.loop.do(ctx, func() (err error) {
		*reply, err = call()
		return err
	})
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return toWire(*reply), nil
}

// fail makes the gRPC error, with its problems in the trailer.
func (s *server) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return status.FromContextError(err).Err()
	}
	code, problems := explain(err)
	data := convert.EncodeProblems(problems, convert.MaxTrailer)
	if err := grpc.SetTrailer(ctx, metadata.Pairs(convert.ProblemsKey, string(data))); err != nil {
		Logger().Warn("problems of a call could not be sent", "error", err)
	}
	return status.Error(code, problems[0].Reason)
}

func (s *server) Describe(ctx context.Context, _ *pb.DescribeRequest) (*pb.DescribeReply, error) {
	return answer(ctx, s, convert.Description, func() (Description, error) {
		d, err := s.arm.Describe(ctx)
		d.Protocol = arm.Protocol
		return d, err
	})
}

// Attach needs no arm: the memory may grow while a step runs.
func (s *server) Attach(ctx context.Context, r *pb.AttachRequest) (*pb.AttachReply, error) {
	if err := s.memory.attach(convert.RegionFrom(r)); err != nil {
		return nil, s.fail(ctx, err)
	}
	return &pb.AttachReply{}, nil
}

func (s *server) Build(ctx context.Context, r *pb.BuildRequest) (*pb.BuildReply, error) {
	return answer(ctx, s, convert.BuildReply, func() (BuildReply, error) {
		if builder, ok := s.arm.(Builder); ok {
			return builder.Build(ctx, s.memory, convert.BuildFrom(r))
		}
		return BuildReply{}, unimplemented("Build")
	})
}

func (s *server) Record(ctx context.Context, r *pb.RecordRequest) (*pb.RecordReply, error) {
	return answer(ctx, s, convert.RecordReply, func() (RecordReply, error) {
		recorder, ok := s.arm.(Recorder)
		if !ok {
			return RecordReply{}, unimplemented("Record")
		}
		inputs := convert.RecordFrom(r)
		var problems diag.Problems
		s.checkBank(&problems, "inputs", inputs)
		if err := problems.Err(); err != nil {
			return RecordReply{}, err
		}
		return recorder.Record(ctx, s.memory, inputs)
	})
}

func (s *server) Export(ctx context.Context, r *pb.ExportRequest) (*pb.ExportReply, error) {
	return answer(ctx, s, func(struct{}) *pb.ExportReply { return &pb.ExportReply{} }, func() (struct{}, error) {
		if exporter, ok := s.arm.(Exporter); ok {
			return struct{}{}, exporter.Export(ctx, s.memory, convert.ExportFrom(r))
		}
		return struct{}{}, unimplemented("Export")
	})
}

func (s *server) Load(ctx context.Context, r *pb.LoadRequest) (*pb.LoadReply, error) {
	return answer(ctx, s, convert.LoadReply, func() (LoadReply, error) {
		s.loop.inputs, s.loop.outputs = 0, 0 // the banks belonged to what was loaded before
		return s.arm.Load(ctx, s.memory, convert.LoadFrom(r))
	})
}

func (s *server) Prepare(ctx context.Context, r *pb.PrepareRequest) (*pb.PrepareReply, error) {
	return answer(ctx, s, convert.PrepareReply, func() (PrepareReply, error) {
		s.loop.inputs, s.loop.outputs = 0, 0
		request := convert.PrepareFrom(r)
		if err := s.checkBanks(request); err != nil {
			return PrepareReply{}, err
		}
		reply, err := s.arm.Prepare(ctx, s.memory, request)
		if err == nil {
			s.loop.inputs, s.loop.outputs = len(request.Inputs), len(request.Outputs)
		}
		return reply, err
	})
}

func (s *server) checkBanks(request PrepareRequest) error {
	var problems diag.Problems
	if len(request.Inputs) == 0 || len(request.Outputs) == 0 {
		problems.Add("BANK", "", "Prepare needs a bank of inputs and one of outputs, it has %d and %d", len(request.Inputs), len(request.Outputs))
	}
	for i, bank := range request.Inputs {
		s.checkBank(&problems, fmt.Sprintf("inputs[%d]", i), bank)
	}
	for i, bank := range request.Outputs {
		s.checkBank(&problems, fmt.Sprintf("outputs[%d]", i), bank)
	}
	return problems.Err()
}

// checkBank sees that every tensor of a bank has a place of its size.
func (s *server) checkBank(problems *diag.Problems, path string, bank Bank) {
	for _, t := range bank {
		_, err := s.memory.Tensor(t)
		found, _ := diag.Of(err)
		for _, p := range found {
			problems.Add(p.Reason, path+"/"+t.Name, "%s", p.Summary)
		}
	}
}

func (s *server) Disturb(ctx context.Context, r *pb.DisturbRequest) (*pb.DisturbReply, error) {
	return answer(ctx, s, func(struct{}) *pb.DisturbReply { return &pb.DisturbReply{} }, func() (struct{}, error) {
		return struct{}{}, s.arm.Disturb(ctx, convert.DisturbFrom(r))
	})
}

func (s *server) Situate(ctx context.Context, r *pb.SituateRequest) (*pb.SituateReply, error) {
	return answer(ctx, s, convert.SituateReply, func() (SituateReply, error) {
		if s.loop.inputs == 0 {
			return SituateReply{}, refuse(ErrWrongOrder, diag.Problem{Reason: "WRONG_ORDER", Summary: "Situate comes after Prepare"})
		}
		return s.arm.Situate(ctx, convert.SituateFrom(r))
	})
}

func (s *server) Trace(ctx context.Context, r *pb.TraceRequest) (*pb.TraceReply, error) {
	return answer(ctx, s, convert.TraceReply, func() (TraceReply, error) {
		if err := s.loop.checkBank(r.GetInputBank(), s.loop.inputs, "input"); err != nil {
			return TraceReply{}, err
		}
		return s.arm.Trace(ctx, s.memory, convert.TraceFrom(r))
	})
}

func (s *server) Measure(ctx context.Context, r *pb.MeasureRequest) (*pb.MeasureReply, error) {
	return answer(ctx, s, convert.MeasureReply, func() (MeasureReply, error) {
		if err := s.loop.checkBank(r.GetInputBank(), s.loop.inputs, "input"); err != nil {
			return MeasureReply{}, err
		}
		return s.arm.Measure(ctx, convert.MeasureFrom(r))
	})
}

func (s *server) Process(ctx context.Context, r *pb.ProcessRequest) (*pb.ProcessReply, error) {
	return answer(ctx, s, convert.ProcessReply, func() (ProcessReply, error) {
		processor, ok := s.arm.(Processor)
		if !ok {
			return ProcessReply{}, unimplemented("Process")
		}
		request := convert.ProcessFrom(r)
		var problems diag.Problems
		s.checkBank(&problems, "bank", request.Bank)
		if err := problems.Err(); err != nil {
			return ProcessReply{}, err
		}
		return processor.Process(ctx, s.memory, request)
	})
}

func (s *server) Stats(ctx context.Context, _ *pb.StatsRequest) (*pb.StatsReply, error) {
	return answer(ctx, s, convert.Stats, func() (Stats, error) { return s.arm.Stats(ctx) })
}
