package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"

	"samebits/bridge/diag"
	"samebits/bridge/proto/convert"
)

// loop runs everything that an arm does on one OS thread: calls, which come by a queue, and steps, which come by a byte.
// The thread waits for both in one poll, so a step costs no switch of threads.
type loop struct {
	arm     Arm
	memory  *Memory
	control []byte
	step    int // descriptor of the socket
	wake    int // eventfd: the queue has something

	mu    sync.Mutex
	queue []func()

	inputs, outputs int // banks of the last good Prepare; the arm's thread alone uses them
}

func newLoop(a Arm, memory *Memory, e *ends) (*loop, error) {
	control, err := unix.Mmap(int(e.memory.Fd()), 0, controlBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("control block: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &loop{arm: a, memory: memory, control: control, step: e.step, wake: wake}, nil
}

// run never returns.
func (l *loop) run() {
	runtime.LockOSThread()
	fds := []unix.PollFd{{Fd: int32(l.step), Events: unix.POLLIN}, {Fd: int32(l.wake), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue // what the kernel found before still stands in fds
		} else if err != nil {
			l.die("poll: %v", err)
		}
		if fds[1].Revents != 0 {
			l.calls()
		}
		if fds[0].Revents != 0 {
			l.oneStep()
		}
	}
}

func (l *loop) die(format string, args ...any) {
	fmt.Fprintf(stderr, format+"\n", args...)
	os.Exit(1)
}

// do runs f on the arm's thread and waits for it, or for the end of ctx; f is left out if ctx ended before its turn.
func (l *loop) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	l.mu.Lock()
	l.queue = append(l.queue, func() {
		if err := ctx.Err(); err != nil {
			done <- err
			return
		}
		done <- guard(f)
	})
	l.mu.Unlock()
	one := binary.NativeEndian.AppendUint64(nil, 1)
	if _, err := unix.Write(l.wake, one); err != nil {
		return fmt.Errorf("wake the arm's thread: %w", err)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *loop) calls() {
	var count [8]byte
	_, _ = unix.Read(l.wake, count[:]) // only resets it
	l.mu.Lock()
	queue := l.queue
	l.queue = nil
	l.mu.Unlock()
	for _, call := range queue {
		call()
	}
}

// guard turns a panic into an error, with its stack in the log.
func guard(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			fmt.Fprintf(stderr, "panic: %v\n%s", value, debug.Stack())
			err = &panicError{value}
		}
	}()
	return f()
}

// The control block, in front of the shared memory. See docs/wire.md.
const (
	controlMagic  = 0x54424D53 // SMBT
	controlLayout = 1

	atMagic, atLayout, atCommand, atInput, atOutput = 0, 4, 16, 24, 28
	atStatus, atProblems, atStart, atEnd, atText    = 32, 36, 40, 48, 64

	commandStep = 1
	byteStep    = 'S'
	byteDone    = 'D'
)

var little = binary.LittleEndian

// oneStep answers the byte of a step.
func (l *loop) oneStep() {
	var b [1]byte
	n, err := unix.Read(l.step, b[:])
	switch {
	case errors.Is(err, unix.EINTR):
		return
	case err != nil || n == 0:
		l.die("the host closed the step socket")
	case b[0] != byteStep:
		l.die("the host sent byte %#x where a step belongs", b[0])
	}
	started := now()
	err = l.runStep()
	little.PutUint64(l.control[atStart:], started)
	little.PutUint64(l.control[atEnd:], now())
	var text []byte
	status := uint32(0)
	if err != nil {
		_, problems := explain(err)
		text, status = convert.EncodeProblems(problems, controlBytes-atText), 1
	}
	copy(l.control[atText:], text)
	little.PutUint32(l.control[atProblems:], uint32(len(text)))
	little.PutUint32(l.control[atStatus:], status)
	b[0] = byteDone
	for {
		_, err := unix.SendmsgN(l.step, b[:], nil, nil, unix.MSG_NOSIGNAL)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			l.die("the host closed the step socket")
		}
	}
}

func (l *loop) runStep() error {
	magic, layout := little.Uint32(l.control[atMagic:]), little.Uint32(l.control[atLayout:])
	command := little.Uint32(l.control[atCommand:])
	if magic != controlMagic || layout != controlLayout || command != commandStep {
		return diag.New("WIRE", "", "control block has magic %#x, layout %d, command %d; this plugin knows %#x, %d, %d",
			magic, layout, command, controlMagic, controlLayout, commandStep)
	}
	input, output := little.Uint32(l.control[atInput:]), little.Uint32(l.control[atOutput:])
	if l.outputs == 0 {
		return refuse(ErrWrongOrder, diag.Problem{Reason: "WRONG_ORDER", Summary: "a step before a good Prepare"})
	}
	if err := l.checkBank(input, l.inputs, "input"); err != nil {
		return err
	}
	if err := l.checkBank(output, l.outputs, "output"); err != nil {
		return err
	}
	return guard(func() error { return l.arm.Step(int(input), int(output)) })
}

func (l *loop) checkBank(bank uint32, have int, kind string) error {
	if int64(bank) >= int64(have) {
		return diag.New("BANK", "", "%s bank %d: Prepare gave %d", kind, bank, have)
	}
	return nil
}

// now is CLOCK_MONOTONIC in nanoseconds.
func now() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}
