//go:build linux && amd64

package host

// #include "host.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"samebits/bridge/diag"
	"samebits/native/device"
	"samebits/native/kernels"
)

// Device is the CPU. It implements device.Device.
type Device struct {
	handle    *C.struct_sb_host
	options   options
	libraries libraries

	mutex    sync.Mutex // guards what follows
	closed   bool
	memories map[*memory]string // where each was allocated
	programs int
	inUse    atomic.Int64
	peak     atomic.Int64
}

var _ device.Device = (*Device)(nil)

type options struct {
	threads int
	vector  int
	cache   string
	poison  bool
	source  func(file string) (text string, headers map[string]string, err error)
}

// Option changes how the device is opened.
type Option func(*options)

// Threads sets how many threads work at once. The default is SAMEBITS_THREADS or else GOMAXPROCS.
func Threads(n int) Option { return func(o *options) { o.threads = n } }

// Cache sets the folder where compiled kernels are kept. The default is SAMEBITS_CACHE or else samebits in the user's
// cache folder.
func Cache(dir string) Option { return func(o *options) { o.cache = dir } }

// Poison fills fresh memory and every block's dynamic shared memory with 0xff, which is a NaN in every float type: for
// tests that must see when something is read before it is written.
func Poison() Option { return func(o *options) { o.poison = true } }

// vectorBits limits the width of vectors in convolutions: 256 or 512.
func vectorBits(n int) Option { return func(o *options) { o.vector = n } }

// withSource replaces package kernels.
func withSource(source func(string) (string, map[string]string, error)) Option {
	return func(o *options) { o.source = source }
}

// Open starts the device. It fails on a CPU without AVX2, FMA and F16C. A missing compiler is no error before a
// program needs a kernel.
func Open(opts ...Option) (*Device, error) {
	o := options{vector: int(C.sb_cpu_vector()), source: kernels.Source}
	if o.vector == 0 {
		return nil, diag.Problems{{Reason: "UNSUPPORTED_CPU", Path: "host",
			Summary: "this CPU lacks AVX2, FMA or F16C", Detail: "the host device needs x86-64-v3: Haswell, Zen or newer"}}
	}
	for _, opt := range opts {
		opt(&o)
	}
	if o.threads == 0 {
		n, err := defaultThreads()
		if err != nil {
			return nil, err
		}
		o.threads = n
	}
	handle := C.sb_host_new(C.int(o.threads), C.int(o.vector), C.int(boolInt(o.poison)))
	if handle == nil {
		return nil, fmt.Errorf("host: no memory for %d threads", o.threads)
	}
	d := &Device{handle: handle, options: o, memories: map[*memory]string{}}
	d.libraries.init(o)
	return d, nil
}

func defaultThreads() (int, error) {
	text := os.Getenv("SAMEBITS_THREADS")
	if text == "" {
		return runtime.GOMAXPROCS(0), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1024 {
		return 0, diag.New("BAD_SETTING", "SAMEBITS_THREADS", "%q is no number of threads from 1 to 1024", text)
	}
	return n, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Name is host.
func (d *Device) Name() string { return "host" }

// InUse is the bytes of all memories.
func (d *Device) InUse() int64 { return d.inUse.Load() }

// Waits is 0: the CPU has done its work when a call returns.
func (d *Device) Waits() int64 { return 0 }

// Peak is the most that InUse ever was.
func (d *Device) Peak() int64 { return d.peak.Load() }

// Close stops the threads and unloads the kernels. It refuses while memories or programs are in use: who holds them
// would read freed memory.
func (d *Device) Close() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.closed {
		return fmt.Errorf("host: closed twice")
	}
	for _, where := range d.memories {
		return fmt.Errorf("host: cannot close: %d memories and %d programs are in use; one memory is from %s",
			len(d.memories), d.programs, where)
	}
	if d.programs > 0 {
		return fmt.Errorf("host: cannot close: %d programs are in use", d.programs)
	}
	d.closed = true
	C.sb_host_free(d.handle)
	return d.libraries.close()
}
