package plan

import (
	"samebits/native/device"
)

// maxLanes bounds how many chains run side by side. Recorded steps rarely have more independent branches that are long
// enough to pay for an event.
const maxLanes = 4

// clock says, lane by lane, how many operations of the lane have surely ended. Operation a happened before b if and only
// if b's clock at a's lane is beyond a's position there.
type clock [maxLanes]int32

// schedule spreads operations over lanes. The order in the list stays the recorded one, so a lane is a subsequence of it.
type schedule struct {
	lane     []int8  // by operation; -1 for those without commands in a step
	position []int32 // by operation, in its lane
	before   []clock // by operation: what ended before it starts
	waits    [][]int // by operation: operations of other lanes that it must wait for itself
}

// order is what operations must keep beside that of their data, to save memory.
type order struct {
	lanes int
	apart []bool // by operation: these run one after the other, beside others; nil if none is
	alone []bool // by operation: nothing runs beside these; nil if none is
}

// dependencies gives, for every operation, the operations it must follow because of the storages that both touch: those
// that wrote what it reads or writes, and those that read what it writes; and because of an order.
func (p *planner) dependencies(by order) [][]int {
	r := p.plan.Recording
	writer := make([]int, len(r.Storages))
	readers := make([][]int, len(r.Storages))
	for s := range writer {
		writer[s] = -1
	}
	deps := make([][]int, len(r.Operations))
	apart, alone := -1, -1 // the last ones that are
	var since []int        // operations since the last one that is alone
	for i := range r.Operations {
		if !p.needed[i] || p.static[i] {
			continue
		}
		reads, writes := p.effects(i)
		seen := map[int]bool{i: true, -1: true}
		follow := func(j int) {
			if !seen[j] {
				seen[j] = true
				deps[i] = append(deps[i], j)
			}
		}
		for _, v := range reads {
			follow(writer[r.Values[v].Storage])
		}
		for _, v := range writes {
			s := r.Values[v].Storage
			follow(writer[s])
			for _, j := range readers[s] {
				follow(j)
			}
		}
		if by.apart != nil && by.apart[i] {
			follow(apart)
			apart = i
		}
		if by.alone != nil && p.known[i].Lower != nil {
			follow(alone)
			if since = append(since, i); by.alone[i] {
				for _, j := range since {
					follow(j)
				}
				since, alone = since[:0], i
			}
		}
		for _, v := range reads {
			s := r.Values[v].Storage
			readers[s] = append(readers[s], i)
		}
		for _, v := range writes {
			s := r.Values[v].Storage
			writer[s], readers[s] = i, nil
		}
	}
	return deps
}

// spread assigns lanes. An operation follows the operation it depends on if that one is still the last of its lane; else
// it takes a lane whose last operation it follows anyway; else a new lane; else the one that it waits for least.
func (p *planner) spread(by order) *schedule {
	n := len(p.plan.Recording.Operations)
	s := &schedule{lane: make([]int8, n), position: make([]int32, n), before: make([]clock, n), waits: make([][]int, n)}
	var tail [maxLanes]int
	var ended [maxLanes]clock // by lane: what has ended once its last operation has
	var length [maxLanes]int32
	for l := range tail {
		tail[l] = -1
	}
	deps := p.dependencies(by)
	for i := range n {
		s.lane[i] = -1
		if !p.needed[i] || p.static[i] || p.known[i].Lower == nil {
			continue
		}
		var need clock
		for _, j := range deps[i] {
			need.join(s.after(j))
		}
		l := choose(by.lanes, deps[i], s, tail, need)
		before := ended[l]
		for k := len(deps[i]) - 1; k >= 0; k-- { // the latest first: it often implies the others
			j := deps[i][k]
			if before[s.lane[j]] <= s.position[j] {
				s.waits[i] = append(s.waits[i], j)
				before.join(s.after(j))
			}
		}
		s.lane[i], s.position[i], s.before[i] = int8(l), length[l], before
		length[l]++
		tail[l], ended[l] = i, s.after(i)
	}
	return s
}

func choose(lanes int, deps []int, s *schedule, tail [maxLanes]int, need clock) int {
	for _, j := range deps {
		if l := s.lane[j]; tail[l] == j {
			return int(l)
		}
	}
	oldest := 0
	for l := range lanes {
		j := tail[l]
		if j >= 0 && need[l] > s.position[j] {
			return l
		}
	}
	for l := range lanes {
		if tail[l] < 0 {
			return l
		}
		if tail[l] < tail[oldest] {
			oldest = l
		}
	}
	return oldest
}

func (c *clock) join(o clock) {
	for l := range c {
		c[l] = max(c[l], o[l])
	}
}

// within reports whether o has come as far on every lane.
func (c *clock) within(o *clock) bool {
	for l := range c {
		if c[l] > o[l] {
			return false
		}
	}
	return true
}

// after is what has ended once operation i has.
func (s *schedule) after(i int) clock {
	c := s.before[i]
	c[s.lane[i]] = max(c[s.lane[i]], s.position[i]+1)
	return c
}

// depth is the length of the longest chain of operations that follow one another.
func (s *schedule) depth() (most int32) {
	depth := make([]int32, len(s.lane))
	var tail [maxLanes]int32 // by lane: the depth of its last operation
	for i, l := range s.lane {
		if l < 0 {
			continue
		}
		d := tail[l]
		for _, j := range s.waits[i] {
			d = max(d, depth[j])
		}
		depth[i], tail[l] = d+1, d+1
		most = max(most, d+1)
	}
	return most
}

// forDevice turns lanes of operations into lanes of commands. An operation without commands hands what it waits for to
// the next one of its lane, and to those that wait for it.
func (p *planner) forDevice() *device.Schedule {
	out := &device.Schedule{Lanes: 1, Lane: make([]uint8, len(p.plan.Step)), Waits: make([][]int32, len(p.plan.Step))}
	ends := make([][]int32, len(p.plan.Ranges)) // by operation: the commands after which it has ended
	var pending, last [maxLanes][]int32
	for i, r := range p.plan.Ranges {
		l := p.schedule.lane[i]
		if l < 0 {
			continue
		}
		waits := pending[l]
		for _, j := range p.schedule.waits[i] {
			waits = append(waits, ends[j]...)
		}
		if r.From == r.To {
			pending[l] = waits
			ends[i] = append(append([]int32(nil), waits...), last[l]...)
			continue
		}
		for c := r.From; c < r.To; c++ {
			out.Lane[c] = uint8(l)
		}
		out.Lanes = max(out.Lanes, int(l)+1)
		out.Waits[r.From], pending[l] = waits, nil
		last[l] = []int32{int32(r.To - 1)}
		ends[i] = last[l]
	}
	if p.plan.Tail < len(p.plan.Step) {
		for l := 1; l < maxLanes; l++ {
			out.Waits[p.plan.Tail] = append(append(out.Waits[p.plan.Tail], last[l]...), pending[l]...)
		}
		out.Waits[p.plan.Tail] = append(out.Waits[p.plan.Tail], pending[0]...)
	}
	return out
}
