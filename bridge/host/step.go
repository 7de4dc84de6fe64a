package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"samebits/bridge/diag"
	"samebits/bridge/proto/convert"
)

// The control block, in front of the shared memory. See docs/wire.md.
const (
	controlBytes  = 4096
	controlMagic  = 0x54424D53 // SMBT
	controlLayout = 1

	atMagic, atLayout, atSequence, atCommand, atFlags = 0, 4, 8, 16, 20
	atInput, atOutput, atStatus, atProblems           = 24, 28, 32, 36
	atStart, atEnd, atText                            = 40, 48, 64

	commandStep = 1
	statusUnset = 0xFFFFFFFF // stands there until the plugin says better
	byteStep    = 'S'
	byteDone    = 'D'
)

var little = binary.LittleEndian

// newStepPair makes the sockets over which steps are told: one for the host, one for the plugin.
func newStepPair() (host, plugin *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("step socket: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that reads have deadlines
		return nil, nil, errors.Join(fmt.Errorf("step socket: %w", err), unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "samebits step"), os.NewFile(uintptr(fds[1]), "samebits step"), nil
}

// Step runs one step: the plugin reads the input bank and has written the output bank when Step returns. Banks are
// indices into those of Prepare.
func (p *Plugin) Step(ctx context.Context, inputBank, outputBank int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("plugin %s: step: %w", p.config.Name, err)
	}
	if inputBank < 0 || outputBank < 0 || int64(max(inputBank, outputBank)) >= statusUnset {
		return diag.New("BANK", "plugin "+p.config.Name, "there are no banks %d and %d", inputBank, outputBank)
	}
	p.stepMu.Lock()
	defer p.stepMu.Unlock()
	if err := p.gone(); err != nil {
		return err
	}
	p.sequence++
	block := p.memory.control
	clear(block[:atText])
	little.PutUint32(block[atMagic:], controlMagic)
	little.PutUint32(block[atLayout:], controlLayout)
	little.PutUint64(block[atSequence:], p.sequence)
	little.PutUint32(block[atCommand:], commandStep)
	little.PutUint32(block[atInput:], uint32(inputBank))
	little.PutUint32(block[atOutput:], uint32(outputBank))
	little.PutUint32(block[atStatus:], statusUnset)

	answer, err := p.exchange(ctx)
	if err != nil {
		return p.stepFailed(ctx, err)
	}
	if answer != byteDone || little.Uint64(block[atSequence:]) != p.sequence {
		return p.kill(&Error{Reason: ReasonWire, During: "Step", Summary: fmt.Sprintf("answered a step with byte %#x", answer)})
	}
	switch status := little.Uint32(block[atStatus:]); status {
	case 0:
		p.stepTime.Store(int64(little.Uint64(block[atEnd:]) - little.Uint64(block[atStart:])))
		return nil
	case 1:
		return p.stepRefused(block)
	default:
		return p.kill(&Error{Reason: ReasonWire, During: "Step", Summary: fmt.Sprintf("ended a step with status %#x", status)})
	}
}

// StepTime is how long the last good step ran on the arm, by the plugin's clock.
func (p *Plugin) StepTime() time.Duration { return time.Duration(p.stepTime.Load()) }

// exchange tells the plugin to step and waits for its byte.
func (p *Plugin) exchange(ctx context.Context) (byte, error) {
	if err := p.ends.step.SetDeadline(time.Now().Add(p.config.Deadlines.Step)); err != nil {
		return 0, err
	}
	// An interrupt makes the read below return at once, and so does the end of the process: a child of the plugin may hold
	// its end of the socket open. Once the interrupt's call has begun it is waited for, lest it reach into the next step.
	expire := func() { _ = p.ends.step.SetDeadline(time.Unix(1, 0)) }
	defer context.AfterFunc(p.process.done, expire)()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		expire()
	})
	defer func() {
		if !stop() {
			<-interrupted
		}
	}()
	b := [1]byte{byteStep}
	if _, err := p.ends.step.Write(b[:]); err != nil {
		return 0, err
	}
	_, err := p.ends.step.Read(b[:])
	return b[0], err
}

func (p *Plugin) stepFailed(ctx context.Context, err error) error {
	_, ended := p.process.ended()
	switch {
	case ended:
		return p.lost("Step", err)
	case ctx.Err() != nil:
		return p.kill(&Error{Reason: ReasonInterrupted, During: "Step", Summary: "was killed: its step was interrupted",
			cause: ctx.Err()})
	case errors.Is(err, os.ErrDeadlineExceeded):
		return p.hung("Step", p.config.Deadlines.Step)
	}
	return p.lost("Step", err) // the other end is closed
}

// stepRefused reads the problems of a step. The plugin could still write there, so they are copied first.
func (p *Plugin) stepRefused(block []byte) error {
	length := little.Uint32(block[atProblems:])
	if length > controlBytes-atText {
		return p.kill(&Error{Reason: ReasonWire, During: "Step", Summary: fmt.Sprintf("gave %d bytes of problems", length)})
	}
	text := make([]byte, length)
	copy(text, block[atText:])
	problems, err := convert.DecodeProblems(text)
	if err != nil {
		return p.kill(&Error{Reason: ReasonWire, During: "Step", Summary: err.Error(), cause: err})
	}
	return p.refused("Step", 0, problems)
}
