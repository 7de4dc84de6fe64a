package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"samebits/bridge/diag"
	"samebits/native/device"
)

// program is a launch list in C's memory with the streams and handles that it runs on.
type program struct {
	d         *Device
	q         *C.sb_queue   // the program's stream
	lanes     []*C.sb_queue // the first is q
	lane      []uint8       // by command; nil: all on the first
	list      *C.sb_list
	plans     []*plan
	workspace *memory
	names     []string // of each command, for errors
	choices   []string
	captured  bool
	e         C.sb_error // here and not on the stack of Run, so that a step allocates nothing
}

var (
	_ device.Program   = (*program)(nil)
	_ device.Transfers = (*program)(nil)
)

var errClosed = errors.New("the program is closed")

func (d *Device) newProgram(list []device.Command) (*program, error) {
	p := &program{d: d, names: make([]string, len(list)), choices: make([]string, len(list))}
	for i, c := range list {
		p.names[i] = commandName(c)
	}
	if err := p.openLane(); err != nil {
		return nil, err
	}
	p.q = p.lanes[0]
	p.list = C.sb_list_new(C.int(len(list)))
	d.programs.Add(1)
	return p, nil
}

func (p *program) openLane() error {
	var q *C.sb_queue
	if C.sb_queue_open(p.d.c, &q, &p.e) != 0 {
		return fmt.Errorf("%s: %w", p.d.Name(), failure(&p.e))
	}
	p.lanes = append(p.lanes, q)
	return nil
}

// openLanes opens the lanes of a schedule beside the first.
func (p *program) openLanes(s *device.Schedule, commands int) error {
	if s == nil || s.Lanes < 2 {
		return nil
	}
	if err := checkSchedule(s, commands); err != nil {
		return err
	}
	p.lane = s.Lane
	for len(p.lanes) < s.Lanes {
		if err := p.openLane(); err != nil {
			return err
		}
	}
	return nil
}

var convolutionNames = map[device.Direction]string{device.Forward: "convolution",
	device.BackwardData: "input gradient of a convolution", device.BackwardFilter: "weight gradient of a convolution"}

func commandName(c device.Command) string {
	switch c := c.(type) {
	case *device.Kernel:
		return "kernel " + c.Entry
	case *device.Convolution:
		return convolutionNames[c.Direction]
	case *device.BatchNorm:
		return "batch norm"
	case *device.BatchNormTraining:
		return "batch norm in training"
	case *device.BatchNormBackward:
		return "gradient of a batch norm"
	case *device.Matmul:
		return "matmul"
	case *device.MatVec:
		return "matrix times vector"
	case *device.Linear:
		return "linear"
	case *device.Copy:
		return "copy"
	case *device.Fill:
		return "fill"
	}
	return fmt.Sprintf("%T", c)
}

// Run launches commands from..to-1.
func (p *program) Run(from, to int) error {
	if p.list == nil {
		return errClosed
	}
	if from < 0 || to > len(p.names) || from > to {
		return fmt.Errorf("commands %d to %d of a list of %d", from, to, len(p.names))
	}
	if p.lane != nil && (from != 0 || to != len(p.names)) {
		return fmt.Errorf("commands %d to %d of a list of %d with lanes, which runs as a whole", from, to, len(p.names))
	}
	if C.sb_run(p.q, p.list, C.int(from), C.int(to), &p.e) != 0 {
		return p.problem("LAUNCH_FAILED")
	}
	return nil
}

// Capture records the list thread-locally: what other threads do meanwhile neither breaks nor enters the graph.
func (p *program) Capture() (nodes int, err error) {
	if p.list == nil {
		return 0, errClosed
	}
	var n C.size_t
	if C.sb_capture(p.q, p.list, &n, &p.e) != 0 {
		return 0, p.problem("CAPTURE_FAILED")
	}
	p.captured = true
	return int(n), nil
}

