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
	offsets map[int]int64
	bytes   int64
}

// placeArena tries several orders of its storages and takes what needs least: each storage lies at the lowest place where
// nothing that lives at the same time does.
func (p *planner) placeArena() layout {
	var arena []int
	for s := range p.plan.Storages {
		if p.plan.Storages[s].Area == Arena {
			arena = append(arena, s)
		}
	}
	all := p.plan.Storages
	first := func(s int) int {
		if st := &all[s]; len(st.uses) > 0 && !st.always {
			return st.uses[0]
		}
		return -1
	}
	span := func(s int) int {
		if st := &all[s]; len(st.uses) > 0 && !st.always {
			return st.uses[len(st.uses)-1] - st.uses[0]
		}
		return len(p.plan.Ranges)
	}
	large := func(a, b int) int { return cmp.Compare(all[b].Bytes, all[a].Bytes) }
	best := layout{bytes: -1}
	for _, order := range []func(a, b int) int{
		large,
		func(a, b int) int { return cmp.Or(cmp.Compare(span(b), span(a)), large(a, b)) },
		func(a, b int) int { return cmp.Or(cmp.Compare(first(a), first(b)), large(a, b)) },
	} {
		list := slices.Clone(arena)
		slices.SortStableFunc(list, order)
		if l := p.lay(list); best.bytes < 0 || l.bytes < best.bytes {
			best = l
		}
	}
	return best
}

func (p *planner) lay(arena []int) layout {
	l := layout{offsets: make(map[int]int64, len(arena))}
	var placed []int // by offset
	for _, s := range arena {
		skew := p.skew(s)
		size := align(p.plan.Storages[s].Bytes + skew)
		at := int64(0)
		for _, other := range placed {
			if p.apart(s, other) {
				continue
			}
			o := l.offsets[other]
			if o&^(Alignment-1)-at >= size {
				break
			}
			at = max(at, align(o+p.plan.Storages[other].Bytes))
		}
		l.offsets[s] = at + skew
		l.bytes = max(l.bytes, at+size)
		i := sort.Search(len(placed), func(i int) bool { return l.offsets[placed[i]] > l.offsets[s] })
		placed = slices.Insert(placed, i, s)
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
