package plan

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"samebits/bridge/recording"
	"samebits/native/device"
)

// findOnce finds memory that no step touches: weights that only Setup turns into something else, and what it needs on the
// way. They take room in the arena, before the first step. What nothing touches takes none.
func (p *planner) findOnce() {
	if p.options.KeepAll {
		return
	}
	in := func(list []device.Command) []bool {
		touched := make([]bool, len(p.plan.Storages))
		for _, c := range list {
			for _, at := range device.Pointers(c) {
				touched[at.Storage] = true
			}
		}
		return touched
	}
	step, setup := in(p.plan.Step), in(p.plan.Setup)
	for s := range p.plan.Storages {
		switch st := &p.plan.Storages[s]; {
		case st.Area == Shared || st.always || step[s]:
		case setup[s]:
			st.Area, st.once = Arena, true
		case st.Area == Fixed:
			st.Area = Unused
		}
	}
}

// placeFixed gives every storage of the fixed area an offset there.
func (p *planner) placeFixed() {
	p.plan.FixedBytes = 0
	for s := range p.plan.Storages {
		if st := &p.plan.Storages[s]; st.Area == Fixed {
			st.Offset = align(p.plan.FixedBytes) + p.skew(s)
			p.plan.FixedBytes = st.Offset + st.Bytes
		}
	}
}

// layout is a placement of the arena.
type layout struct {
	storages []int
	offsets  []int64 // of these
	bytes    int64
}

// life is when a storage of the arena is in use under a schedule, and what it needs.
type life struct {
	size, skew   int64
	first, last  int   // operations
	begin, end   clock // what has ended before the first, lane by lane; how far each lane must have come for all uses to have ended
	always, once bool
	kept         bool // after its last use, too
}

// lives are those of the arena's storages.
func (p *planner) lives() (arena []int, lives []life) {
	for s := range p.plan.Storages {
		st := &p.plan.Storages[s]
		if st.Area != Arena {
			continue
		}
		l := life{skew: p.skew(s), last: len(p.plan.Ranges), always: st.always || len(st.uses) == 0 && !st.once, once: st.once, kept: st.kept}
		l.size = align(st.Bytes + l.skew)
		if !l.always && !l.once {
			l.first, l.last = st.uses[0], st.uses[len(st.uses)-1]
			for _, u := range st.uses {
				if lane := p.schedule.lane[u]; lane >= 0 {
					l.end[lane] = max(l.end[lane], p.schedule.position[u]+1)
				} else {
					l.always = true // of an operation without a lane nobody knows when it has ended
				}
			}
			l.begin = p.schedule.before[l.first]
			if l.kept {
				l.last = len(p.plan.Ranges)
			}
		}
		arena, lives = append(arena, s), append(lives, l)
	}
	return arena, lives
}

// apart reports whether two storages may share memory: every use of one ends before the other's first use starts. Inputs and
// whatever a trace keeps are in use all the time, outputs until the next step, Setup's own storages before any step: also
// between two, where weights change.
func (a *life) apart(b *life) bool {
	switch {
	case a.always || b.always || a.once && b.once || a.once && b.kept || a.kept && b.once:
		return false
	case a.once || b.once:
		return true
	case a.last < b.first:
		return a.end.within(&b.begin)
	}
	return b.last < a.first && b.end.within(&a.begin)
}

// placeArena tries several orders of its storages and takes what needs least: each storage lies at the lowest place where
// nothing that lives at the same time does.
func (p *planner) placeArena() layout {
	arena, lives := p.lives()
	large := func(a, b int) int { return cmp.Compare(lives[b].size, lives[a].size) }
	long := func(a, b int) int {
		return cmp.Or(cmp.Compare(lives[b].last-lives[b].first, lives[a].last-lives[a].first), large(a, b))
	}
	early := func(a, b int) int { return cmp.Or(cmp.Compare(lives[a].first, lives[b].first), large(a, b)) }
	best := layout{bytes: -1}
	for _, by := range []func(a, b int) int{large, long, early} {
		order := make([]int, len(lives))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, by)
		if l := lay(lives, order); best.bytes < 0 || l.bytes < best.bytes {
			best = l
		}
	}
	best.storages = arena
	return best
}

func lay(lives []life, order []int) layout {
	l := layout{offsets: make([]int64, len(lives))}
	placed := make([]int, 0, len(lives)) // by offset
	for _, s := range order {
		it := &lives[s]
		at := int64(0)
		for _, other := range placed {
			o := &lives[other]
			if l.offsets[other]+o.size <= at || it.apart(o) {
				continue
			}
			if l.offsets[other]-at >= it.size {
				break
			}
			at = l.offsets[other] + o.size
		}
		l.offsets[s] = at
		l.bytes = max(l.bytes, at+it.size)
		i := sort.Search(len(placed), func(i int) bool { return l.offsets[placed[i]] > at })
		placed = slices.Insert(placed, i, s)
	}
	for s := range lives {
		l.offsets[s] += lives[s].skew
	}
	return l
}

func align(n int64) int64 { return (n + Alignment - 1) &^ (Alignment - 1) }

// skew is how far a storage must lie behind a multiple of 512 so that its values have the alignment that they had in
// the reference. Libraries choose kernels by it. It is zero for whatever the caching allocator gave.
func (p *planner) skew(s int) int64 {
	r := p.plan.Recording
	if s >= len(r.Storages) || r.Header.DeviceType != "cuda" {
		return 0
	}
	skew := int64(0)
	for _, v := range p.valuesOf(s) {
		have := lowestBit(v.Offset * v.DType.Size())
		if want := int64(v.Alignment); want > 0 && want < have {
			skew = want
		}
	}
	return skew
}

func (p *planner) valuesOf(storage int) []*recording.Value {
	if p.byStorage == nil {
		p.byStorage = make([][]*recording.Value, len(p.plan.Recording.Storages))
		for i := range p.plan.Recording.Values {
			v := &p.plan.Recording.Values[i]
			p.byStorage[v.Storage] = append(p.byStorage[v.Storage], v)
		}
	}
	return p.byStorage[storage]
}

// lowestBit is the largest power of two that divides n, at most 512.
func lowestBit(n int64) int64 {
	if n == 0 {
		return Alignment
	}
	return min(Alignment, int64(1)<<bits.TrailingZeros64(uint64(n)))
}
