//go:build linux && amd64

package host

// #include <stdlib.h>
// #include <string.h>
// #include "host.h"
// static void *sb_pointer(uintptr_t address) { return (void *)address; }
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"samebits/bridge/diag"
	"samebits/native/device"
)

// lowering turns a list into C commands. It collects problems, so that all of them are reported at once.
type lowering struct {
	program   *program
	resolve   device.Resolve
	libraries map[string]*library
	problems  diag.Problems
	path      string // of the command at hand
	packed    int64  // bytes that the largest convolution needs
}

// problem records what is wrong with the command at hand.
func (l *lowering) problem(reason, format string, args ...any) {
	l.problems.Add(reason, l.path, format, args...)
}

// lower fills p.list.
func (p *program) lower(list []device.Command, resolve device.Resolve) error {
	l := &lowering{program: p, resolve: resolve}
	var files []string
	seen := map[string]bool{}
	arguments := 0
	for _, c := range list {
		if k, ok := c.(*device.Kernel); ok {
			arguments += len(k.Args)
			if !seen[k.File] {
				seen[k.File] = true
				files = append(files, k.File)
			}
		}
	}
	var err error
	if l.libraries, err = p.device.libraries.need(files); err != nil {
		return err
	}
	p.list = C.sb_host_list_new(C.int64_t(len(list)), C.int64_t(arguments))
	if p.list == nil {
		return outOfMemory(int64(len(list)))
	}
	p.names, p.choices = make([]string, len(list)), make([]string, len(list))
	commands := unsafe.Slice(p.list.commands, len(list))
	arguments = 0
	for i, c := range list {
		l.path = fmt.Sprintf("commands[%d]", i)
		to := &commands[i]
		body := unsafe.Pointer(&to.anon0)
		switch c := c.(type) {
		case *device.Kernel:
			to.kind = C.SB_KERNEL
			p.names[i] = c.File + "/" + c.Entry
			l.kernel(c, (*C.struct_sb_kernel)(body), i, arguments)
			arguments += len(c.Args)
		case *device.Convolution:
			to.kind = C.SB_CONVOLUTION
			p.names[i] = "convolution"
			l.convolution(c, (*C.struct_sb_convolution)(body))
		case *device.Linear:
			to.kind = C.SB_CONVOLUTION
			p.names[i] = "linear"
			l.linear(c, (*C.struct_sb_convolution)(body))
		case *device.Matmul:
			to.kind = C.SB_CONVOLUTION
			p.names[i] = "matmul"
			l.matmul(c, (*C.struct_sb_convolution)(body))
		case *device.MatVec:
			to.kind = C.SB_CONVOLUTION
			p.names[i] = "matrix times vector"
			l.matVec(c, (*C.struct_sb_convolution)(body))
		case *device.BatchNorm:
			to.kind = C.SB_BATCH_NORM
			p.names[i] = "batch norm"
			l.batchNorm(c, (*C.struct_sb_batch_norm)(body))
		case *device.BatchNormTraining:
			to.kind = C.SB_NORM_TRAINING
			p.names[i] = "batch norm training"
			l.normTraining(c, (*C.struct_sb_norm_training)(body))
		case *device.BatchNormBackward:
			to.kind = C.SB_NORM_BACKWARD
			p.names[i] = "batch norm backward"
			l.normBackward(c, (*C.struct_sb_norm_backward)(body))
		case *device.Copy:
			to.kind = C.SB_COPY
			p.names[i] = "copy"
			l.copy(c, (*C.struct_sb_copy)(body))
		case *device.Fill:
			to.kind = C.SB_FILL
			p.names[i] = "fill"
			body := (*C.struct_sb_fill)(body)
			body.to = l.address("to", c.To, c.Bytes)
			body.bytes = C.int64_t(c.Bytes)
			body.byte = C.int32_t(c.Byte)
		default:
			l.problem("UNSUPPORTED", "the host device has no command %T", c)
		}
		p.choices[i] = p.names[i]
	}
	if err := l.problems.Err(); err != nil {
		return err
	}
	return p.allocatePacked(l.packed, commands)
}

// allocatePacked gives all convolutions the same workspace: one runs at a time.
func (p *program) allocatePacked(bytes int64, commands []C.struct_sb_command) error {
	if bytes == 0 {
		return nil
	}
	if p.packed = C.aligned_alloc(64, C.size_t((bytes+63)/64*64)); p.packed == nil {
		return outOfMemory(bytes)
	}
	p.workspace = bytes
	p.device.hold(bytes)
	for i := range commands {
		if commands[i].kind == C.SB_CONVOLUTION {
			(*C.struct_sb_convolution)(unsafe.Pointer(&commands[i].anon0)).packed = p.packed
		}
	}
	return nil
}

