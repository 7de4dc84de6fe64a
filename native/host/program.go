//go:build linux && amd64

package host

// #include <stdlib.h>
// #include "host.h"
import "C"

import (
	"fmt"
	"unsafe"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/native/device"
)

// program is a launch list in C memory. Commands run when they are called, so Wait has nothing to wait for.
type program struct {
	device    *Device
	list      *C.struct_sb_list
	graph     *C.struct_sb_list // what Replay walks, or nil
	packed    unsafe.Pointer    // weights of the convolution that runs, packed
	workspace int64
	names     []string // of commands, for errors
	choices   []string
	whole     bool                // the list runs whole or not at all
	failed    error               // the first failure; the program does nothing after it
	breaks    bool                // the next capture fails
	failure   C.struct_sb_failure // here, so that steps take no memory
}

var _ device.Breaker = (*program)(nil)

// Prepare resolves a launch list. It gives every problem of the list in one error. Of the options it needs none: results
// are always deterministic and never TF32, and a schedule's lanes run one after the other, each command on all threads.
func (d *Device) Prepare(list []device.Command, resolve device.Resolve, o device.Options) (device.Program, error) {
	d.mutex.Lock()
	if d.closed {
		d.mutex.Unlock()
		return nil, fmt.Errorf("host: the device is closed")
	}
	d.programs++
	d.mutex.Unlock()
	p := &program{device: d, whole: o.Schedule != nil}
	if o.Place != nil {
		placement, err := o.Place(make([]int64, len(list))) // the workspace is the program's own
		if err != nil {
			return nil, joinErrors(err, p.Close())
		}
		p.whole = placement.Schedule != nil
	}
	if err := p.lower(list, resolve); err != nil {
		return nil, joinErrors(err, p.Close())
	}
	return p, nil
}

func joinErrors(err, other error) error {
	if other != nil {
		return fmt.Errorf("%w (and %v)", err, other)
	}
	return err
}

func (p *program) Run(from, to int) error {
	if err := p.usable(); err != nil {
		return err
	}
	if from < 0 || to < from || to > len(p.names) {
		return fmt.Errorf("host: cannot run commands %d to %d of %d", from, to, len(p.names))
	}
	if p.whole && to-from != 0 && to-from != len(p.names) {
		return fmt.Errorf("host: a program with a schedule runs its whole list, not commands %d to %d of %d", from, to, len(p.names))
	}
	return p.walk(p.list, from, to)
}

func (p *program) walk(list *C.struct_sb_list, from, to int) error {
	if C.sb_host_run(p.device.handle, list, C.int64_t(from), C.int64_t(to), &p.failure) != 0 {
		i := int(p.failure.index)
		p.failed = diag.New("KERNEL_FAILED", fmt.Sprintf("commands[%d]", i), "%s: %s", p.names[i], C.GoString(&p.failure.text[0]))
	}
	return p.failed
}

func (p *program) usable() error {
	if p.list == nil {
		return fmt.Errorf("host: the program is closed")
	}
	return p.failed
}

// Capture copies the list. Changes to what it points to are seen by a replay, other addresses are not.
func (p *program) Capture() (int, error) {
	if err := p.usable(); err != nil {
		return 0, err
	}
	graph := C.sb_host_list_copy(p.list)
	if p.breaks {
		p.breaks = false
		C.free(unsafe.Pointer(graph))
		return 0, diag.New("CAPTURE_FAILED", "host", "the capture was broken off")
	}
	if graph == nil {
		return 0, outOfMemory(int64(p.list.bytes))
	}
	C.free(unsafe.Pointer(p.graph))
	p.graph = graph
	return int(graph.count), nil
}

// Nodes counts commands: a call of a library is one, and so is a kernel of ours.
func (p *program) Nodes() map[string]int64 {
	if p.list == nil || p.graph == nil {
		return nil
	}
	kinds := map[string]int64{}
	for _, c := range unsafe.Slice(p.graph.commands, p.graph.count) {
		switch c.kind {
		case C.SB_COPY:
			kinds[arm.CopyNode]++
		case C.SB_FILL:
			kinds[arm.SetNode]++
		case 0: // a copy or a fill of nothing
		default:
			kinds[arm.KernelNode]++
		}
	}
	return kinds
}

// BreakCapture makes the next Capture fail when the list is copied.
func (p *program) BreakCapture() { p.breaks = true }

func (p *program) Replay() error {
	if err := p.usable(); err != nil {
		return err
	}
	if p.graph == nil {
		return fmt.Errorf("host: nothing is captured")
	}
	return p.walk(p.graph, 0, int(p.graph.count))
}

func (p *program) Release() error {
	C.free(unsafe.Pointer(p.graph))
	p.graph, p.breaks = nil, false
	return nil
}

func (p *program) Wait() error { return p.failed }

func (p *program) WorkspaceBytes() int64 { return p.workspace }

func (p *program) Choices() []string { return p.choices }

func (p *program) Close() error {
	if p.device == nil {
		return fmt.Errorf("host: program closed twice")
	}
	_ = p.Release()
	C.free(unsafe.Pointer(p.list))
	C.free(p.packed)
	p.list, p.packed = nil, nil
	d := p.device
	p.device = nil
	d.hold(-p.workspace)
	d.mutex.Lock()
	d.programs--
	d.mutex.Unlock()
	return nil
}
