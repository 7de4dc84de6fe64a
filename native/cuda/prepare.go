package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"samebits/bridge/diag"
	"samebits/native/device"
)

// preparation is the work of one Prepare. Plans and heuristic answers are made once for each signature, and tried:
// PyTorch takes the first plan that runs, and running also loads the kernels, which must not happen in a capture. A trial
// runs on the memory of its command if Options.Place gave it, else on scratch memory whose addresses have the alignment
// of the real ones.
type preparation struct {
	d       *Device
	p       *program
	options device.Options
	resolve device.Resolve

	given      []given // by command, if Options.Place was asked
	scratch    buffer  // for the tensors of a trial
	workspace  buffer  // for its library call
	plans      map[convolution]*plan
	linears    map[linear]*chosenLinear
	tried      map[trial]bool
	persistent persistent
	needs      []int64 // bytes of workspace that was not given, by lane
	packs      []pendingPack
	norms      []pendingNorm
	products   []pendingLinear
	matmuls    []pendingMatmul
}

// given is a workspace that Options.Place gave.
type given struct {
	address C.sb_pointer
	bytes   int64
}

// trial is a signature that ran on a lane. Every lane has handles of its own, which may load and allocate when they
// first run something.
type trial struct {
	signature any
	lane      int
}

// pendingPack is a convolution that waits for the address of the workspace.
type pendingPack struct {
	command int
	plan    *plan
	x, w, y C.sb_pointer
}

// pendingNorm likewise. Its descriptors are made.
type pendingNorm struct {
	command int
	c       C.sb_norm
}

// pendingLinear likewise.
type pendingLinear struct {
	command int
	c       C.sb_linear
	choice  *chosenLinear
}

// pendingMatmul likewise.
type pendingMatmul struct {
	command int
	c       C.sb_matmul
}

