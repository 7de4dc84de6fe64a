package plan

import (
	"fmt"
	"slices"

	"samebits/native/device"
)

// Lanes cost memory: what runs side by side cannot share it. A plan may need as much as the reference surely does (see
// reference), or so much more than one that runs one operation after the other; else it takes fewer lanes. Next to nothing is
// granted where one workspace is a good part of the arena: there the reference needs the most, too, and has nothing to spare.
const (
	laneTolerance   = 1.0 / 32 // of the memory for a step and its weights,
	laneAllowance   = 1 << 20  // and so many bytes
	goodPart        = 4        // a workspace is one if so many of it are the arena
	strictTolerance = 1.0 / 256
	worthLanes      = 8 // lanes between which operations often wait must shorten the chain by so much of it
)

// largeWorkspace is what a workspace must have for its operation to keep to itself: those that have less lie side by side.
const largeWorkspace = 1 << 20

// Place lays the arena out anew with workspaces in it: so many bytes for each command of Step. Each has its place only
// while its operation runs. Lanes are chosen anew too.
func (p *Plan) Place(workspaces []int64) (device.Placement, error) {
	if len(workspaces) != len(p.Step) {
		return device.Placement{}, fmt.Errorf("%d workspaces for %d commands", len(workspaces), len(p.Step))
	}
	if len(p.Storages) == p.storages && !slices.ContainsFunc(workspaces, func(bytes int64) bool { return bytes > 0 }) {
		return device.Placement{Workspaces: make([]device.Pointer, len(workspaces)), Schedule: p.Schedule}, nil
	}
	p.Storages, p.planner.passing = p.Storages[:p.storages], nil
	at := make([]device.Pointer, len(workspaces))
	needs := make([]int64, len(p.Ranges)) // by operation
	var kept [2]int64                     // what the reference keeps for cuBLAS and for cuBLASLt
	for i, r := range p.Ranges {
		for c := r.From; c < r.To; c++ {
			if workspaces[c] > 0 {
				at[c] = device.Pointer{Storage: len(p.Storages)}
				p.Storages = append(p.Storages, Storage{Bytes: workspaces[c], Area: Arena, uses: []int{i}})
				needs[i] += workspaces[c]
				switch p.Step[c].(type) {
				case *device.Matmul, *device.MatVec:
					kept[0] = max(kept[0], workspaces[c])
				case *device.Linear:
					kept[1] = max(kept[1], workspaces[c])
				default:
					p.planner.passing = append(p.planner.passing, at[c].Storage)
				}
			}
		}
	}
	for c := p.Tail; c < len(p.Step); c++ {
		if workspaces[c] > 0 {
			return device.Placement{}, fmt.Errorf("commands[%d], after the recorded operations, wants a workspace of %d bytes", c, workspaces[c])
		}
	}
	p.planner.choose(needs, kept[0]+kept[1])
	return device.Placement{Workspaces: at, Schedule: p.Schedule}, nil
}

// reference is what a reference that runs one operation after the other needs at least: all weights, what it keeps for
// libraries, and the most that lives at one time.
func (p *planner) reference(kept int64) int64 {
	bytes := kept
	for _, s := range p.plan.Recording.Storages {
		if persistent(s.Role) {
			bytes += align(s.Bytes)
		}
	}
	change := make([]int64, len(p.plan.Ranges)+1)
	for s := range p.plan.Storages {
		st := &p.plan.Storages[s]
		switch {
		case st.Area != Arena || st.once || s >= p.plan.storages && !slices.Contains(p.passing, s):
		case st.always || len(st.uses) == 0:
			bytes += align(st.Bytes)
		default:
			change[st.uses[0]] += align(st.Bytes)
			if !st.kept {
				change[st.uses[len(st.uses)-1]+1] -= align(st.Bytes)
			}
		}
	}
	var now, most int64
	for _, c := range change {
		now += c
		most = max(most, now)
	}
	return bytes + most
}

// shared is what the weights take that several plans have together.
func (p *planner) shared() (bytes int64) {
	for i, s := range p.plan.Recording.Storages {
		if p.plan.Storages[i].Area == Shared && persistent(s.Role) {
			bytes += align(s.Bytes)
		}
	}
	return bytes
}

// choose takes the most lanes whose arena is not too large. If that is too large with operations that need much memory one
// after the other, too, the operations at which memory is widest run alone, which ones depends on how many lanes there are
// for the others: of the orders whose arena is not too large it takes the one with the shortest chain of operations.
func (p *planner) choose(workspaces []int64, kept int64) {
	p.schedule = p.spread(order{lanes: 1})
	least := p.placeArena()
	if p.options.KeepAll || p.options.OneLane {
		p.settle(least)
		return
	}
	limit := p.limit(workspaces, least.bytes, kept)
	serial := p.schedule
	apart := make([]bool, len(p.plan.Ranges)) // operations with a large workspace
	for i, bytes := range workspaces {
		apart[i] = bytes >= largeWorkspace
	}
	if !slices.Contains(apart, true) {
		apart = nil
	}
	try := func(by order) (*schedule, layout, bool) {
		p.schedule = p.spread(by)
		l := p.placeArena()
		return p.schedule, l, l.bytes <= limit
	}
	if _, l, fits := try(order{lanes: maxLanes}); fits {
		p.settle(l)
		return
	}
	if apart != nil {
		if _, l, fits := try(order{lanes: maxLanes, apart: apart}); fits {
			p.settle(l)
			return
		}
	}
	p.schedule = serial
	width := p.width()
	best, shortest := serial, serial.depth()*(worthLanes-1)/worthLanes+1
	layout := least
	for _, by := range []order{
		{maxLanes, nil, width.above(1.0 / maxLanes)},
		{maxLanes, apart, width.above(0.5)},
		{maxLanes, apart, width.above(0.8)},
		{2, nil, width.above(0.5)},
		{2, apart, width.above(0.8)},
		{2, apart, nil},
	} {
		s, l, fits := try(by)
		if depth := s.depth(); fits && depth < shortest {
			best, layout, shortest = s, l, depth
		}
	}
	p.schedule = best
	p.settle(layout)
}

// limit is how large an arena may be, if so much is the least.
func (p *planner) limit(workspaces []int64, least, kept int64) int64 {
	weights := p.plan.FixedBytes + p.shared()
	more := int64(float64(least+weights)*laneTolerance) + laneAllowance
	if slices.Max(append(workspaces, 0)) >= least/goodPart {
		more = int64(float64(least) * strictTolerance)
	}
	return max(least+more, p.reference(kept)-weights)
}

// width is how much of the arena is in use at each operation, if they run one after the other.
type width []int64

func (p *planner) width() width {
	w := make(width, len(p.plan.Ranges)+1)
	_, lives := p.lives()
	for _, l := range lives {
		switch {
		case l.once:
		case l.always:
			w[0] += l.size
		default:
			w[l.first] += l.size
			w[min(l.last+1, len(w)-1)] -= l.size
		}
	}
	for i := 1; i < len(w); i++ {
		w[i] += w[i-1]
	}
	return w[:len(w)-1]
}

// above tells the operations at which more than a part of the most is in use.
func (w width) above(part float64) []bool {
	most := slices.Max(append(w, 0))
	above := make([]bool, len(w))
	for i := range w {
		above[i] = float64(w[i]) > part*float64(most)
	}
	return above
}

// settle makes a layout the plan's, under the schedule that it was made for.
func (p *planner) settle(l layout) {
	for i, s := range l.storages {
		p.plan.Storages[s].Offset = l.offsets[i]
	}
	p.plan.ArenaBytes = l.bytes
	p.plan.Schedule = p.forDevice()
}
