package cuda

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"samebits/bridge/diag"
	"samebits/native/device"
)

// module is a kernel file on the device.
type module struct {
	file      string
	c         *C.struct_CUmod_st
	functions map[string]*function // by entry
}

// function is an entry that is ready to launch.
type function struct {
	c      *C.struct_CUfunc_st
	sizes  []int // of its parameters in bytes; nil if the driver cannot tell
	shared uint32
}

// staticShared is the dynamic shared memory that a kernel may have without asking.
const staticShared = 48 << 10

// ensureModules compiles and loads the files that are not there yet. The caller holds d.mu.
func (d *Device) ensureModules(files []string) error {
	var absent []string
	for _, file := range files {
		if d.modules[file] == nil {
			absent = append(absent, file)
		}
	}
	cubins, err := d.compiler.cubins(absent, d.arch)
	if err != nil {
		return err
	}
	for file, cubin := range cubins {
		m := &module{file: file, functions: map[string]*function{}}
		image := C.CBytes(cubin)
		var e C.sb_error
		status := C.sb_module_load(d.c, image, &m.c, &e)
		C.free(image)
		if status != 0 {
			return fmt.Errorf("load kernels of %s.cu: %w", file, failure(&e))
		}
		d.modules[file] = m
	}
	return nil
}

// function finds an entry. The caller holds d.mu.
func (d *Device) function(file, entry string) (*function, error) {
	m := d.modules[file]
	if f := m.functions[entry]; f != nil {
		return f, nil
	}
	f := &function{}
	name := C.CString(entry)
	defer C.free(unsafe.Pointer(name))
	var e C.sb_error
	if C.sb_function(d.c, m.c, name, &f.c, &e) != 0 {
		err := failure(&e)
		if isLost(err) {
			return nil, err
		}
		return nil, diag.New("UNKNOWN_KERNEL", "", "%s.cu has no entry %s: %v", file, entry, err)
	}
	var sizes [256]C.size_t
	if n := C.sb_function_parameters(d.c, f.c, &sizes[0], C.int(len(sizes))); n >= 0 {
		f.sizes = make([]int, n)
		for i := range f.sizes {
			f.sizes[i] = int(sizes[i])
		}
	}
	m.functions[entry] = f
	return f, nil
}

// allowShared raises what a launch may ask for. The caller holds d.mu.
func (d *Device) allowShared(f *function, bytes uint32) error {
	if bytes <= staticShared || bytes <= f.shared {
		return nil
	}
	var e C.sb_error
	if C.sb_function_shared(d.c, f.c, C.uint(bytes), &e) != 0 {
		return failure(&e)
	}
	f.shared = bytes
	return nil
}

// arguments gives each argument as the 8 bytes whose first ones the kernel reads, and holds their sizes against the
// kernel's parameters: a wrong list would read past its end.
func (f *function) arguments(k *device.Kernel, resolve func(device.Pointer) (uint64, error)) ([]C.uint64_t, error) {
	values := make([]C.uint64_t, len(k.Args)+1)[:len(k.Args)] // never nil for C
	for i, a := range k.Args {
		bits, size, err := argument(a, resolve)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		if f.sizes != nil && i < len(f.sizes) && f.sizes[i] != size {
			return nil, fmt.Errorf("argument %d has %d bytes (%T), the kernel wants %d", i, size, a, f.sizes[i])
		}
		values[i] = C.uint64_t(bits)
	}
	if f.sizes != nil && len(f.sizes) != len(k.Args) {
		return nil, fmt.Errorf("%d arguments, the kernel wants %d", len(k.Args), len(f.sizes))
	}
	return values, nil
}
