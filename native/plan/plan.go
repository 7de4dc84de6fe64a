// Package plan turns a recording into a launch list over fixed addresses: which operations are needed, which run once,
// how long each storage lives, where it lies. A plan holds no device memory; peak memory is known from it alone.
package plan

import (
	"fmt"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/native/device"
	"samebits/native/ops"
)

// Alignment is what PyTorch's caching allocator gives every block on CUDA; libraries choose kernels by it.
const Alignment = 512

// Options are the off switches. Every one keeps the bits; the suite proves each cell with all of them on.
type Options struct {
	KeepAll bool // every result keeps memory of its own and nothing is left out or moved: for traces
	NoHoist bool // run parameter-only work in every step
	OneLane bool // run one operation after the other
	NoFuse  bool // every operation has kernels of its own
	// LibraryNorms leaves to cuDNN what PyTorch leaves to it; else kernels of ours do its arithmetic where it is known.
	LibraryNorms bool

	// State is where parameters, buffers and whatever else outlives a step lie, beside the plan's own memory, so that
	// several plans may share it. Without one, parameters and buffers lie in Fixed memory and only the caller changes them.
	State *State
	// Tail appends commands that follow everything else of the step: an optimizer. It needs a State.
	Tail func(t *Tail) error
}

// Area says in which block of memory a storage lies.
type Area uint8

const (
	Unused Area = iota
	// Fixed memory keeps its content between steps: weights, constants, and what is computed from them once.
	Fixed
	// Arena memory is reused inside a step.
	Arena
	// Shared memory is a State's.
	Shared
)

// Storage is a storage of the recording or, behind these, memory that an operation's lowering asked for.
type Storage struct {
	Bytes   int64
	Area    Area
	Offset  int64 // in its area
	Written bool  // by an operation of the step
	uses    []int // operations that touch it, in order
	always  bool  // in use during the whole step and between steps
	kept    bool  // in use from its first use in a step until the next step begins
	once    bool  // nothing but Setup touches it, so that it may lie in the arena
}

// Range is a part of a launch list: commands From to To-1.
type Range struct{ From, To int }

// Plan is a recording made ready for any device.
type Plan struct {
	Recording  *recording.Recording
	Storages   []Storage
	Setup      []device.Command // run once after weights were written
	Step       []device.Command
	Schedule   *device.Schedule // which commands of Step may run side by side
	Ranges     []Range          // by operation: its commands in Step; empty for views and for what Setup does
	FixedBytes int64
	ArenaBytes int64
	Hoisted    int  // operations that run once instead of in every step
	Dropped    int  // operations whose results nobody reads
	Fused      int  // operations that the kernel of the one before them does too
	Tail       int  // the first command of Step that Tail appended
	Kept       bool // every result has memory of its own
	planner    *planner
	storages   int // how many there were before Place added workspaces
}

// Make plans a recording that was verified. It lists every operation that cannot be lowered.
func Make(r *recording.Recording, options Options) (*Plan, error) {
	if !options.KeepAll && !options.OneLane {
		r = split(r)
	}
	p := &planner{
		options: options,
		plan:    &Plan{Recording: r, Ranges: make([]Range, len(r.Operations)), Kept: options.KeepAll},
	}
	var problems diag.Problems
	p.lookup(&problems)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	p.fuse()
	p.classify()
	p.lifetimes()
	p.lower(&problems)
	p.share(&problems)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if err := p.tail(); err != nil {
		return nil, err
	}
	p.finish()
	return p.plan, nil
}

// finish lays memory out once every command is known.
func (p *planner) finish() {
	p.plan.planner, p.plan.storages = p, len(p.plan.Storages)
	p.findOnce()
	p.placeFixed()
	p.choose(nil, 0)
}

// Slot is the range of bytes that a pointer's storage has, for bounds checks and reports.
func (p *Plan) Slot(at device.Pointer) (Area, int64, int64) {
	s := p.Storages[at.Storage]
	return s.Area, s.Offset + at.Offset, s.Bytes - at.Offset
}

func operationPath(i int) string { return fmt.Sprintf("operations[%d]", i) }

// lookup finds every operation in the registry and lists all that are unknown, each name once with its count.
func (p *planner) lookup(problems *diag.Problems) {
	r := p.plan.Recording
	p.known = make([]ops.Registration, len(r.Operations))
	first, count := map[string]int{}, map[string]int{}
	var order []string
	for i := range r.Operations {
		op := &r.Operations[i]
		known, ok := ops.Lookup(op.Name)
		if !ok {
			if count[op.Name]++; count[op.Name] == 1 {
				first[op.Name] = i
				order = append(order, op.Name)
			}
			continue
		}
		p.known[i] = known
	}
	for _, name := range order {
		i := first[name]
		problems.Add("UNKNOWN_OPERATION", operationPath(i), "%s has no native implementation (%d calls, first in module %q)",
			name, count[name], r.Operations[i].Module)
	}
}
