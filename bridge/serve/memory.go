package serve

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/proto/convert"
)

// Memory is the plugin's view of the memory that it shares with the host. Nothing is allocated here: the host says where
// things lie. It is safe for concurrent use.
type Memory struct {
	file *os.File

	mu     sync.RWMutex
	ranges []attached
}

type attached struct {
	offset int64
	bytes  []byte
}

const controlBytes = 4096 // the control block in front of the shared memory

func newMemory(file *os.File) *Memory { return &Memory{file: file} }

// Bytes gives the bytes of a region. They are shared with the host, and stay mapped until the process ends.
func (m *Memory) Bytes(region Region) ([]byte, error) {
	if region.Length < 0 || region.Offset < 0 || region.Offset%arm.Alignment != 0 {
		return nil, diag.New("REGION", "", "region %d+%d is not aligned to %d bytes", region.Offset, region.Length, arm.Alignment)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, r := range m.ranges {
		start := region.Offset - r.offset
		if start >= 0 && start <= int64(len(r.bytes)) && region.Length <= int64(len(r.bytes))-start {
			return r.bytes[start : start+region.Length : start+region.Length], nil
		}
	}
	return nil, diag.New("REGION", "", "region %d+%d lies in no attached range of the shared memory", region.Offset, region.Length)
}

// Tensor gives the bytes of a placed tensor after checking that its region holds exactly its elements.
func (m *Memory) Tensor(t Placed) ([]byte, error) {
	want, err := convert.SpecBytes(t.Spec)
	if err != nil {
		return nil, diag.New("TENSOR", t.Name, "%v", err)
	}
	if want != t.Region.Length {
		return nil, diag.New("REGION", t.Name, "%v%v takes %d bytes, its region has %d", t.DType, t.Sizes, want, t.Region.Length)
	}
	return m.Bytes(t.Region)
}

// Ranges gives the attached ranges, for one who pins them for a device. Each stays where it is until the process ends.
func (m *Memory) Ranges() [][]byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([][]byte, len(m.ranges))
	for i, r := range m.ranges {
		all[i] = r.bytes
	}
	return all
}

// attach maps a further range, which must lie within the file: a mapping past its end would fault at first use.
func (m *Memory) attach(region Region) error {
	info, err := m.file.Stat()
	if err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	page := int64(os.Getpagesize())
	if region.Offset < controlBytes || region.Offset%page != 0 || region.Length <= 0 || region.Length%page != 0 ||
		region.Length > info.Size()-region.Offset {
		return diag.New("REGION", "", "cannot attach %d+%d: the shared memory has %d bytes and pages of %d",
			region.Offset, region.Length, info.Size(), page)
	}
	bytes, err := unix.Mmap(int(m.file.Fd()), region.Offset, int(region.Length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return refuse(ErrOutOfMemory, diag.Problem{Reason: "SHARED_MEMORY",
			Summary: fmt.Sprintf("cannot map %d bytes of shared memory: %v", region.Length, err)})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ranges = append(m.ranges, attached{region.Offset, bytes})
	return nil
}
