package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// handshakeVersion is the version of what go-plugin calls the protocol: how a plugin is started and found. The wire
// protocol (arm.Protocol) is asked for by Describe.
const handshakeVersion = 1

// explainStart says why a plugin did not start, from what it printed and how it ended rather than from go-plugin's error.
func (p *Plugin) explainStart(caller, within context.Context, err error) *Error {
	e := &Error{During: "start", cause: err}
	var known *Error
	var refused *CallError
	switch {
	case caller.Err() != nil:
		e.Reason, e.Summary, e.cause = ReasonInterrupted, "its start was interrupted", caller.Err()
	case errors.Is(within.Err(), context.DeadlineExceeded):
		e.Reason, e.Summary = ReasonStartDeadline, fmt.Sprintf("did not answer within %v", p.config.StartDeadline)
	case !p.process.started():
		e.Reason, e.Summary = ReasonStart, "the system refused to start it: "+err.Error()
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		e.Reason, e.Summary = ReasonDescribe, "cannot describe itself: "+refused.Problems.Error()
	default:
		p.explainOutput(e)
	}
	return p.kill(e)
}

// explainOutput looks at the line where the handshake belongs.
func (p *Plugin) explainOutput(e *Error) {
	_ = p.process.Kill(context.Background()) // go-plugin did so already, unless the connection itself was refused
	<-p.process.done.Done()
	exit, _ := p.process.ended()
	byItself := exit.Signal != syscall.SIGKILL
	if byItself {
		e.Exit = &exit
	}
	select {
	case line := <-p.process.first:
		e.Reason = ReasonHandshake
		e.Summary, e.Detail = readHandshake(line)
		if e.Summary == "" { // a good line: something later failed
			e.Reason, e.Summary = ReasonConnection, fmt.Sprintf("cannot be reached: %v", e.cause)
		} else if e.Detail == "" {
			e.Reason = ReasonProtocol
		}
		if byItself {
			e.Summary += ", then ended: " + exit.String()
		}
	default:
		e.Reason, e.Summary = ReasonExited, "ended before it said anything: "+exit.String()
		if exit.Code == 0 {
			e.Detail = "is it a plugin at all?"
		}
	}
}

// readHandshake says what is wrong with a line like "1|1|unix|/tmp/...|grpc|": nothing, another version (no detail), or
// everything.
func readHandshake(line string) (summary, detail string) {
	fields := strings.Split(line, "|")
	if len(fields) >= 5 {
		core, coreErr := strconv.Atoi(fields[0])
		version, versionErr := strconv.Atoi(fields[1])
		switch {
		case coreErr != nil || versionErr != nil:
		case core != 1 || version != handshakeVersion:
			return fmt.Sprintf("speaks handshake %d.%d, this host speaks 1.%d", core, version, handshakeVersion), ""
		default:
			return "", ""
		}
	}
	const longest = 120
	if line = printable(line); len(line) > longest {
		line = strings.ToValidUTF8(line[:longest], "") + "…"
	}
	return fmt.Sprintf("printed %q on its standard output, where the handshake line belongs", line),
		"a plugin prints nothing there before it serves; logs go to standard error"
}
