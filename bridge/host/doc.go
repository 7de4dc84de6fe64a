// Package host starts plugins, watches them and stops them. A plugin is a process of its own that serves one arm: its
// calls go by gRPC over a Unix socket, its steps by a byte on a socket pair, its tensors through shared memory.
//
//	p, err := host.Start(ctx, host.Config{Command: "bin/samebits-predictor"})
//	defer p.Stop()
//
//	weights, bytes, err := p.Memory().Alloc(ctx, n)        // the plugin sees it too
//	copy(bytes, safetensors)
//	loaded, err := p.Load(ctx, host.LoadRequest{Recording: r, Weights: weights, Device: "host", Arm: arm.NativeEager})
//	inputs, _, err := p.Memory().AllocBank(ctx, loaded.Inputs)
//	outputs, data, err := p.Memory().AllocBank(ctx, loaded.Outputs)
//	prepared, err := p.Prepare(ctx, host.PrepareRequest{Inputs: []host.Bank{inputs}, Outputs: []host.Bank{outputs}})
//	err = p.Step(ctx, 0, 0)                                // data[i] now holds output i
//
// # Calls
//
// Describe, Build, Record, Export, Load, Prepare, Disturb, Situate, Trace, Measure, Stats, Process, Ping and Step take a context
// and have a deadline each (Config.Deadlines). They are safe for concurrent use; the plugin runs one at a time.
//
// Interrupting a call by its context returns at once and leaves the plugin alive, though it may still be busy.
// Interrupting a Step kills the plugin: nobody could tell what its banks hold.
//
// # Errors
//
// A refusal is a *CallError: diag.Of finds its problems, errors.Is(err, arm.ErrUnimplemented), arm.ErrWrongOrder and
// arm.ErrOutOfMemory tell the kind. The plugin goes on serving.
//
// A plugin that did not start, died, hung or broke the wire gives an *Error with a stable Reason (PLUGIN_MISSING,
// PLUGIN_CRASHED, PLUGIN_HUNG, ...), its exit status and its last log lines; diag.Of gives the same as a problem. Such
// a plugin is gone: every later call answers at once with the same *Error. Call Stop all the same.
//
// # Memory
//
// Slices from Memory stay valid while the memory grows, until Stop unmaps them: copy what outlives the plugin. Reset
// makes all of it free again; it is meant for the time after Load, when the weights are no longer needed there.
package host
