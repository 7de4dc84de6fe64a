package host

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	goplugin "github.com/hashicorp/go-plugin"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/proto/convert"
	pb "samebits/bridge/proto/samebitsv1"
	"samebits/bridge/tensor"
)

// Ping asks whether the plugin answers.
func (p *Plugin) Ping(ctx context.Context) error {
	reply, err := call(ctx, p, "Ping", p.config.Deadlines.Ping, grpc_health_v1.NewHealthClient(p.conn).Check,
		&grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	if err == nil && reply.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return p.refused("Ping", codes.Unavailable, diag.Problems{{Reason: "PLUGIN_NOT_SERVING", Summary: "its health is " + reply.GetStatus().String()}})
	}
	return err
}

// Describe asks what the plugin is. Start has asked already: see Description.
func (p *Plugin) Describe(ctx context.Context) (Description, error) {
	reply, err := call(ctx, p, "Describe", p.config.Deadlines.Describe, p.arm.Describe,
		&pb.DescribeRequest{Protocol: arm.Protocol, HostVersion: p.config.HostVersion})
	return convert.DescriptionFrom(reply), err
}

func (p *Plugin) attach(ctx context.Context, region Region) error {
	_, err := call(ctx, p, "Attach", p.config.Deadlines.Attach, p.arm.Attach, &pb.AttachRequest{Region: convert.Region(region)})
	return err
}

// Build makes a family from its name and seed (reference plugins).
func (p *Plugin) Build(ctx context.Context, request BuildRequest) (BuildReply, error) {
	wire, err := call(ctx, p, "Build", p.config.Deadlines.Build, p.arm.Build, convert.Build(request))
	reply := convert.BuildReplyFrom(wire)
	return reply, p.checked("Build", err, reply.Inputs)
}

// Record runs one eager step on a bank of inputs and records it (reference plugins, after Build).
func (p *Plugin) Record(ctx context.Context, inputs Bank) (RecordReply, error) {
	wire, err := call(ctx, p, "Record", p.config.Deadlines.Record, p.arm.Record, &pb.RecordRequest{Inputs: convert.Bank(inputs)})
	reply := convert.RecordReplyFrom(wire)
	return reply, p.checked("Record", err, reply.Outputs)
}

// Export copies a result of Build or Record into the shared memory.
func (p *Plugin) Export(ctx context.Context, request ExportRequest) error {
	_, err := call(ctx, p, "Export", p.config.Deadlines.Export, p.arm.Export, convert.Export(request))
	return err
}

// Load hands over a recording and weights, or weights alone after Build.
func (p *Plugin) Load(ctx context.Context, request LoadRequest) (LoadReply, error) {
	wire, err := call(ctx, p, "Load", p.config.Deadlines.Load, p.arm.Load, convert.Load(request))
	reply := convert.LoadReplyFrom(wire)
	return reply, p.checked("Load", err, reply.Inputs, reply.Outputs)
}

// Prepare fixes the banks that Step names, and captures if a graph is asked for.
func (p *Plugin) Prepare(ctx context.Context, request PrepareRequest) (PrepareReply, error) {
	reply, err := call(ctx, p, "Prepare", p.config.Deadlines.Prepare, p.arm.Prepare, convert.Prepare(request))
	return convert.PrepareReplyFrom(reply), err
}

// Disturb poisons outputs and churns memory.
func (p *Plugin) Disturb(ctx context.Context, request DisturbRequest) error {
	_, err := call(ctx, p, "Disturb", p.config.Deadlines.Disturb, p.arm.Disturb, convert.Disturb(request))
	return err
}

// Situate puts the arm into a situation, after Prepare. errors.Is(err, arm.ErrUnimplemented): it does not know that one.
func (p *Plugin) Situate(ctx context.Context, request SituateRequest) (SituateReply, error) {
	reply, err := call(ctx, p, "Situate", p.config.Deadlines.Situate, p.arm.Situate, convert.Situate(request))
	return convert.SituateReplyFrom(reply), err
}

// Trace runs one eager step and gives the digest of every result of every operation.
func (p *Plugin) Trace(ctx context.Context, request TraceRequest) (TraceReply, error) {
	wire, err := call(ctx, p, "Trace", p.config.Deadlines.Trace, p.arm.Trace, convert.Trace(request))
	reply := convert.TraceReplyFrom(wire)
	if request.Want == nil {
		return reply, err
	}
	return reply, p.checked("Trace", err, []tensor.Spec{reply.Wanted})
}

// Measure times steps inside the plugin.
func (p *Plugin) Measure(ctx context.Context, request MeasureRequest) (MeasureReply, error) {
	reply, err := call(ctx, p, "Measure", p.config.Deadlines.Measure, p.arm.Measure, convert.Measure(request))
	return convert.MeasureReplyFrom(reply), err
}

// Stats counts what the arm did since Load.
func (p *Plugin) Stats(ctx context.Context) (Stats, error) {
	reply, err := call(ctx, p, "Stats", p.config.Deadlines.Stats, p.arm.Stats, &pb.StatsRequest{})
	return convert.StatsFrom(reply), err
}

// Process does a stage of what lies around steps.
func (p *Plugin) Process(ctx context.Context, request ProcessRequest) (ProcessReply, error) {
	wire, err := call(ctx, p, "Process", p.config.Deadlines.Process, p.arm.Process, convert.Process(request))
	reply := convert.ProcessReplyFrom(wire)
	return reply, p.checked("Process", err, reply.Tensors)
}

// call makes one call with its deadline and turns what went wrong into our errors.
func call[Request, Reply any](ctx context.Context, p *Plugin, name string, deadline time.Duration,
	method func(context.Context, Request, ...grpc.CallOption) (Reply, error), request Request) (Reply, error) {
	var none Reply
	if err := p.gone(); err != nil {
		return none, err
	}
	within, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	defer context.AfterFunc(p.process.done, cancel)() // a dead plugin answers nothing
	var trailer metadata.MD
	reply, err := method(within, request, grpc.Trailer(&trailer))
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return none, fmt.Errorf("plugin %s: %s: %w", p.config.Name, name, ctx.Err())
	case within.Err() == context.DeadlineExceeded, status.Code(err) == codes.DeadlineExceeded: // the plugin's clock may be first
		return none, p.hung(name, deadline)
	}
	if s := status.Convert(err); s.Code() != codes.Unavailable && within.Err() == nil {
		return none, p.refused(name, s.Code(), problemsOf(s, trailer))
	}
	return none, p.lost(name, err)
}

// problemsOf reads the problems beside a status; a status without them is a problem itself.
func problemsOf(s *status.Status, trailer metadata.MD) diag.Problems {
	for _, value := range trailer.Get(convert.ProblemsKey) {
		if problems, err := convert.DecodeProblems([]byte(value)); err == nil && len(problems) > 0 {
			return problems
		}
	}
	return diag.Problems{{Reason: "PLUGIN_ERROR", Summary: s.Message(), Detail: "status " + s.Code().String()}}
}

// checked refuses replies whose tensors could not be: everything after trusts their sizes.
func (p *Plugin) checked(name string, err error, lists ...[]tensor.Spec) error {
	if err != nil {
		return err
	}
	var problems diag.Problems
	for _, list := range lists {
		for _, spec := range list {
			if _, err := convert.SpecBytes(spec); err != nil {
				problems.Add("PLUGIN_REPLY", spec.Name, "the plugin answered with a tensor that cannot be: %v", err)
			}
		}
	}
	if len(problems) > 0 {
		return p.refused(name, codes.Internal, problems)
	}
	return nil
}