// address resolves a pointer to that many bytes; zero bytes may be nowhere.
func (l *lowering) address(name string, p device.Pointer, bytes int64) unsafe.Pointer {
	if bytes < 0 {
		l.problem("BAD_SIZE", "%s has %d bytes", name, bytes)
		return nil
	}
	a := l.resolve(p)
	if a == 0 && bytes > 0 {
		l.problem("BAD_ADDRESS", "%s has no address: storage %d offset %d", name, p.Storage, p.Offset)
	}
	return C.sb_pointer(C.uintptr_t(a))
}

func (l *lowering) copy(c *device.Copy, to *C.struct_sb_copy) {
	to.to = l.address("to", c.To, c.Bytes)
	to.from = l.address("from", c.From, c.Bytes)
	to.bytes = C.int64_t(c.Bytes)
	a, b := uintptr(to.to), uintptr(to.from)
	if c.Bytes > 0 && a < b+uintptr(c.Bytes) && b < a+uintptr(c.Bytes) {
		l.problem("BAD_COPY", "the two places of a copy of %d bytes overlap", c.Bytes)
	}
}

// The limits of a launch are those of sm_90, so that what runs here can run there.
var (
	maxGrid  = [3]uint32{1<<31 - 1, 65535, 65535}
	maxBlock = [3]uint32{1024, 1024, 64}
)

func (l *lowering) kernel(k *device.Kernel, to *C.struct_sb_kernel, command, firstArgument int) {
	e, err := l.libraries[k.File].entry(k.File, k.Entry)
	if err != nil {
		l.problem("UNKNOWN_KERNEL", "%v", err)
		return
	}
	threads := uint64(1)
	for i := range 3 {
		if k.Grid[i] < 1 || k.Grid[i] > maxGrid[i] || k.Block[i] < 1 || k.Block[i] > maxBlock[i] {
			l.problem("BAD_LAUNCH", "%s: grid %v and block %v: dimension %d is out of range", k.Entry, k.Grid, k.Block, i)
			return
		}
		threads *= uint64(k.Block[i])
		to.grid[i], to.block[i] = C.uint32_t(k.Grid[i]), C.uint32_t(k.Block[i])
	}
	if threads > C.CH_MAX_THREADS {
		l.problem("BAD_LAUNCH", "%s: block %v has %d threads, more than %d", k.Entry, k.Block, threads, C.CH_MAX_THREADS)
	}
	if k.Shared > C.CH_MAX_SHARED {
		l.problem("BAD_LAUNCH", "%s: %d bytes of shared memory, more than %d", k.Entry, k.Shared, C.CH_MAX_SHARED)
	}
	if len(k.Args) != len(e.sizes) {
		l.problem("BAD_LAUNCH", "%s takes %d arguments, not %d", k.Entry, len(e.sizes), len(k.Args))
		return
	}
	to.run, to.shared_bytes = e.run, C.uint32_t(k.Shared)
	values := unsafe.Slice(C.sb_list_arguments(l.program.list, C.int64_t(command), C.int64_t(firstArgument),
		C.int64_t(len(k.Args))), len(k.Args))
	for i, arg := range k.Args {
		bits, size, err := l.argument(arg)
		switch {
		case err != nil:
			l.problem("BAD_LAUNCH", "%s: argument %d: %v", k.Entry, i, err)
		case size != e.sizes[i]:
			l.problem("BAD_LAUNCH", "%s: argument %d (%T) has %d bytes, the kernel takes %d", k.Entry, i, arg, size, e.sizes[i])
		}
		values[i] = C.uint64_t(bits)
	}
}

// argument gives an argument's bits, in the low bytes, and how many bytes they are.
func (l *lowering) argument(arg any) (bits uint64, size uint32, err error) {
	switch v := arg.(type) {
	case device.Pointer:
		a := l.resolve(v)
		if a == 0 {
			return 0, 0, fmt.Errorf("no address: storage %d offset %d", v.Storage, v.Offset)
		}
		return uint64(a), 8, nil
	case int32:
		return uint64(uint32(v)), 4, nil
	case uint32:
		return uint64(v), 4, nil
	case int64:
		return uint64(v), 8, nil
	case uint64:
		return v, 8, nil
	case float32:
		return uint64(math.Float32bits(v)), 4, nil
	case float64:
		return math.Float64bits(v), 8, nil
	}
	return 0, 0, fmt.Errorf("no kernel takes a %T", arg)
}
