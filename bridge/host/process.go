package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// drainTime is how long lines are awaited from descendants that still hold a dead plugin's output.
const drainTime = 200 * time.Millisecond

// process is a plugin's process and its output. It is go-plugin's runner.Runner: go-plugin sees the handshake line and
// nothing else, for its own reader stops for good at a line longer than 64 KiB and then the plugin blocks.
type process struct {
	program program
	journal *journal

	afterStart func() error // closes what the child has inherited

	// done ends when the process has ended and its last lines were read.
	done   context.Context
	finish context.CancelFunc
	first  chan string // the first line on stdout

	handshake    *io.PipeReader // what go-plugin reads
	handshakeEnd *io.PipeWriter
	quiet        *io.PipeReader // its stderr: nothing, until the end
	quietEnd     *io.PipeWriter

	mu        sync.Mutex
	pid       int  // 0 before the start
	condemned bool // Kill came before the start
	reaped    bool // the number may belong to somebody else now
	exit      Exit
}

func newProcess(what program, j *journal) *process {
	p := &process{program: what, journal: j, first: make(chan string, 1)}
	p.done, p.finish = context.WithCancel(context.Background())
	p.handshake, p.handshakeEnd = io.Pipe()
	p.quiet, p.quietEnd = io.Pipe()
	return p
}

// Start starts the process.
func (p *process) Start(context.Context) error {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("pipe: %w", err), outRead.Close(), outWrite.Close())
	}
	pid, err := p.program.start(outWrite, errWrite)
	closeErr := errors.Join(outWrite.Close(), errWrite.Close(), p.afterStart())
	if err != nil {
		return errors.Join(err, closeErr, outRead.Close(), errRead.Close())
	}
	p.mu.Lock()
	p.pid = pid
	condemned := p.condemned
	p.mu.Unlock()
	var drained sync.WaitGroup
	drained.Go(func() { p.readStdout(outRead) })
	drained.Go(func() { follow(newLineReader(errRead), p.journal.stderr) })
	go p.wait(&drained, outRead, errRead)
	if condemned {
		return p.Kill(context.Background())
	}
	return nil
}

func (p *process) readStdout(r io.Reader) {
	lines := newLineReader(r)
	line, err := nextLine(lines)
	if line != "" || err == nil {
		p.first <- line
		forward := func() { _, _ = io.WriteString(p.handshakeEnd, line+"\n") } // fails only if nobody reads any more
		if wrong, _ := readHandshake(line); wrong == "" {
			forward()
		} else { // go-plugin will kill it: let it say more first, or end by itself
			time.AfterFunc(drainTime, forward)
		}
	}
	if err == nil {
		follow(lines, p.journal.stdout)
	}
}

// wait learns how the process ended, kills what is left of its group, and reads the last lines.
func (p *process) wait(drained *sync.WaitGroup, output ...io.Closer) {
	for { // leave it unreaped, so that its number and its group's stay its own until the group is killed
		err := unix.Waitid(unix.P_PID, p.number(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.mu.Lock()
	_ = unix.Kill(-p.pid, unix.SIGKILL) // it is fine if nobody is left
	p.exit = p.program.reap()
	p.reaped = true
	p.mu.Unlock()
	reapGroup(p.number())

	read := make(chan struct{})
	go func() { drained.Wait(); close(read) }()
	select {
	case <-read:
	case <-time.After(drainTime): // a descendant that left the group holds the pipe
	}
	for _, o := range output {
		_ = o.Close()
	}
	// With both pipes closed go-plugin stops reading, and nothing of ours writes to them any more.
	_, _ = p.handshakeEnd.Close(), p.quietEnd.Close()
	<-read
	p.finish()
}

// reapGroup takes away what a plugin's own children left behind, where orphans come to us: see Zygote.
func reapGroup(group int) {
	for range 100 {
		switch pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil); {
		case err != nil && !errors.Is(err, unix.EINTR):
			return // there are none
		case pid == 0: // killed, and not ended yet
			time.Sleep(time.Millisecond)
		}
	}
}

// Wait waits for the end. How it ended is in exit.
func (p *process) Wait(context.Context) error {
	<-p.done.Done()
	return nil
}

// Kill kills the whole group at once.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.condemned = true
	if p.pid == 0 || p.reaped {
		return nil
	}
	if err := unix.Kill(-p.pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process group %d: %w", p.pid, err)
	}
	return nil
}

// ended says how the process ended, if it did.
func (p *process) ended() (Exit, bool) {
	if p.done.Err() == nil {
		return Exit{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit, true
}

func (p *process) Stdout() io.ReadCloser           { return p.handshake }
func (p *process) Stderr() io.ReadCloser           { return p.quiet }
func (p *process) Name() string                    { return p.program.name() }
func (p *process) Diagnose(context.Context) string { return "" }

func (p *process) ID() string {
	if !p.started() {
		return ""
	}
	return strconv.Itoa(p.number())
}

func (p *process) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

func (p *process) started() bool { return p.number() != 0 }

func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
