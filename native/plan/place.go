package plan

import (
	"math/bits"
	"sort"

	"samebits/bridge/recording"
)

// place gives every storage an offset in its area. The arena is filled largest first, each storage at the lowest place
// where nothing that lives at the same time lies.
func (p *planner) place() {
	all := p.plan.Storages
	var arena []int
	for s := range all {
		switch all[s].Area {
		case Fixed:
			skew := p.skew(s)
			all[s].Offset = align(p.plan.FixedBytes) + skew
			p.plan.FixedBytes = all[s].Offset + all[s].Bytes
		case Arena:
			arena = append(arena, s)
		}
	}
	sort.SliceStable(arena, func(a, b int) bool { return all[arena[a]].Bytes > all[arena[b]].Bytes })
	var placed []int // by offset
	for _, s := range arena {
		skew := p.skew(s)
		size := align(all[s].Bytes + skew)
		at := int64(0)
		for _, other := range placed {
			if p.apart(s, other) {
				continue
			}
			o := &all[other]
			begin := o.Offset &^ (Alignment - 1)
			if begin-at >= size {
				break
			}
			at = max(at, align(o.Offset+o.Bytes))
		}
		all[s].Offset = at + skew
		p.plan.ArenaBytes = max(p.plan.ArenaBytes, at+size)
		i := sort.Search(len(placed), func(i int) bool { return all[placed[i]].Offset > all[s].Offset })
		placed = append(placed, 0)
		copy(placed[i+1:], placed[i:])
		placed[i] = s
	}
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
