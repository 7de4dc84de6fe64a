package cuda

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"path/filepath"
	"unsafe"

	"samebits/bridge/diag"
)

// libraries is a table of symbols, each of NVIDIA's libraries opened or not.
type libraries struct {
	c     *C.sb_libraries
	found Libraries
}

func newLibraries() *libraries { return &libraries{c: C.sb_libraries_new()} }

// free drops the table. The libraries themselves stay open: NVIDIA's cannot be closed safely.
func (l *libraries) free() { C.sb_libraries_free(l.c) }

// openDriver opens the driver and finds the other libraries. Nothing helps without the driver, so it comes first.
func (l *libraries) openDriver(o Options) error {
	if err := l.load(C.SB_CUDA, o.Driver); err != nil {
		return diag.Problems{noDriver(o.Driver, err)}
	}
	found, missing := Locate(o.Folders)
	if len(missing) > 0 {
		return missing
	}
	l.found = found
	return nil
}

// openOthers opens all libraries but the driver.
func (l *libraries) openOthers() error {
	if err := l.openCompiler(); err != nil {
		return err
	}
	return l.openMath()
}

// openGPU starts the driver and makes a GPU's context.
func (l *libraries) openGPU(index int) (*C.sb_device, C.sb_device_info, error) {
	var (
		e    C.sb_error
		info C.sb_device_info
		c    *C.sb_device
	)
	count, err := l.deviceCount()
	if err != nil {
		return nil, info, err
	}
	if index < 0 || index >= count {
		return nil, info, diag.New("NO_GPU", fmt.Sprintf("cuda:%d", index), "this process sees %d GPUs", count)
	}
	if C.sb_device_open(l.c, C.int(index), &c, &info, &e) != 0 {
		return nil, info, fmt.Errorf("open cuda:%d: %w", index, failure(&e))
	}
	return c, info, nil
}

// openCompiler opens what compiles kernels. NVRTC looks for its builtins by name when it first compiles, so they are
// there already.
func (l *libraries) openCompiler() error {
	if err := l.preload(l.found.NVRTCBuiltins); err != nil {
		return err
	}
	return l.loadFound(C.SB_NVRTC, l.found.NVRTC)
}

// openMath opens cuBLAS and cuDNN. Their parts are opened by full path before them: a system's copy on
// LD_LIBRARY_PATH would be found first otherwise.
func (l *libraries) openMath() error {
	if err := l.loadFound(C.SB_CUBLASLT, l.found.CublasLt); err != nil {
		return err
	}
	if err := l.loadFound(C.SB_CUBLAS, l.found.Cublas); err != nil {
		return err
	}
	for _, part := range l.found.CudnnParts {
		if err := l.preload(part); err != nil {
			return err
		}
	}
	return l.loadFound(C.SB_CUDNN, l.found.Cudnn)
}

func (l *libraries) load(library C.int, path string) error {
	var e C.sb_error
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if C.sb_load(l.c, library, name, &e) != 0 {
		return failure(&e)
	}
	return nil
}

func (l *libraries) loadFound(library C.int, path string) error {
	if err := l.load(library, path); err != nil {
		return unusable(path, err)
	}
	return nil
}

func (l *libraries) preload(path string) error {
	var e C.sb_error
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if C.sb_open(name, &e) != 0 {
		return unusable(path, failure(&e))
	}
	return nil
}

func unusable(path string, err error) error {
	return diag.New("NO_LIBRARY", path, "%s cannot be used: %v", filepath.Base(path), err)
}

func noDriver(path string, err error) diag.Problem {
	return diag.Problem{
		Reason:  "NO_DRIVER",
		Summary: fmt.Sprintf("%s cannot be used: %v", path, err),
		Detail:  "no NVIDIA driver is installed here, or the container does not expose it; device host works without",
	}
}

// deviceCount starts the driver. No GPU is not an error here.
func (l *libraries) deviceCount() (int, error) {
	const noDevice = 100
	var (
		e     C.sb_error
		count C.int
	)
	if C.sb_device_count(l.c, &count, &e) == 0 {
		return int(count), nil
	}
	err := failure(&e)
	if driverCode(err) == noDevice {
		return 0, nil
	}
	return 0, diag.New("NO_GPU", "", "the driver does not start: %v", err)
}

// path is the file that the dynamic linker opened for a library.
func (l *libraries) path(library C.int) string {
	var buffer [4096]C.char
	if C.sb_path(l.c, library, &buffer[0], C.size_t(len(buffer))) != 0 {
		return ""
	}
	return C.GoString(&buffer[0])
}

// version is what a library calls itself: 13.0, 9.19.0.
func (l *libraries) version(library C.int) (string, error) {
	var (
		e C.sb_error
		v C.int
	)
	if C.sb_loaded(l.c, library) == 0 {
		return "", fmt.Errorf("%s is not open", libraryNames[library])
	}
	if C.sb_version(l.c, library, &v, &e) != 0 {
		return "", failure(&e)
	}
	n := int(v)
	if library == C.SB_CUDA || library == C.SB_NVRTC {
		return fmt.Sprintf("%d.%d", n/1000, n%1000/10), nil
	}
	return fmt.Sprintf("%d.%d.%d", n/10000, n%10000/100, n%100), nil
}
