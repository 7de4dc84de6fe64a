package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

const (
	// smallestGrowth keeps the ranges few: a plugin maps, and may pin, each of them.
	smallestGrowth = 16 << 20
	largestGrowth  = 1 << 30
)

// Memory is what a host shares with one plugin: a file without a name that can only grow, mapped by both. Pages cost
// nothing until they are written. It is safe for concurrent use.
type Memory struct {
	file    *os.File
	control []byte
	attach  func(context.Context, Region) error // tells the plugin of a new range

	mu     sync.Mutex
	size   int64
	ranges []memoryRange
	closed bool
}

// memoryRange is a part of the file that was mapped at once. No region crosses its end.
type memoryRange struct {
	offset, used int64
	bytes        []byte
}

func newMemory() (*Memory, error) {
	fd, err := unix.MemfdCreate("samebits", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	m := &Memory{file: os.NewFile(uintptr(fd), "samebits memory"), size: controlBytes}
	err = m.file.Truncate(controlBytes)
	if err == nil {
		// A file that shrinks under a mapping kills its readers.
		_, err = unix.FcntlInt(m.file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	}
	if err == nil {
		m.control, err = unix.Mmap(fd, 0, controlBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared memory: %w", err), m.file.Close())
	}
	return m, nil
}

// Alloc gives n bytes at a multiple of 64, growing the memory if need be. They are zero unless Reset gave them back.
func (m *Memory) Alloc(ctx context.Context, n int64) (Region, []byte, error) {
	if n < 0 || n > 1<<46 {
		return Region{}, nil, diag.New("SHARED_MEMORY", "", "cannot share %d bytes", n)
	}
	need := max(roundUp(n, arm.Alignment), arm.Alignment) // regions without bytes have places of their own, too
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Region{}, nil, errors.New("shared memory: the plugin was stopped")
	}
	for i := range m.ranges {
		if r := &m.ranges[i]; need <= int64(len(r.bytes))-r.used {
			return r.take(n, need)
		}
	}
	r, err := m.grow(ctx, need)
	if err != nil {
		return Region{}, nil, err
	}
	return r.take(n, need)
}

func (r *memoryRange) take(n, need int64) (Region, []byte, error) {
	start := r.used
	r.used += need
	return Region{Offset: r.offset + start, Length: n}, r.bytes[start : start+n : start+n], nil
}

// AllocBank gives a place to every tensor of a bank, and its bytes.
func (m *Memory) AllocBank(ctx context.Context, specs []tensor.Spec) (Bank, [][]byte, error) {
	bank, data := make(Bank, len(specs)), make([][]byte, len(specs))
	for i, spec := range specs {
		region, bytes, err := m.Alloc(ctx, spec.Bytes())
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", spec.Name, err)
		}
		bank[i], data[i] = Placed{Spec: spec, Region: region}, bytes
	}
	return bank, data, nil
}

// Reset makes all regions free and gives their pages back to the system. Slices from before stay mapped, but what lies
// there is no longer theirs. No step may be running, and the plugin must be given new banks by Prepare.
func (m *Memory) Reset() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	for i := range m.ranges {
		r := &m.ranges[i]
		if r.used == 0 {
			continue
		}
		const hole = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
		if err := unix.Fallocate(int(m.file.Fd()), hole, r.offset, int64(len(r.bytes))); err != nil {
			return fmt.Errorf("shared memory: free %d bytes: %w", len(r.bytes), err)
		}
		r.used = 0
	}
	return nil
}

// Size is the number of bytes that were mapped, used or not.
func (m *Memory) Size() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size
}

// grow makes the file larger, maps the new range, and has the plugin map it.
func (m *Memory) grow(ctx context.Context, need int64) (*memoryRange, error) {
	length := roundUp(max(need, min(max(m.size, smallestGrowth), largestGrowth)), int64(os.Getpagesize()))
	offset := m.size
	if err := m.file.Truncate(offset + length); err != nil {
		return nil, fmt.Errorf("shared memory: grow by %d bytes: %w", length, err)
	}
	m.size += length // a file that cannot shrink keeps the range, whatever comes
	bytes, err := unix.Mmap(int(m.file.Fd()), offset, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shared memory: map %d bytes: %w", length, err)
	}
	if err := m.attach(ctx, Region{Offset: offset, Length: length}); err != nil {
		return nil, errors.Join(err, unix.Munmap(bytes))
	}
	m.ranges = append(m.ranges, memoryRange{offset: offset, bytes: bytes})
	return &m.ranges[len(m.ranges)-1], nil
}

// close unmaps everything. Slices must not be used any more.
func (m *Memory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	err := errors.Join(unix.Munmap(m.control), m.file.Close())
	for _, r := range m.ranges {
		err = errors.Join(err, unix.Munmap(r.bytes))
	}
	m.ranges = nil
	return err
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
