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
	file       string
	c          *C.struct_CUmod_st
	parameters map[string][]parameter // by entry
	functions  map[string]*function   // by entry
}

// function is an entry that is ready to launch.
type function struct {
	c          *C.struct_CUfunc_st
	parameters []parameter
	shared     uint32
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
		taken, err := parameters(cubin)
		if err != nil {
			return fmt.Errorf("load kernels of %s.cu: %w", file, err)
		}
		m := &module{file: file, parameters: taken, functions: map[string]*function{}}
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
	taken, ok := m.parameters[entry]
	if !ok {
		return nil, diag.New("UNKNOWN_KERNEL", "", "%s.cu has no entry %s", file, entry)
	}
	f := &function{parameters: taken}
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
		if i < len(f.parameters) && f.parameters[i].bytes != size {
			return nil, fmt.Errorf("argument %d has %d bytes (%T), the kernel wants %d", i, size, a, f.parameters[i].bytes)
		}
		values[i] = C.uint64_t(bits)
	}
	if len(f.parameters) != len(k.Args) {
		return nil, fmt.Errorf("%d arguments, the kernel wants %d", len(k.Args), len(f.parameters))
	}
	return values, nil
}

// What every GPU since compute capability 3.0 can launch. A kernel that needs many registers may allow less.
var (
	maxGrid  = [3]uint32{1<<31 - 1, 65535, 65535}
	maxBlock = [3]uint32{1024, 1024, 64}
)

const maxThreads = 1024 // of a block

// geometry gives a launch's grid and block, which no GPU would refuse.
func geometry(k *device.Kernel) (grid, block [3]C.uint, err error) {
	threads := uint64(1)
	for i := range 3 {
		if k.Grid[i] == 0 || k.Block[i] == 0 {
			return grid, block, fmt.Errorf("grid %v and block %v; none may be 0", k.Grid, k.Block)
		}
		if k.Grid[i] > maxGrid[i] {
			return grid, block, fmt.Errorf("grid %v; a GPU takes at most %v", k.Grid, maxGrid)
		}
		if k.Block[i] > maxBlock[i] {
			return grid, block, fmt.Errorf("block %v; a GPU takes at most %v", k.Block, maxBlock)
		}
		threads *= uint64(k.Block[i])
		grid[i], block[i] = C.uint(k.Grid[i]), C.uint(k.Block[i])
	}
	if threads > maxThreads {
		return grid, block, fmt.Errorf("block %v has %d threads; a GPU takes at most %d", k.Block, threads, maxThreads)
	}
	return grid, block, nil
}
