package host

import (
	"fmt"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"

	"samebits/bridge/diag"
	"samebits/bridge/proto/convert"
)

// Reasons of an Error. They are stable.
const (
	ReasonMissing       = "PLUGIN_MISSING"        // no such file
	ReasonNotExecutable = "PLUGIN_NOT_EXECUTABLE" // a folder, or its mode forbids
	ReasonArchitecture  = "PLUGIN_ARCHITECTURE"   // made for another machine
	ReasonFormat        = "PLUGIN_FORMAT"         // no program that this system runs
	ReasonInterpreter   = "PLUGIN_INTERPRETER"    // the loader or the interpreter it names is missing
	ReasonStart         = "PLUGIN_START"          // the system refused to start it
	ReasonExited        = "PLUGIN_EXITED"         // ended before it answered
	ReasonHandshake     = "PLUGIN_HANDSHAKE"      // printed something else than the handshake
	ReasonStartDeadline = "PLUGIN_START_DEADLINE" // did not answer in time
	ReasonProtocol      = "PLUGIN_PROTOCOL"       // speaks another version
	ReasonDescribe      = "PLUGIN_DESCRIBE"       // started, but could not say what it is
	ReasonConnection    = "PLUGIN_CONNECTION"     // the connection was refused or broke though it lives
	ReasonCrashed       = "PLUGIN_CRASHED"        // ended by itself
	ReasonHung          = "PLUGIN_HUNG"           // a deadline ran out, so it was killed
	ReasonInterrupted   = "PLUGIN_INTERRUPTED"    // a step was interrupted, so it was killed
	ReasonWire          = "PLUGIN_WIRE"           // broke the rules of the wire, so it was killed
	ReasonStopped       = "PLUGIN_STOPPED"        // Stop was called
)

// Exit says how a process ended.
type Exit struct {
	Code   int            // exit status, or -1 after a signal
	Signal syscall.Signal // or 0
	Core   bool
}

func (e Exit) String() string {
	switch {
	case e.Signal == 0:
		return fmt.Sprintf("exit status %d", e.Code)
	case e.Core:
		return fmt.Sprintf("signal %d (%v), core dumped", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("signal %d (%v)", int(e.Signal), e.Signal)
}

// Error says that a plugin did not start or is gone. diag.Of gives it as a problem.
type Error struct {
	Reason  string
	Plugin  string
	During  string // the call: start, Step, Load
	Summary string // one line
	Detail  string // what to do
	Exit    *Exit  // nil if no process ended by itself
	Log     []string

	cause error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s: %s: %s", e.Plugin, e.Reason, e.Summary)
	if e.During != "" {
		fmt.Fprintf(&b, " (during %s)", e.During)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, "; %s", e.Detail)
	}
	if len(e.Log) > 0 {
		fmt.Fprintf(&b, "\n  its last lines:\n  | %s", strings.Join(e.Log, "\n  | "))
	}
	return b.String()
}

// Unwrap gives the cause, if there was one, and the same as problems.
func (e *Error) Unwrap() []error {
	detail := e.Detail
	if len(e.Log) > 0 {
		detail = strings.TrimPrefix(detail+"; its last lines: "+strings.Join(e.Log, " | "), "; ")
	}
	during := ""
	if e.During != "" {
		during = " (during " + e.During + ")"
	}
	all := []error{diag.Problems{{Reason: e.Reason, Path: "plugin " + e.Plugin, Summary: e.Summary + during, Detail: detail}}}
	if e.cause != nil {
		all = append(all, e.cause)
	}
	return all
}

// CallError says that a plugin refused a call. It goes on serving.
type CallError struct {
	Plugin, Call string
	Code         codes.Code
	Problems     diag.Problems // at least one
}

func (e *CallError) Error() string {
	return fmt.Sprintf("plugin %s: %s: %v", e.Plugin, e.Call, e.Problems)
}

// Unwrap gives the problems, and arm.ErrUnimplemented, arm.ErrWrongOrder or arm.ErrOutOfMemory if it is one of them.
func (e *CallError) Unwrap() []error {
	all := []error{e.Problems}
	if kind := convert.KindOf(e.Code); kind != nil {
		all = append(all, kind)
	}
	return all
}
