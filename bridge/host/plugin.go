package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	goplugin "github.com/hashicorp/go-plugin"

	"samebits/bridge/diag"
	"samebits/bridge/ownfolder"
	pb "samebits/bridge/proto/samebitsv1"
)

// deathTime is how long the end of a process is awaited after its connection broke.
const deathTime = 800 * time.Millisecond

// Plugin is a plugin that runs. Its methods are safe for concurrent use.
type Plugin struct {
	config      Config
	description Description
	journal     *journal
	process     *process
	client      *goplugin.Client
	conn        *grpc.ClientConn
	arm         pb.ArmClient
	memory      *Memory
	sockets     *ownfolder.Folder
	ends        *descriptors

	stepMu   sync.Mutex
	sequence uint64
	stepTime atomic.Int64

	failMu  sync.Mutex
	failure *Error

	stop    sync.Once
	stopErr error
}

// Description is what the plugin said of itself at its start.
func (p *Plugin) Description() Description { return p.description }

// Memory is what the host shares with this plugin.
func (p *Plugin) Memory() *Memory { return p.memory }

// PID is the number of the plugin's process and of its group.
func (p *Plugin) PID() int { return p.process.number() }

// Log gives the last lines that the plugin wrote.
func (p *Plugin) Log() []string { return p.journal.tail() }

// Done is closed when the plugin's process has ended.
func (p *Plugin) Done() <-chan struct{} { return p.process.done.Done() }

// Stop ends the plugin, at first gracefully, and leaves nothing of it behind: no process, no socket, no memory. It may
// be called again, and must be called for a plugin that died, too. Its error says that the plugin had to be killed.
func (p *Plugin) Stop() error {
	p.stop.Do(func() { p.stopErr = p.end() })
	return p.stopErr
}

func (p *Plugin) end() error {
	_, dead := p.process.ended()
	failure := p.fail(&Error{Reason: ReasonStopped, Summary: "was stopped"})
	graceful := !dead && failure.Reason == ReasonStopped
	if !graceful {
		_ = p.process.Kill(context.Background()) // the plugin has a failure already
	}
	ended := make(chan struct{})
	go func() {
		p.client.Kill() // asks first, and without limit if nobody answers
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(p.config.StopDeadline):
		_ = p.process.Kill(context.Background()) // the wait below would show it
		<-ended
	}
	if p.process.started() {
		<-p.process.done.Done()
	}
	var killed error
	if exit, _ := p.process.ended(); graceful && exit.Signal == syscall.SIGKILL {
		killed = &Error{Reason: ReasonHung, Plugin: p.config.Name, During: "Stop", Log: p.journal.tail(),
			Summary: "was killed: it did not end when asked to"}
	}
	p.stepMu.Lock() // a step that ran has seen the end by now
	defer p.stepMu.Unlock()
	return errors.Join(killed, p.release())
}

// release closes what the host holds for a plugin, as far as it was made.
func (p *Plugin) release() error {
	if p.sockets != nil {
		p.sockets.Remove()
	}
	var err error
	if p.ends != nil {
		err = p.ends.close()
	}
	if p.memory != nil {
		err = errors.Join(err, p.memory.close())
	}
	return err
}

// gone says why the plugin can no longer be called, if it cannot.
func (p *Plugin) gone() error {
	p.failMu.Lock()
	failure := p.failure
	p.failMu.Unlock()
	if failure != nil {
		return failure
	}
	if exit, ended := p.process.ended(); ended {
		return p.fail(crashed(exit, ""))
	}
	return nil
}

// fail makes e the reason why the plugin is gone, unless there is one already, and gives the reason.
func (p *Plugin) fail(e *Error) *Error {
	p.failMu.Lock()
	defer p.failMu.Unlock()
	if p.failure == nil {
		e.Plugin, e.Log = p.config.Name, p.journal.tail()
		p.failure = e
	}
	return p.failure
}

// kill ends a plugin that cannot be trusted any more.
func (p *Plugin) kill(e *Error) *Error {
	failure := p.fail(e)
	if err := p.process.Kill(context.Background()); err != nil {
		failure.cause = errors.Join(failure.cause, err)
	}
	return failure
}

func (p *Plugin) hung(call string, deadline time.Duration) *Error {
	return p.kill(&Error{Reason: ReasonHung, During: call, Summary: fmt.Sprintf("was killed: it did not answer within %v", deadline)})
}

// lost explains a broken connection: as a rule the process has ended, or does so in this moment.
func (p *Plugin) lost(call string, err error) *Error {
	select {
	case <-p.process.done.Done():
	case <-time.After(deathTime):
	}
	if exit, ended := p.process.ended(); ended {
		return p.fail(crashed(exit, call))
	}
	return p.kill(&Error{Reason: ReasonConnection, During: call, Summary: fmt.Sprintf("was killed: its connection broke: %v", err), cause: err})
}

func crashed(exit Exit, call string) *Error {
	e := &Error{Reason: ReasonCrashed, During: call, Summary: "ended by itself: " + exit.String(), Exit: &exit}
	if exit.Signal == syscall.SIGKILL {
		e.Detail = "somebody killed it, as the kernel does where the machine, or the container, has no memory left (dmesg says so)"
	}
	return e
}

func (p *Plugin) refused(call string, code codes.Code, problems diag.Problems) error {
	if len(problems) == 0 {
		problems = diag.Problems{{Reason: "PLUGIN_ERROR", Summary: "named no problem"}}
	}
	return &CallError{Plugin: p.config.Name, Call: call, Code: code, Problems: problems}
}
