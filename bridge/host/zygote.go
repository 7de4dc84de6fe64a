package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Zygote is a process that has made ready what plugins of a kind have in common, a Python that has imported PyTorch, and
// forks one for each Start that names it by Config.Zygote. Such a plugin has an environment, descriptors, keys and a group
// of its own, as if it had been started from its file. See docs/wire.md.
//
// The zygote forks twice and the process between ends at once, so that plugins become children of this process: it makes
// itself the one that orphans below it go to.
type Zygote struct {
	process *process
	journal *journal

	mu   sync.Mutex // one fork at a time
	conn *net.UnixConn
	stop sync.Once
}

// envFork names the zygote's end of the socket on which forks are asked for.
const envFork = "SAMEBITS_FD_FORK"

// forkDeadline is for a fork, which takes milliseconds.
const forkDeadline = 10 * time.Second

// The messages, one JSON object in each packet. A request has the plugin's descriptors beside it: its standard output and
// error, then those that Files names.
type (
	zygoteReady struct {
		Problem string `json:"problem"` // why it cannot fork; empty: it can
	}
	forkRequest struct {
		Host  int      `json:"host"` // whose child the plugin must become
		Env   []string `json:"env"`
		Files []string `json:"files"` // variables for the numbers of the descriptors
	}
	forkReply struct {
		PID     int    `json:"pid"`
		Problem string `json:"problem"`
	}
)

// StartZygote starts a zygote and waits until it is ready. Of config it needs what says which program is started how, and
// StartDeadline.
func StartZygote(ctx context.Context, config Config) (*Zygote, error) {
	config = config.withDefaults()
	path, refused := inspect(config.Command)
	if refused != nil {
		refused.Plugin, refused.During = config.Name, "start"
		return nil, refused
	}
	if err := adopting.add(1); err != nil {
		return nil, fmt.Errorf("zygote %s: become the parent of what it forks: %w", config.Name, err)
	}
	z, err := startZygote(config, path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("zygote %s: %w", config.Name, err), adopting.add(-1))
	}
	within, cancel := context.WithTimeout(ctx, config.StartDeadline)
	defer cancel()
	var ready zygoteReady
	err = z.read(within, &ready)
	if err == nil && ready.Problem != "" {
		err = errors.New(ready.Problem)
	}
	if err == nil {
		return z, nil
	}
	e := &Error{Reason: ReasonStart, Plugin: config.Name, During: "start", Summary: fmt.Sprintf("is no zygote: %v", err), cause: err}
	switch {
	case ctx.Err() != nil:
		e.Reason, e.Summary, e.cause = ReasonInterrupted, "its start was interrupted", ctx.Err()
	case errors.Is(within.Err(), context.DeadlineExceeded):
		e.Reason, e.Summary = ReasonStartDeadline, fmt.Sprintf("did not answer within %v", config.StartDeadline)
	}
	z.Stop()
	e.Log = z.journal.tail()
	return nil, e
}

func startZygote(config Config, path string) (*Zygote, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "samebits fork"), os.NewFile(uintptr(fds[1]), "samebits fork")
	conn, err := net.FileConn(ours)
	if err = errors.Join(err, ours.Close()); err != nil { // the connection has a descriptor of its own
		return nil, errors.Join(err, theirs.Close())
	}
	z := &Zygote{journal: &journal{plugin: config.Name, keep: config.KeepLines, sink: config.Log}, conn: conn.(*net.UnixConn)}
	cmd := exec.Command(path, config.Args...)
	cmd.Dir = config.Dir
	cmd.Env = environment(config.Env, []inherited{{envFork, theirs}}, nil)
	cmd.ExtraFiles = []*os.File{theirs}
	z.process = newProcess(executed{cmd}, z.journal)
	z.process.afterStart = theirs.Close
	if err := z.process.Start(context.Background()); err != nil {
		return nil, errors.Join(err, z.conn.Close())
	}
	return z, nil
}

// fork asks for a process, and gives its number.
func (z *Zygote) fork(env []string, files []inherited, stdout, stderr *os.File) (int, error) {
	request := forkRequest{Host: os.Getpid(), Env: env}
	fds := []int{int(stdout.Fd()), int(stderr.Fd())}
	for _, f := range files {
		request.Files = append(request.Files, f.variable)
		fds = append(fds, int(f.file.Fd()))
	}
	message, err := json.Marshal(request)
	if err != nil {
		return 0, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if _, _, err := z.conn.WriteMsgUnix(message, unix.UnixRights(fds...), nil); err != nil {
		return 0, fmt.Errorf("zygote: %w", err)
	}
	within, cancel := context.WithTimeout(context.Background(), forkDeadline)
	defer cancel()
	var reply forkReply
	switch err := z.read(within, &reply); {
	case err != nil:
		_ = z.process.Kill(context.Background()) // it would answer the next request with the number of this process
		return 0, fmt.Errorf("zygote: %w", err)
	case reply.Problem != "":
		return 0, fmt.Errorf("zygote: %s", reply.Problem)
	}
	return reply.PID, nil
}

// read waits for a message, until the zygote or the context ends.
func (z *Zygote) read(ctx context.Context, message any) error {
	defer context.AfterFunc(ctx, func() { _ = z.conn.SetReadDeadline(time.Unix(1, 0)) })()
	packet := make([]byte, 64<<10)
	n, err := z.conn.Read(packet)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || n == 0:
		<-z.process.done.Done()
		exit, _ := z.process.ended()
		return fmt.Errorf("it ended: %v", exit)
	}
	return json.Unmarshal(packet[:n], message)
}

// PID is the number of the zygote's own process.
func (z *Zygote) PID() int { return z.process.number() }

// Stop ends the zygote. Plugins that it forked stay. It may be called again.
func (z *Zygote) Stop() { z.stop.Do(z.end) }

func (z *Zygote) end() {
	_ = z.conn.Close() // its sign to end
	select {
	case <-z.process.done.Done():
	case <-time.After(time.Second):
		_ = z.process.Kill(context.Background())
		<-z.process.done.Done()
	}
	_ = adopting.add(-1) // it could be set, so it can be unset
}

// adopting counts the zygotes of this process: while there are some, orphans below it become its children.
var adopting adoption

type adoption struct {
	mu      sync.Mutex
	zygotes int
}

func (a *adoption) add(n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.zygotes += n
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(min(a.zygotes, 1)), 0, 0, 0)
}
