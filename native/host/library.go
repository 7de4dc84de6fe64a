//go:build linux && amd64

package host

// #include <dlfcn.h>
// #include <stdlib.h>
// #include "host.h"
// static const struct ch_kernel *sb_table(void *entry, uint64_t *count) { return ((ch_table_fn)entry)(count); }
import "C"

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"samebits/bridge/diag"
	"samebits/bridge/ownfolder"
)

// A library is a compiled kernel file that is loaded.
type library struct {
	handle  unsafe.Pointer
	image   *os.File // what was loaded; open as long as the library is, see load
	entries map[string]entry
}

// An entry is a kernel that can be launched.
type entry struct {
	run   C.ch_entry_fn
	sizes []uint32 // bytes of each argument
}

// libraries are those of one device, by kernel file.
type libraries struct {
	source func(string) (string, map[string]string, error)
	cache  cache

	mutex     sync.Mutex
	toolchain *toolchain
	loaded    map[string]*library
}

func (l *libraries) init(o options) {
	l.source = o.source
	l.cache = openCache(o.cache)
	l.loaded = map[string]*library{}
}

// compiler finds the toolchain once. A failure is not kept: somebody may install one.
func (l *libraries) compiler() (*toolchain, error) {
	if l.toolchain == nil {
		t, err := findToolchain()
		if err != nil {
			return nil, err
		}
		l.toolchain = t
	}
	return l.toolchain, nil
}

// need loads kernel files, compiling those that are not in the cache, several at once. It gives every problem found.
func (l *libraries) need(files []string) (map[string]*library, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var missing []string
	for _, file := range files {
		if l.loaded[file] == nil {
			missing = append(missing, file)
		}
	}
	if len(missing) > 0 {
		if err := l.build(missing); err != nil {
			return nil, err
		}
	}
	return maps.Clone(l.loaded), nil
}

func (l *libraries) build(files []string) error {
	t, err := l.compiler()
	if err != nil {
		return err
	}
	l.cache.prune()
	ownfolder.Sweep(os.TempDir())
	files = slices.DeleteFunc(files, func(file string) bool {
		lib, _, err := l.cached(t, file)
		if lib != nil {
			l.loaded[file] = lib
		}
		return lib != nil && err == nil
	})
	if len(files) == 0 {
		return nil
	}
	defer l.cache.lock()()
	built := make([]*library, len(files))
	errs := make([]error, len(files))
	slots := make(chan struct{}, min(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	var all sync.WaitGroup
	for i, file := range files {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			built[i], errs[i] = l.one(t, file)
		})
	}
	all.Wait()
	var problems diag.Problems
	for i, file := range files {
		if built[i] != nil {
			l.loaded[file] = built[i]
		}
		if errs[i] == nil {
			continue
		}
		ps, ok := diag.Of(errs[i])
		if !ok {
			return errs[i]
		}
		problems = append(problems, ps...)
	}
	return problems.Err()
}

// unit is a kernel file with everything that decides what comes out of the compiler, and the name of that.
type unit struct {
	text, key string
	headers   map[string]string
}

// cached gives a library that was compiled before, or nil.
func (l *libraries) cached(t *toolchain, file string) (*library, unit, error) {
	text, kernelHeaders, err := l.source(file)
	if err != nil {
		return nil, unit{}, diag.New("UNKNOWN_KERNEL", file+".cu", "%v", err)
	}
	u := unit{text: text, headers: shimHeaders()}
	maps.Copy(u.headers, kernelHeaders)
	u.key = cacheKey(t, file, text, u.headers)
	if image := l.cache.get(u.key); image != nil {
		if lib, err := load(file, image); err == nil {
			return lib, u, nil
		}
	}
	return nil, u, nil
}

func (l *libraries) one(t *toolchain, file string) (*library, error) {
	lib, u, err := l.cached(t, file)
	if lib != nil || err != nil {
		return lib, err
	}
	image, err := t.compile(file, u.text, u.headers)
	if err != nil {
		return nil, err
	}
	l.cache.put(u.key, image)
	return load(file, image)
}

// load loads a library from memory: what was verified is what runs, whatever happens to the cache meanwhile.
func load(file string, image []byte) (*library, error) {
	f, path, err := imageFile(file, image)
	if err != nil {
		return nil, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	runtime.LockOSThread() // dlerror is the thread's
	defer runtime.UnlockOSThread()
	handle := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if handle == nil {
		err := fmt.Errorf("host: loading %s.cu: %s", file, C.GoString(C.dlerror()))
		f.Close()
		return nil, err
	}
	lib := &library{handle: handle, image: f, entries: map[string]entry{}}
	symbol := C.CString("cuda_host_kernels")
	defer C.free(unsafe.Pointer(symbol))
	table := C.dlsym(handle, symbol)
	if table == nil {
		lib.close()
		return nil, fmt.Errorf("host: %s.cu has no table of kernels", file)
	}
	var count C.uint64_t
	first := C.sb_table(table, &count)
	for _, k := range unsafe.Slice(first, count) {
		sizes := unsafe.Slice((*uint32)(k.sizes), k.nargs)
		lib.entries[C.GoString(k.name)] = entry{k.run, slices.Clone(sizes)}
	}
	return lib, nil
}

// imageFile gives a file with the library's bytes and a path to it: a memfd, or a temporary file where those are
// forbidden. The path holds the descriptor's number, and the loader takes two libraries of one path for the same: the file
// must stay open while the library is loaded.
func imageFile(file string, image []byte) (*os.File, string, error) {
	fd, err := unix.MemfdCreate("samebits-"+file, unix.MFD_CLOEXEC)
	var f *os.File
	if err == nil {
		f = os.NewFile(uintptr(fd), file)
	} else {
		if f, err = os.CreateTemp("", "samebits-*.so"); err != nil {
			return nil, "", fmt.Errorf("host: no place for a compiled kernel: %w", err)
		}
		os.Remove(f.Name())
	}
	if _, err := f.Write(image); err != nil {
		f.Close()
		return nil, "", fmt.Errorf("host: writing a compiled kernel: %w", err)
	}
	return f, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), nil
}

func (l *library) close() error {
	defer l.image.Close()
	if C.dlclose(l.handle) != 0 {
		return fmt.Errorf("host: unloading a kernel library failed")
	}
	return nil
}

// entry finds a kernel; an unknown one is an error that lists those of the file.
func (l *library) entry(file, name string) (entry, error) {
	if e, ok := l.entries[name]; ok {
		return e, nil
	}
	names := slices.Sorted(maps.Keys(l.entries))
	return entry{}, fmt.Errorf("%s.cu has no kernel %q (it has: %s)", file, name, strings.Join(names, ", "))
}

func (l *libraries) close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var first error
	for _, lib := range l.loaded {
		if err := lib.close(); err != nil && first == nil {
			first = err
		}
	}
	l.loaded = nil
	return first
}
