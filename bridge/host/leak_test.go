package host_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leavesNothing fails a test that leaves a process, a descriptor, a mapping, a goroutine or a socket's folder behind.
// Call it first: its cleanup must be the last.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := held(t)
	t.Cleanup(func() {
		var after holdings
		for range 40 { // go-plugin's goroutines end on their own time
			if after = held(t); after.within(before) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("left behind:\nbefore %+v\nafter  %+v", before, after)
		if after.goroutines > before.goroutines {
			stacks := make([]byte, 1<<20)
			t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
		}
	})
}

type holdings struct {
	children    []int
	descriptors int
	mappings    int
	goroutines  int
	sockets     []string
}

func (h holdings) within(limit holdings) bool {
	return len(h.children) <= len(limit.children) && h.descriptors <= limit.descriptors && h.mappings <= limit.mappings &&
		h.goroutines <= limit.goroutines && len(h.sockets) <= len(limit.sockets)
}

func held(t *testing.T) holdings {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	sockets = slices.DeleteFunc(sockets, func(path string) bool {
		return !strings.Contains(path, "samebits") && !strings.Contains(path, "plugin")
	})
	return holdings{children: childrenOf(os.Getpid()), descriptors: len(descriptors),
		mappings: bytes.Count(maps, []byte("memfd:samebits")), goroutines: runtime.NumGoroutine(), sockets: sockets}
}

// childrenOf lists the processes whose parent is pid, zombies too.
func childrenOf(pid int) []int {
	var children []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func eventually(t *testing.T, within time.Duration, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if true() {
			return
		}
	}
	t.Errorf("not within %v: %s", within, what)
}