// Prepare compiles the kernels, chooses every library call and allocates the workspace. Its error lists every command
// that cannot be prepared.
func (d *Device) Prepare(list []device.Command, resolve device.Resolve, o device.Options) (device.Program, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return nil, errDeviceClosed
	}
	p, err := d.newProgram(list)
	if err != nil {
		return nil, err
	}
	w := &preparation{
		d: d, p: p, options: o, resolve: resolve,
		scratch: buffer{d: d}, workspace: buffer{d: d},
		plans: map[convolution]*plan{}, linears: map[linear]*chosenLinear{}, tried: map[trial]bool{},
	}
	if o.Place != nil {
		err = w.askForPlace(list)
	}
	if err == nil {
		err = p.openLanes(w.options.Schedule, len(list))
	}
	if err == nil {
		w.needs = make([]int64, len(p.lanes))
		err = w.all(list)
	}
	if err == nil && p.lane != nil {
		err = w.lanes()
	}
	d.plans.flush()
	err = errors.Join(err, w.scratch.free(), w.workspace.free())
	if err == nil {
		err = w.finish()
	}
	if err != nil {
		for i := range w.norms {
			C.sb_norm_close(p.q, &w.norms[i].c)
		}
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// all prepares each command, and goes on after one that is wrong, so that all are told at once.
func (w *preparation) all(list []device.Command) error {
	var files []string
	seen := map[string]bool{}
	for _, c := range list {
		if k, ok := c.(*device.Kernel); ok && !seen[k.File] {
			seen[k.File] = true
			files = append(files, k.File)
		}
	}
	if err := w.d.ensureModules(files); err != nil {
		return err
	}
	var problems diag.Problems
	for i, c := range list {
		err := w.one(i, c)
		if err == nil {
			continue
		}
		if found, ok := diag.Of(err); ok {
			if found[0].Reason == "DEVICE_LOST" || found[0].Reason == "OUT_OF_MEMORY" {
				return err
			}
			for _, p := range found {
				if p.Path == "" {
					p.Path = commandPath(i)
				}
				p.Summary = w.p.names[i] + ": " + p.Summary
				problems = append(problems, p)
			}
			continue
		}
		problems.Add("BAD_COMMAND", commandPath(i), "%s: %v", w.p.names[i], err)
	}
	return problems.Err()
}

func (w *preparation) one(i int, c device.Command) error {
	switch c := c.(type) {
	case *device.Kernel:
		return w.kernel(i, c)
	case *device.Convolution:
		return w.convolution(i, c)
	case *device.BatchNorm:
		return w.batchNorm(i, c)
	case *device.BatchNormTraining:
		return w.normTraining(i, c)
	case *device.BatchNormBackward:
		return w.normBackward(i, c)
	case *device.Matmul:
		return w.matmul(i, c)
	case *device.MatVec:
		return w.matVec(i, c)
	case *device.Linear:
		return w.linear(i, c)
	case *device.Copy:
		return w.copy(i, c)
	case *device.Fill:
		return w.fill(i, c)
	}
	return fmt.Errorf("no command that this device knows")
}

// address resolves a place; no storage lies at address 0.
func (w *preparation) address(p device.Pointer) (uint64, error) {
	a := w.resolve(p)
	if a == 0 {
		return 0, fmt.Errorf("storage %d has no address", p.Storage)
	}
	return uint64(a), nil
}

func (w *preparation) addresses(ps ...device.Pointer) ([]uint64, error) {
	out := make([]uint64, len(ps))
	for i, p := range ps {
		a, err := w.address(p)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

func (w *preparation) kernel(i int, k *device.Kernel) error {
	f, err := w.d.function(k.File, k.Entry)
	if err != nil {
		return err
	}
	values, err := f.arguments(k, w.address)
	if err != nil {
		return err
	}
	grid, block, err := geometry(k)
	if err != nil {
		return err
	}
	if err := w.d.allowShared(f, k.Shared); err != nil {
		return fmt.Errorf("%d bytes of dynamic shared memory: %w", k.Shared, err)
	}
	C.sb_list_kernel(w.p.list, C.int(i), f.c, &grid[0], &block[0], C.uint(k.Shared), C.int(len(values)),
		unsafe.SliceData(values))
	w.p.choices[i] = k.Entry + " " + w.d.arch
	return nil
}

func (w *preparation) copy(i int, c *device.Copy) error {
	at, err := w.addresses(c.To, c.From)
	if err != nil {
		return err
	}
	n := uint64(c.Bytes)
	if c.Bytes < 0 || (at[0] < at[1]+n && at[1] < at[0]+n) {
		return fmt.Errorf("%d bytes from %#x to %#x; the places must not overlap", c.Bytes, at[1], at[0])
	}
	C.sb_list_copy(w.p.list, C.int(i), C.sb_pointer(at[0]), C.sb_pointer(at[1]), C.size_t(n))
	return nil
}

func (w *preparation) fill(i int, c *device.Fill) error {
	to, err := w.address(c.To)
	if err != nil {
		return err
	}
	if c.Bytes < 0 {
		return fmt.Errorf("%d bytes", c.Bytes)
	}
	C.sb_list_fill(w.p.list, C.int(i), C.sb_pointer(to), C.uchar(c.Byte), C.size_t(c.Bytes))
	return nil
}

// finish allocates the workspace at its last size and gives it to the calls that need it.
func (w *preparation) finish() error {
	at, err := w.workspaces()
	if err != nil {
		return err
	}
	for _, c := range w.packs {
		if err := w.pack(c, w.workspaceOf(c.command, c.plan.chosen.Workspace, at)); err != nil {
			return err
		}
	}
	for _, c := range w.norms {
		c.c.workspace = w.workspaceOf(c.command, int64(c.c.workspace_bytes), at)
		C.sb_list_norm(w.p.list, C.int(c.command), &c.c)
	}
	w.norms = nil // their descriptors are the list's now
	for _, c := range w.matmuls {
		c.c.workspace = w.workspaceOf(c.command, matmulWorkspace, at)
		C.sb_list_matmul(w.p.list, C.int(c.command), &c.c)
	}
	for _, c := range w.products {
		if err := w.product(c, w.workspaceOf(c.command, linearWorkspace, at)); err != nil {
			return err
		}
	}
	return nil
}

// workspaces allocates one block with a part for each lane, since lanes run at the same time.
func (w *preparation) workspaces() ([]C.sb_pointer, error) {
	var bytes int64
	at := make([]C.sb_pointer, len(w.needs))
	for lane, need := range w.needs {
		if need > 0 {
			bytes = (bytes + alignment - 1) / alignment * alignment
			at[lane] = C.sb_pointer(bytes)
			bytes += need
		}
	}
	if bytes == 0 {
		return at, nil
	}
	m, err := w.d.alloc(bytes)
	if err != nil {
		return nil, err
	}
	w.p.workspace = m
	for lane, need := range w.needs {
		if need > 0 {
			at[lane] += m.address
		}
	}
	return at, nil
}

// need is told of the workspace of command i.
func (w *preparation) need(i int, bytes int64) {
	if w.given == nil || w.given[i].bytes < bytes {
		lane := w.p.laneOf(i)
		w.needs[lane] = max(w.needs[lane], bytes)
	}
}

// workspaceOf is where command i, which needs so many bytes, has them: where Options.Place said, or in its lane's part of
// what was allocated.
func (w *preparation) workspaceOf(i int, bytes int64, lanes []C.sb_pointer) C.sb_pointer {
	switch {
	case bytes == 0:
		return 0
	case w.given != nil && w.given[i].bytes >= bytes:
		return w.given[i].address
	}
	return lanes[w.p.laneOf(i)]
}

// trialWorkspace is workspaceOf while nothing is allocated yet.
func (w *preparation) trialWorkspace(i int, bytes int64) (C.sb_pointer, error) {
	if w.given != nil && w.given[i].bytes >= bytes && bytes > 0 {
		return w.given[i].address, nil
	}
	return w.workspace.atLeast(bytes)
}

// askForPlace tells Options.Place what workspaces the commands will want, and keeps its answer. A convolution's is that
// of its first plan that builds, which seldom does not run.
func (w *preparation) askForPlace(list []device.Command) error {
	wanted := make([]int64, len(list))
	for i, c := range list {
		switch c := c.(type) {
		case *device.Convolution:
			var err error
			if wanted[i], err = w.planAhead(c); err != nil {
				return err
			}
		case *device.Matmul, *device.MatVec:
			wanted[i] = matmulWorkspace
		case *device.Linear:
			wanted[i] = linearWorkspace
		}
	}
	placement, err := w.options.Place(wanted)
	if err != nil {
		return err
	}
	w.options.Schedule = placement.Schedule
	w.given = make([]given, len(list))
	for i, at := range placement.Workspaces {
		if i < len(list) && wanted[i] > 0 {
			address, err := w.address(at)
			if err != nil {
				return fmt.Errorf("workspace of %s: %w", commandPath(i), err)
			}
			w.given[i] = given{C.sb_pointer(address), wanted[i]}
		}
	}
	return nil
}

// firstOn reports whether a signature has not run on the lane of command i yet.
func (w *preparation) firstOn(i int, signature any) bool {
	t := trial{signature, w.p.laneOf(i)}
	first := !w.tried[t]
	w.tried[t] = true
	return first
}

// buffer is zeroed memory that grows.
type buffer struct {
	d *Device
	m *memory
}

func (b *buffer) atLeast(bytes int64) (C.sb_pointer, error) {
	if bytes == 0 {
		return 0, nil
	}
	if b.m != nil && b.m.bytes >= bytes {
		return b.m.address, nil
	}
	if err := b.free(); err != nil {
		return 0, err
	}
	m, err := b.d.alloc(bytes)
	if err != nil {
		return 0, err
	}
	b.m = m
	return m.address, m.Fill(0, bytes, 0)
}

func (b *buffer) free() error {
	if b.m == nil {
		return nil
	}
	m := b.m
	b.m = nil
	return m.Free()
}

// area is a tensor of a trial: so many bytes, at the alignment of a real address.
type area struct {
	address uint64
	bytes   int64
}

// onTrial gives each area the address that a trial uses for it.
func (w *preparation) onTrial(areas ...area) ([]C.sb_pointer, error) {
	if w.given == nil {
		return w.place(areas...)
	}
	out := make([]C.sb_pointer, len(areas))
	for i, a := range areas {
		out[i] = C.sb_pointer(a.address)
	}
	return out, nil
}

// place gives each area an address in scratch memory.
func (w *preparation) place(areas ...area) ([]C.sb_pointer, error) {
	offsets := make([]int64, len(areas))
	var end int64
	for i, a := range areas {
		offsets[i] = end + int64(a.address%alignment)
		end = (offsets[i] + a.bytes + alignment - 1) / alignment * alignment
	}
	base, err := w.scratch.atLeast(end)
	if err != nil {
		return nil, err
	}
	out := make([]C.sb_pointer, len(areas))
	for i := range areas {
		out[i] = base + C.sb_pointer(offsets[i])
	}
	return out, nil
}

func areaOf(t device.Tensor, address uint64) area {
	return area{address: address, bytes: extent(t.Sizes, t.Strides) * t.DType.Size()}
}
