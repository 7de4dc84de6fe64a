package bench

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// rss gives the most memory that a process ever had in use, and how much of what it has now is shared; zeros where the
// system does not say.
func rss(pid int) (most, shared int64) {
	if pid == 0 {
		return 0, 0
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	defer func() { _ = file.Close() }() // it was only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(words[1], 10, 64)
		switch words[0] {
		case "VmHWM:":
			most = n << 10
		case "RssShmem:":
			shared = n << 10
		}
	}
	return most, shared
}
