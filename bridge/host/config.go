package host

import (
	"path/filepath"
	"time"

	"samebits/bridge/arm"
)

// The types of calls, under one roof. See bridge/arm.
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

// Config says which plugin to start and how to treat it. Only Command is needed.
type Config struct {
	Name    string // in logs and errors; the last element of Command if empty
	Command string // a path, or a name to be found in PATH
	Args    []string
	Dir     string // the plugin's working directory; the host's own if empty

	// Zygote forks the plugin. Command, Args and Dir are then those that the zygote was started with, and only looked at.
	Zygote *Zygote

	// Env holds KEY=VALUE pairs that the plugin gets besides the variables of AllowedEnv. Nothing else reaches it.
	Env []string

	StartDeadline time.Duration // from the start of the process to its first Describe; 2 min: a Python plugin imports torch
	StopDeadline  time.Duration // for a graceful end, then it is killed; 2 s, go-plugin grants no more
	Deadlines     Deadlines     // for each kind of call

	// Log takes every line that the plugin writes. It is never called by two goroutines at once, and must not wait for a
	// call on the plugin. Nil drops the lines; the last KeepLines (40) stay for errors all the same.
	Log       func(Line)
	KeepLines int

	HostVersion string // told to the plugin
}

// Deadlines of the calls. One that runs out means that the plugin hangs: it is killed. Zero stands for the default.
type Deadlines struct {
	Ping     time.Duration // 10 s
	Describe time.Duration // 2 min
	Attach   time.Duration // 10 s
	Build    time.Duration // 10 min
	Record   time.Duration // 10 min
	Export   time.Duration // 2 min
	Load     time.Duration // 10 min: kernels are compiled here
	Prepare  time.Duration // 10 min
	Step     time.Duration // 5 min
	Disturb  time.Duration // 2 min
	Situate  time.Duration // 10 min: it may capture
	Trace    time.Duration // 20 min
	Measure  time.Duration // 20 min
	Stats    time.Duration // 10 s
	Process  time.Duration // 10 min
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = filepath.Base(c.Command)
	}
	if c.KeepLines <= 0 {
		c.KeepLines = 40
	}
	d := &c.Deadlines
	for _, f := range []struct {
		field  *time.Duration
		normal time.Duration
	}{
		{&c.StartDeadline, 2 * time.Minute}, {&c.StopDeadline, 2 * time.Second},
		{&d.Ping, 10 * time.Second}, {&d.Describe, 2 * time.Minute}, {&d.Attach, 10 * time.Second},
		{&d.Build, 10 * time.Minute}, {&d.Record, 10 * time.Minute}, {&d.Export, 2 * time.Minute},
		{&d.Load, 10 * time.Minute}, {&d.Prepare, 10 * time.Minute}, {&d.Step, 5 * time.Minute},
		{&d.Disturb, 2 * time.Minute}, {&d.Situate, 10 * time.Minute}, {&d.Trace, 20 * time.Minute}, {&d.Measure, 20 * time.Minute},
		{&d.Stats, 10 * time.Second}, {&d.Process, 10 * time.Minute},
	} {
		if *f.field <= 0 {
			*f.field = f.normal
		}
	}
	return c
}
