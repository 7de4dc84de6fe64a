package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"

	"samebits/native/device"
)

// environment is what a certificate records about the GPU and the libraries.
func environment(l *libraries, info *C.sb_device_info, arch string) []device.Setting {
	u := info.uuid
	list := []device.Setting{
		{Key: "gpu", Value: C.GoString(&info.name[0])},
		{Key: "gpu.arch", Value: arch},
		{Key: "gpu.memory", Value: fmt.Sprint(info.bytes)},
		{Key: "gpu.sms", Value: fmt.Sprint(info.sms)},
		{Key: "gpu.uuid", Value: fmt.Sprintf("GPU-%02x-%02x-%02x-%02x-%02x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])},
		{Key: "driver", Value: driverVersion("/sys/module/nvidia/version", "/proc/driver/nvidia/version")},
	}
	list = append(list, l.settings()...)
	sort.Slice(list, func(i, j int) bool { return list[i].Key < list[j].Key })
	return list
}

// settings are each library's version and the file it came from.
func (l *libraries) settings() []device.Setting {
	var list []device.Setting
	for _, lib := range []struct {
		key     string
		library C.int
	}{
		{"cuda", C.SB_CUDA}, {"nvrtc", C.SB_NVRTC}, {"cudnn", C.SB_CUDNN}, {"cublas", C.SB_CUBLAS},
		{"cublaslt", C.SB_CUBLASLT},
	} {
		version, err := l.version(lib.library)
		if err != nil {
			version = "unknown: " + err.Error()
		}
		list = append(list, device.Setting{Key: lib.key, Value: version},
			device.Setting{Key: lib.key + ".path", Value: l.path(lib.library)})
	}
	return list
}

// planIdentity is all that decides about a cuDNN choice beside the convolution: the library's build, which its version and
// the sizes of its files tell, the GPU, the driver, and the one variable that cuDNN's heuristics heed.
func (d *Device) planIdentity() string {
	is := map[string]string{}
	for _, s := range d.environment {
		is[s.Key] = s.Value
	}
	var sizes []string
	for _, path := range append(slices.Clone(d.libraries.found.CudnnParts), d.libraries.found.Cudnn) {
		size := "unknown"
		if info, err := os.Stat(path); err == nil {
			size = fmt.Sprint(info.Size())
		}
		sizes = append(sizes, size)
	}
	return fmt.Sprintf("cuDNN %s of %s bytes, %q %s of %s multiprocessors, driver %s, CUDA %s, NVIDIA_TF32_OVERRIDE=%q",
		is["cudnn"], strings.Join(sizes, "+"), is["gpu"], is["gpu.arch"], is["gpu.sms"], is["driver"], is["cuda"],
		os.Getenv("NVIDIA_TF32_OVERRIDE"))
}

var driverLine = regexp.MustCompile(`Kernel Module.*?\s([0-9]+\.[0-9.]*[0-9])\s`)

// driverVersion reads the kernel module's version; the driver API tells only which CUDA it supports.
func driverVersion(module, proc string) string {
	if text, err := os.ReadFile(module); err == nil {
		return strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile(proc); err == nil {
		if m := driverLine.FindSubmatch(text); m != nil {
			return string(m[1])
		}
	}
	return "unknown"
}
