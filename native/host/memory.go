//go:build linux && amd64

package host

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"samebits/bridge/diag"
	"samebits/native/device"
)

// memory is a mapping of its own, so that addresses are multiples of the page size and Free gives the pages back.
type memory struct {
	device *Device
	data   []byte // of the size asked for
	pages  []byte // the mapping
}

// Alloc gives memory of any size, zero included. It is zero at first, or 0xff with Poison.
func (d *Device) Alloc(bytes int64) (device.Memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("host: cannot allocate %d bytes", bytes)
	}
	const page = 4096
	size := max((bytes+page-1)/page*page, page)
	if int64(int(size)) != size || size < bytes {
		return nil, outOfMemory(bytes)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.closed {
		return nil, fmt.Errorf("host: the device is closed")
	}
	pages, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, outOfMemory(bytes)
	}
	m := &memory{device: d, data: pages[:bytes], pages: pages}
	if d.options.poison {
		fill(m.data, 0xff)
	}
	where := "an unknown place"
	if _, file, line, ok := runtime.Caller(1); ok {
		where = fmt.Sprintf("%s:%d", file, line)
	}
	d.memories[m] = where
	d.hold(bytes)
	return m, nil
}

// hold counts bytes that are in use from now on, or no more if negative.
func (d *Device) hold(bytes int64) {
	now := d.inUse.Add(bytes)
	for peak := d.peak.Load(); now > peak && !d.peak.CompareAndSwap(peak, now); peak = d.peak.Load() {
	}
}

func outOfMemory(bytes int64) error {
	return diag.New("OUT_OF_MEMORY", "host", "no memory for %d bytes", bytes)
}

func (m *memory) Bytes() int64 { return int64(len(m.data)) }

func (m *memory) Address() uintptr {
	if m.pages == nil {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.pages)))
}

func (m *memory) Write(offset int64, data []byte) error {
	to, err := m.slice("write", offset, int64(len(data)))
	if err == nil {
		copy(to, data)
	}
	return err
}

func (m *memory) Read(offset int64, data []byte) error {
	from, err := m.slice("read", offset, int64(len(data)))
	if err == nil {
		copy(data, from)
	}
	return err
}

func (m *memory) Fill(offset, bytes int64, b byte) error {
	to, err := m.slice("fill", offset, bytes)
	if err == nil {
		fill(to, b)
	}
	return err
}

func fill(to []byte, b byte) {
	for i := range to {
		to[i] = b
	}
}

func (m *memory) slice(what string, offset, bytes int64) ([]byte, error) {
	if m.pages == nil {
		return nil, fmt.Errorf("host: cannot %s: the memory is freed", what)
	}
	if offset < 0 || bytes < 0 || offset > int64(len(m.data)) || bytes > int64(len(m.data))-offset {
		return nil, fmt.Errorf("host: cannot %s %d bytes at %d of %d", what, bytes, offset, len(m.data))
	}
	return m.data[offset : offset+bytes], nil
}

func (m *memory) Free() error {
	m.device.mutex.Lock()
	defer m.device.mutex.Unlock()
	if m.pages == nil {
		return fmt.Errorf("host: memory freed twice")
	}
	err := unix.Munmap(m.pages)
	m.device.hold(-int64(len(m.data)))
	delete(m.device.memories, m)
	m.data, m.pages = nil, nil
	return err
}

// Bustle takes memory and frees it: a CPU has no events.
func (d *Device) Bustle() error {
	m, err := d.Alloc(1 << 16)
	if err != nil {
		return err
	}
	return m.Free()
}
