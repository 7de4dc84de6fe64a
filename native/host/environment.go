//go:build linux && amd64

package host

// #include <gnu/libc-version.h>
// #include "host.h"
import "C"

import (
	"fmt"
	"os"
	"strings"

	"samebits/native/device"
)

// Environment says what results may depend on. Sorted by key.
func (d *Device) Environment() []device.Setting {
	d.libraries.mutex.Lock()
	compiler, command := "none", ""
	if t, err := d.libraries.compiler(); err == nil {
		compiler, command = t.version, strings.Join(t.command, " ")
	}
	d.libraries.mutex.Unlock()
	return []device.Setting{
		{Key: "host.compiler", Value: compiler},
		{Key: "host.compiler.command", Value: command},
		{Key: "host.compiler.flags", Value: strings.Join(flags, " ")},
		{Key: "host.cpu", Value: cpuModel()},
		{Key: "host.libc", Value: "glibc " + C.GoString(C.gnu_get_libc_version())},
		{Key: "host.threads", Value: fmt.Sprint(int(C.sb_host_threads(d.handle)))},
		{Key: "host.vector", Value: fmt.Sprintf("%d bits", d.options.vector)},
	}
}

func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
