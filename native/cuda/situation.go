package cuda

/*
#include "situation.h"
*/
import "C"

import (
	"fmt"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/native/device"
)

var (
	_ device.Switcher  = (*program)(nil)
	_ device.Breaker   = (*program)(nil)
	_ device.Bustler   = (*Device)(nil)
	_ device.Elsewhere = (*Device)(nil)
)

// nodeNames are the wire's names of the kinds that a graph's nodes are counted by.
var nodeNames = [C.SB_NODES]string{
	C.SB_KERNELS: arm.KernelNode, C.SB_COPIES: arm.CopyNode, C.SB_UPLOADS: arm.UploadNode, C.SB_FETCHES: arm.FetchNode,
	C.SB_SETS: arm.SetNode, C.SB_ALLOCS: arm.AllocNode, C.SB_FREES: arm.FreeNode, C.SB_HOSTS: arm.HostNode,
	C.SB_EVENTS: arm.EventNode, C.SB_GRAPHS: arm.GraphNode, C.SB_OTHERS: arm.OtherNode,
}

// Nodes asks the driver's graph, not the launch list, what it is made of.
func (p *program) Nodes() map[string]int64 {
	if p.list == nil || !p.captured {
		return nil
	}
	kinds := map[string]int64{}
	for i, n := range p.q.nodes {
		if n > 0 {
			kinds[nodeNames[i]] = int64(n)
		}
	}
	return kinds
}

// SwitchStream makes a fresh stream wait for the old one and goes on there. Lanes beside the first keep theirs.
func (p *program) SwitchStream() error {
	if p.list == nil {
		return errClosed
	}
	if C.sb_queue_switch(p.q, &p.e) != 0 {
		return fmt.Errorf("another stream on %s: %w", p.d.Name(), failure(&p.e))
	}
	return nil
}

// BreakCapture makes the next capture wait for its own stream when half of the list is recorded, which no capture allows.
func (p *program) BreakCapture() {
	if p.list != nil {
		p.q.breaks = 1
	}
}

// Bustle takes and frees pinned memory, and records and queries an event.
func (d *Device) Bustle() error {
	if d.closed.Load() {
		return errDeviceClosed
	}
	var e C.sb_error
	if C.sb_bustle(d.c, &e) != 0 {
		return fmt.Errorf("%s: %w", d.Name(), failure(&e))
	}
	return nil
}

// MakeOtherCurrent takes the context of the next GPU, and keeps it until Close.
func (d *Device) MakeOtherCurrent() error {
	count, err := d.libraries.deviceCount()
	if err != nil {
		return err
	}
	if count < 2 {
		return diag.New("NO_SECOND_DEVICE", d.Name(), "this process sees no other GPU")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return errDeviceClosed
	}
	var e C.sb_error
	if C.sb_other_current(d.c, C.int(d.other(count)), &d.elsewhere, &e) != 0 {
		return fmt.Errorf("the GPU beside %s: %w", d.Name(), failure(&e))
	}
	d.count = count
	return nil
}

func (d *Device) other(count int) int { return (d.index + 1) % count }

// leaveOther gives the other GPU's context back.
func (d *Device) leaveOther() {
	if d.elsewhere != nil {
		C.sb_other_close(d.c, C.int(d.other(d.count)))
		d.elsewhere = nil
	}
}

// KeepCurrent is for callers whose threads others use too: every call of this package makes its own context current.
func (d *Device) KeepCurrent() (restore func()) {
	context := d.current()
	return func() { C.sb_make_current(d.c, context) }
}

func (d *Device) current() *C.struct_CUctx_st { return C.sb_current(d.c) }
