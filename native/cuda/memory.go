package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"samebits/bridge/diag"
	"samebits/native/device"
)

// alignment of every address that Alloc gives, like that of PyTorch's caching allocator: the choices of cuDNN and
// cuBLASLt depend on it.
const alignment = 512

type memory struct {
	d       *Device
	address C.sb_pointer
	bytes   int64
	freed   atomic.Bool
}

var _ device.Memory = (*memory)(nil)

// Alloc takes memory from the driver. Its content is whatever was there.
func (d *Device) Alloc(bytes int64) (device.Memory, error) {
	m, err := d.alloc(bytes)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (d *Device) alloc(bytes int64) (*memory, error) {
	if d.closed.Load() {
		return nil, errDeviceClosed
	}
	if bytes < 0 {
		return nil, fmt.Errorf("%s: allocation of %d bytes", d.Name(), bytes)
	}
	var (
		e       C.sb_error
		address C.sb_pointer
		size    = max(bytes, 1)
	)
	if C.sb_alloc(d.c, C.size_t(size), &address, &e) != 0 {
		err := failure(&e)
		if driverCode(err) == C.SB_OUT_OF_MEMORY {
			return nil, d.outOfMemory(size)
		}
		return nil, fmt.Errorf("%s: allocate %d bytes: %w", d.Name(), size, err)
	}
	if address%alignment != 0 {
		C.sb_free(d.c, address, &e)
		return nil, fmt.Errorf("%s: the driver gave address %#x, no multiple of %d", d.Name(), uint64(address), alignment)
	}
	d.blocks.Add(1)
	now := d.inUse.Add(size)
	for {
		peak := d.peak.Load()
		if now <= peak || d.peak.CompareAndSwap(peak, now) {
			break
		}
	}
	return &memory{d: d, address: address, bytes: size}, nil
}

func (d *Device) outOfMemory(needed int64) error {
	var (
		e           C.sb_error
		free, total C.size_t
	)
	p := diag.Problem{Reason: "OUT_OF_MEMORY", Path: d.Name()}
	p.Summary = fmt.Sprintf("%d bytes needed", needed)
	if C.sb_memory_info(d.c, &free, &total, &e) == 0 {
		p.Summary += fmt.Sprintf(", %d of %d are free", uint64(free), uint64(total))
	}
	p.Detail = fmt.Sprintf("this process holds %d; use a smaller batch or size, or end what else uses the GPU", d.InUse())
	return diag.Problems{p}
}

func (m *memory) Bytes() int64 { return m.bytes }

func (m *memory) Address() uintptr { return uintptr(m.address) }

// span checks a range and gives its address.
func (m *memory) span(what string, offset, bytes int64) (C.sb_pointer, error) {
	if m.freed.Load() {
		return 0, fmt.Errorf("%s: %s memory that was freed", m.d.Name(), what)
	}
	if offset < 0 || bytes < 0 || offset > m.bytes-bytes {
		return 0, fmt.Errorf("%s: %s bytes %d to %d of a block of %d", m.d.Name(), what, offset, offset+bytes, m.bytes)
	}
	return m.address + C.sb_pointer(offset), nil
}

// Write does not order itself after a program's launches; Wait for them first.
func (m *memory) Write(offset int64, data []byte) error {
	to, err := m.span("write", offset, int64(len(data)))
	if err != nil || len(data) == 0 {
		return err
	}
	var e C.sb_error
	if C.sb_write(m.d.c, to, unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), &e) != 0 {
		return fmt.Errorf("%s: write %d bytes: %w", m.d.Name(), len(data), failure(&e))
	}
	return nil
}

// Read does not order itself after a program's launches; Wait for them first.
func (m *memory) Read(offset int64, data []byte) error {
	from, err := m.span("read", offset, int64(len(data)))
	if err != nil || len(data) == 0 {
		return err
	}
	var e C.sb_error
	if C.sb_read(m.d.c, unsafe.Pointer(unsafe.SliceData(data)), from, C.size_t(len(data)), &e) != 0 {
		return fmt.Errorf("%s: read %d bytes: %w", m.d.Name(), len(data), failure(&e))
	}
	return nil
}

func (m *memory) Fill(offset, bytes int64, b byte) error {
	to, err := m.span("fill", offset, bytes)
	if err != nil || bytes == 0 {
		return err
	}
	var e C.sb_error
	if C.sb_set(m.d.c, to, C.uchar(b), C.size_t(bytes), &e) != 0 {
		return fmt.Errorf("%s: fill %d bytes: %w", m.d.Name(), bytes, failure(&e))
	}
	return nil
}

// Free gives the block back. A second call is refused: its caller has lost track of what it holds.
func (m *memory) Free() error {
	if m.freed.Swap(true) {
		return fmt.Errorf("%s: free memory that was freed", m.d.Name())
	}
	m.d.inUse.Add(-m.bytes)
	m.d.blocks.Add(-1)
	var e C.sb_error
	if C.sb_free(m.d.c, m.address, &e) != 0 {
		return fmt.Errorf("%s: free %d bytes: %w", m.d.Name(), m.bytes, failure(&e))
	}
	return nil
}
