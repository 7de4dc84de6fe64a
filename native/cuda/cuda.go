// Package cuda runs launch lists on an NVIDIA GPU. It is a thin layer of our own over the driver, NVRTC, cuDNN and
// cuBLASLt, all opened at run time: the same binary starts on a machine without any of them. The libraries are taken
// from the folders of the PyTorch that is to be matched, because another version may choose another kernel, and the
// library calls are the ones PyTorch makes, attribute for attribute, because they decide the choice.
package cuda

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#cgo LDFLAGS: -ldl -lpthread
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"samebits/bridge/diag"
	"samebits/native/device"
	"samebits/native/kernels"
)

// Options say where things are. The zero value is what a plugin wants.
type Options struct {
	Folders []string // of torch's NVIDIA libraries; none: Folders()
	Driver  string   // libcuda; empty: libcuda.so.1, as the system finds it
	Cache   string   // folder of compiled kernels and of cuDNN's choices; empty: CacheFolder()
	Replan  bool     // cuDNN's choices are neither taken from Cache nor kept there; PlansVariable sets it too

	// Source gives the text of a kernel file and the headers it may include; nil: kernels.Source.
	Source func(file string) (text string, headers map[string]string, err error)
	// Log is told what a person may want to know but nobody must act on; nil: nobody.
	Log func(line string)
}

func (o Options) withDefaults() Options {
	if len(o.Folders) == 0 {
		o.Folders = Folders()
	}
	if o.Driver == "" {
		o.Driver = "libcuda.so.1"
	}
	if o.Cache == "" {
		o.Cache = CacheFolder()
	}
	o.Replan = o.Replan || !keepsPlans()
	if o.Source == nil {
		o.Source = kernels.Source
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

// Device is one GPU with its primary context, the same that PyTorch uses in this process.
type Device struct {
	index       int
	c           *C.sb_device
	libraries   *libraries
	compiler    *compiler
	plans       *planCache
	environment []device.Setting
	arch        string

	inUse, peak      atomic.Int64
	blocks, programs atomic.Int64
	closed           atomic.Bool

	mu      sync.Mutex
	modules map[string]*module // by kernel file

	elsewhere *C.struct_CUctx_st // of another GPU, if MakeOtherCurrent took it
	count     int                // of GPUs, then
}

var (
	_ device.Device = (*Device)(nil)
	_ device.Pinner = (*Device)(nil)
)

var errDeviceClosed = errors.New("the device is closed")

// Open opens GPU number index of this process and every library. Its error is a diag.Problems that names each lack.
func Open(index int, o Options) (*Device, error) {
	o = o.withDefaults()
	l := newLibraries()
	d, err := open(index, o, l)
	if err != nil {
		l.free()
		return nil, err
	}
	return d, nil
}

func open(index int, o Options, l *libraries) (*Device, error) {
	if err := l.openDriver(o); err != nil {
		return nil, err
	}
	// The driver makes a context while the linker opens the libraries: either takes a tenth of a second and more.
	opened := make(chan error, 1)
	go func() { opened <- l.openOthers() }()
	c, info, err := l.openGPU(index)
	if missing := <-opened; missing != nil {
		if c != nil {
			var e C.sb_error
			C.sb_device_close(c, &e)
		}
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	d := &Device{
		index:     index,
		c:         c,
		libraries: l,
		compiler:  newCompiler(l, o),
		arch:      fmt.Sprintf("sm_%d%d", info.major, info.minor),
		modules:   map[string]*module{},
	}
	d.environment = environment(l, &info, d.arch)
	folder := o.Cache
	if o.Replan {
		folder = ""
	}
	d.plans = newPlanCache(folder, d.planIdentity(), o.Log)
	return d, nil
}

// Available gives every reason why Open(0, o) would fail, without creating a context; nil if there is none.
func Available(o Options) error {
	_, err := Count(o)
	return err
}

// Count gives how many GPUs Open would find, without creating a context. Its error is every reason why it would fail.
func Count(o Options) (int, error) {
	o = o.withDefaults()
	var (
		problems diag.Problems
		count    int
		err      error
	)
	l := newLibraries()
	defer l.free()
	if err = l.load(C.SB_CUDA, o.Driver); err != nil {
		problems = append(problems, noDriver(o.Driver, err))
	} else if count, err = l.deviceCount(); err != nil {
		found, ok := diag.Of(err)
		if !ok {
			found = diag.Problems{{Reason: "NO_GPU", Summary: err.Error()}}
		}
		problems = append(problems, found...)
	} else if count == 0 {
		problems = append(problems, diag.Problem{Reason: "NO_GPU", Summary: "the driver sees no GPU"})
	}
	_, missing := Locate(o.Folders)
	return count, append(problems, missing...).Err()
}

// Name is cuda:N.
func (d *Device) Name() string { return fmt.Sprintf("cuda:%d", d.index) }

// Arch is the architecture that kernels are compiled for: sm_90.
func (d *Device) Arch() string { return d.arch }

// Environment names the GPU, the driver, and every library with its version and the file it came from.
func (d *Device) Environment() []device.Setting { return d.environment }

// InUse counts the bytes of Alloc and of the programs, not what NVIDIA's libraries take for themselves.
func (d *Device) InUse() int64 { return d.inUse.Load() }

// Waits counts the times that this device was waited for.
func (d *Device) Waits() int64 { return int64(C.sb_waits(d.c)) }

// Peak is the largest InUse so far.
func (d *Device) Peak() int64 { return d.peak.Load() }

// RegisterHost pins memory that the garbage collector does not own, so that copies from and to it need no staging and
// do not block. It is slow and meant to be called once for a mapping.
func (d *Device) RegisterHost(data []byte) (release func() error, err error) {
	if d.closed.Load() {
		return nil, errDeviceClosed
	}
	if len(data) == 0 {
		return func() error { return nil }, nil
	}
	var e C.sb_error
	p := unsafe.Pointer(unsafe.SliceData(data))
	if C.sb_register(d.c, p, C.size_t(len(data)), &e) != 0 {
		return nil, fmt.Errorf("pin %d bytes: %w", len(data), failure(&e))
	}
	return func() error {
		if d.closed.Load() {
			return errDeviceClosed
		}
		var e C.sb_error
		if C.sb_unregister(d.c, p, &e) != 0 {
			return fmt.Errorf("unpin %d bytes: %w", len(data), failure(&e))
		}
		return nil
	}, nil
}

// Close gives the context back. While memory or programs are held it refuses and tells how many: somebody would use them
// later, or forgot them.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return nil
	}
	if blocks, programs := d.blocks.Load(), d.programs.Load(); blocks != 0 || programs != 0 {
		return fmt.Errorf("%s stays open: %d bytes in %d blocks and %d programs are still held", d.Name(), d.InUse(), blocks, programs)
	}
	d.closed.Store(true)
	var (
		e      C.sb_error
		failed error
	)
	for _, m := range d.modules {
		if C.sb_module_unload(d.c, m.c, &e) != 0 {
			failed = errors.Join(failed, failure(&e))
		}
	}
	d.leaveOther()
	if C.sb_device_close(d.c, &e) != 0 {
		failed = errors.Join(failed, failure(&e))
	}
	d.libraries.free()
	return failed
}
