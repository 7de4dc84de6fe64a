package cuda

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"unsafe"

	"samebits/bridge/diag"
)

// compiler turns kernel files into cubins, from the cache where it can. It needs no GPU.
type compiler struct {
	libraries *libraries
	cache     cache
	source    func(file string) (string, map[string]string, error)

	toolchain func() (string, error) // what of the toolchain decides about a cubin, computed once
}

func newCompiler(l *libraries, o Options) *compiler {
	return &compiler{
		libraries: l,
		cache:     cache{folder: o.Cache, log: o.Log},
		source:    o.Source,
		toolchain: sync.OnceValues(func() (string, error) { return toolchain(l) }),
	}
}

// CompileAll compiles kernel files for an architecture (sm_90) without a GPU, and gives the size of each cubin. It
// lists every file that does not compile.
func CompileAll(files []string, arch string, o Options) (map[string]int, error) {
	o = o.withDefaults()
	l := newLibraries()
	defer l.free()
	l.found, _ = Locate(o.Folders)
	if l.found.NVRTC == "" || l.found.NVRTCBuiltins == "" || l.found.Include == "" {
		return nil, diag.Problems{notFound("NVRTC with its builtins and headers", o.Folders)}
	}
	if err := l.openCompiler(); err != nil {
		return nil, err
	}
	cubins, err := newCompiler(l, o).cubins(files, arch)
	sizes := map[string]int{}
	for file, cubin := range cubins {
		sizes[file] = len(cubin)
	}
	return sizes, err
}

// cubins compiles several files side by side.
func (c *compiler) cubins(files []string, arch string) (map[string][]byte, error) {
	var (
		mu       sync.Mutex
		wait     sync.WaitGroup
		cubins   = map[string][]byte{}
		failures = map[string]error{}
		slots    = make(chan struct{}, min(runtime.GOMAXPROCS(0), 8))
	)
	for _, file := range files {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer wait.Done()
			defer func() { <-slots }()
			cubin, err := c.cubin(file, arch)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures[file] = err
				return
			}
			cubins[file] = cubin
		}()
	}
	wait.Wait()
	return cubins, joined(failures)
}

// joined makes one error of many: all problems in one list if they are problems.
func joined(failures map[string]error) error {
	var (
		problems diag.Problems
		others   []error
		files    []string
	)
	for file := range failures {
		files = append(files, file)
	}
	sort.Strings(files)
	for _, file := range files {
		if found, ok := diag.Of(failures[file]); ok {
			problems = append(problems, found...)
		} else {
			others = append(others, failures[file])
		}
	}
	if len(others) > 0 {
		return errors.Join(append(others, problems.Err())...)
	}
	return problems.Err()
}

// cubin compiles one file.
func (c *compiler) cubin(file, arch string) ([]byte, error) {
	text, headers, err := c.source(file)
	if err != nil {
		return nil, diag.New("UNKNOWN_KERNEL", file, "%v", err)
	}
	toolchain, err := c.toolchain()
	if err != nil {
		return nil, err
	}
	options := []string{"--gpu-architecture=" + arch, "--fmad=false", "--std=c++17"}
	key := cacheKey(toolchain, text, headers, options)
	if cubin, ok := c.cache.get(key, file); ok {
		return cubin, nil
	}
	cubin, err := c.compile(file, text, headers, append(options, "--include-path="+c.libraries.found.Include))
	if err != nil {
		return nil, err
	}
	c.cache.put(key, cubin)
	return cubin, nil
}

// compile calls NVRTC.
func (c *compiler) compile(file, text string, headers map[string]string, options []string) ([]byte, error) {
	var names, texts []string
	for name := range headers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		texts = append(texts, headers[name])
	}
	var (
		e         C.sb_error
		out       C.sb_compilation
		program   = file + ".cu"
		cText     = C.CString(text)
		cName     = C.CString(program)
		cNames    = newStrings(names)
		cTexts    = newStrings(texts)
		cOptions  = newStrings(options)
		releasing = []unsafe.Pointer{unsafe.Pointer(cText), unsafe.Pointer(cName)}
	)
	defer func() {
		for _, p := range append(releasing, unsafe.Pointer(out.cubin), unsafe.Pointer(out.log)) {
			C.free(p)
		}
		cNames.free()
		cTexts.free()
		cOptions.free()
	}()
	status := C.sb_compile(c.libraries.c, cText, cName, C.int(len(names)), cTexts.list, cNames.list,
		C.int(len(options)), cOptions.list, &out, &e)
	if status != 0 {
		p := diag.Problem{Reason: "KERNEL_COMPILE", Path: program, Summary: failure(&e).Error()}
		if out.log != nil {
			p.Detail = strings.TrimSpace(C.GoString(out.log))
		}
		return nil, diag.Problems{p}
	}
	return C.GoBytes(unsafe.Pointer(out.cubin), C.int(out.cubin_bytes)), nil
}

// toolchain identifies NVRTC and the headers that it reads from disk. NVRTC tells only major and minor version; the
// library's size tells builds apart.
func toolchain(l *libraries) (string, error) {
	version, err := l.version(C.SB_NVRTC)
	if err != nil {
		return "", err
	}
	id := "nvrtc " + version
	for _, path := range []string{l.found.NVRTC, l.found.NVRTCBuiltins} {
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("identify the compiler: %w", err)
		}
		id += fmt.Sprintf(" %d", info.Size())
	}
	headers := map[string]string{}
	for _, name := range []string{"cuda_bf16.h", "cuda_bf16.hpp", "cuda_fp16.h", "cuda_fp16.hpp"} {
		text, err := os.ReadFile(filepath.Join(l.found.Include, name))
		if err != nil {
			return "", fmt.Errorf("identify the compiler: %w", err)
		}
		headers[name] = string(text)
	}
	return id + " " + cacheKey("", "", headers, nil), nil
}

// cStrings is a list of strings in C's memory.
type cStrings struct {
	list  **C.char
	items []*C.char
}

func newStrings(list []string) cStrings {
	s := cStrings{list: (**C.char)(C.calloc(C.size_t(len(list)+1), C.size_t(unsafe.Sizeof(uintptr(0)))))}
	s.items = unsafe.Slice(s.list, len(list))
	for i, text := range list {
		s.items[i] = C.CString(text)
	}
	return s
}

func (s cStrings) free() {
	for _, item := range s.items {
		C.free(unsafe.Pointer(item))
	}
	C.free(unsafe.Pointer(s.list))
}
