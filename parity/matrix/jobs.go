package matrix

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Machine is what decides how many cells are verified at once. A memory of 0 is not known.
type Machine struct {
	Cores     int
	Memory    int64 // bytes that can be taken
	GPU       bool  // cells run on one
	GPUMemory int64 // bytes of it
}

// What a cell takes whose arms are prepared together, and what is left to those that are measured.
const (
	coresOfCell     = 2
	coresMeasured   = 4
	memoryOfCell    = 12 << 30
	gpuMemoryOfCell = 20 << 30
	// More slow each other on the GPU: seen on an H200 with 16 cores are 13 s a cell of the matrix with 7 at once, and 5.7 s a repetition
	// of resnet with 4. The same cells were not compared.
	mostJobs = 4
	// What a cell has of a GPU that waits for memory: its recorder was built there, and has not ended.
	gpuMemoryOfWaiting = 4 << 30
)

// Plan says how to verify cells on a machine.
type Plan struct {
	Jobs      int  // cells at once
	Together  bool // the arms of a cell at once
	Preparing int  // processes that start and build at once
	Gathered  int  // cells that are measured one after the other while nobody works
	Threads   int  // that PyTorch takes in each process; 0: its own choice

	GPUMemory int64 // bytes that cells share, each of which takes what it needs; 0: not known, or nobody shares
}

// Plan chooses for this machine; jobs that are not 0 were asked for. On the device host all arms run on the processors that
// others would be prepared on, so cells come one after the other.
func (m Machine) Plan(jobs int) Plan {
	if !m.GPU {
		p := Plan{Jobs: max(jobs, 1), Preparing: m.Cores, Gathered: 1}
		if p.Jobs > 1 {
			p.Threads = max(m.Cores/p.Jobs, 1)
		}
		return p
	}
	cells := min(int64(m.Cores/coresOfCell), mostJobs)
	for _, memory := range []struct{ has, takes int64 }{{m.Memory, memoryOfCell}, {m.GPUMemory, gpuMemoryOfCell}} {
		if memory.has > 0 {
			cells = min(cells, memory.has/memory.takes)
		}
	}
	p := Plan{Jobs: jobs, Together: cells >= 1}
	if jobs == 0 {
		p.Jobs = int(max(cells, 1))
	}
	p.Preparing = max(m.Cores-coresMeasured, 1)
	p.Gathered = max(p.Jobs/2, 1) // so that nobody waits for one who waits for memory
	if p.Jobs > 1 {
		p.GPUMemory = max(m.GPUMemory-int64(p.Jobs-1)*gpuMemoryOfWaiting, m.GPUMemory/2)
	}
	p.Threads = min(max(m.Cores/4, 1), 4) // few are busy with more than one: those that embed texts
	return p
}

// ThisMachine looks at the cores and the memory that this process may use. The GPU is the caller's to know.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.GOMAXPROCS(0), Memory: field("/proc/meminfo", "MemAvailable:") << 10}
	if limit := limitOf("/sys/fs/cgroup"); limit > 0 && (m.Memory == 0 || limit < m.Memory) {
		m.Memory = limit
	}
	return m
}

// limitOf gives how many bytes are left of a control group's limit; 0 if there is none. What files are cached in is free.
func limitOf(group string) int64 {
	text, err := os.ReadFile(filepath.Join(group, "memory.max"))
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	stat := filepath.Join(group, "memory.stat")
	return max(limit-field(stat, "anon")-field(stat, "shmem"), 1)
}

// field reads the number behind a name from a file with one name a line.
func field(path, name string) int64 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }() // it was only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == name {
			n, _ := strconv.ParseInt(words[1], 10, 64)
			return n
		}
	}
	return 0
}