// Replay launches the graph.
func (p *program) Replay() error {
	if p.list == nil {
		return errClosed
	}
	if !p.captured {
		return errors.New("replay without a captured graph")
	}
	if C.sb_replay(p.q, &p.e) != 0 {
		return p.problem("LAUNCH_FAILED")
	}
	return nil
}

func (p *program) Release() error {
	if p.list != nil {
		p.q.breaks = 0
	}
	if p.list == nil || !p.captured {
		return nil
	}
	p.captured = false
	if C.sb_release(p.q, &p.e) != 0 {
		return failure(&p.e)
	}
	return nil
}

func (p *program) Wait() error {
	if p.list == nil {
		return errClosed
	}
	if C.sb_queue_wait(p.q, &p.e) != 0 {
		return failure(&p.e)
	}
	return nil
}

// problem turns the error of a launch into one for people. cuDNN and cuBLAS hide that the device is lost behind
// statuses of their own, so the driver is asked.
func (p *program) problem(reason string) error {
	err := failure(&p.e)
	if isLost(err) {
		return p.named(err)
	}
	var cause *Error
	if !errors.As(err, &cause) {
		return err
	}
	if cause.Library != libraryNames[C.SB_CUDA] {
		var e C.sb_error
		if C.sb_queue_wait(p.q, &e) != 0 {
			if err := failure(&e); isLost(err) {
				return err
			}
		}
	}
	summary := cause.Error()
	if cause.Command >= 0 {
		summary = p.names[cause.Command] + ": " + summary
	}
	return diag.Problems{{Reason: reason, Path: commandPath(cause.Command), Summary: summary}}
}

// named puts the command's name into a lost device's problem.
func (p *program) named(err error) error {
	problems, _ := diag.Of(err)
	if i := int(p.e.command); i >= 0 {
		problems[0].Summary = p.names[i] + ": " + problems[0].Summary
	}
	return problems
}

// WriteAsync copies to m on the program's stream, before what is launched next.
func (p *program) WriteAsync(m device.Memory, offset int64, data []byte) error {
	to, err := p.span(m, "write", offset, data)
	if err != nil || len(data) == 0 {
		return err
	}
	if C.sb_queue_write(p.q, to, unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), &p.e) != 0 {
		return fmt.Errorf("write %d bytes: %w", len(data), failure(&p.e))
	}
	return nil
}

// ReadAsync copies from m on the program's stream, after what was launched.
func (p *program) ReadAsync(m device.Memory, offset int64, data []byte) error {
	from, err := p.span(m, "read", offset, data)
	if err != nil || len(data) == 0 {
		return err
	}
	if C.sb_queue_read(p.q, unsafe.Pointer(unsafe.SliceData(data)), from, C.size_t(len(data)), &p.e) != 0 {
		return fmt.Errorf("read %d bytes: %w", len(data), failure(&p.e))
	}
	return nil
}

func (p *program) span(m device.Memory, what string, offset int64, data []byte) (C.sb_pointer, error) {
	if p.list == nil {
		return 0, errClosed
	}
	own, ok := m.(*memory)
	if !ok || own.d != p.d {
		return 0, fmt.Errorf("%s: memory of another device", p.d.Name())
	}
	return own.span(what, offset, int64(len(data)))
}

func (p *program) WorkspaceBytes() int64 {
	if p.workspace == nil {
		return 0
	}
	return p.workspace.bytes
}

func (p *program) Choices() []string { return p.choices }

// Close waits for what was launched and gives everything back. A second call does nothing.
func (p *program) Close() error {
	if p.list == nil {
		return nil
	}
	err := p.Wait()
	C.sb_list_free(p.q, p.list)
	p.list = nil
	for _, plan := range p.plans {
		plan.free(p.q)
	}
	if closed := p.closeLanes(); err == nil {
		err = closed
	}
	if p.workspace != nil {
		err = errors.Join(err, p.workspace.Free())
	}
	p.d.programs.Add(-1)
	return err
}
