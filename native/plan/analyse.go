package plan

import (
	"samebits/bridge/recording"
	"samebits/native/device"
	"samebits/native/ops"
)

// planner holds what is derived from a recording on the way to a plan.
type planner struct {
	plan     *Plan
	options  Options
	schedule *schedule
	known    []ops.Registration
	then     []*recording.Operation // by operation: the activation that its kernel does too

	needed    []bool // by operation: its results are read, or it changes state
	static    []bool // by operation: reads nothing that changes between steps, so it runs once
	changes   []bool // by storage: written by an operation that runs in every step
	read      []bool // by value: read by a needed operation, or an output
	byStorage [][]*recording.Value
	current   int              // operation being lowered
	setup     bool             // it is lowered into Setup
	hoisted   []device.Command // taken out of the operation being lowered, for Setup
	passing   []int            // workspaces that the reference has while an operation runs, too
}

// effects gives the values that an operation reads and writes. Views and creations do neither.
func (p *planner) effects(i int) (reads, writes []int) {
	op := &p.plan.Recording.Operations[i]
	switch p.known[i].Class {
	case ops.View, ops.Create:
		return nil, nil
	case ops.InPlace:
		writes = recording.Values(op.Arguments[:1], nil)
	default:
		writes = recording.Values(op.Results, nil)
	}
	if more := p.known[i].Writes; more != nil {
		writes = append(writes, more(op)...)
	}
	return recording.Values(op.Arguments, nil), writes
}

func persistent(role recording.Role) bool {
	return role == recording.Parameter || role == recording.Buffer || role == recording.Constant
}

func stateful(role recording.Role) bool {
	return role == recording.Parameter || role == recording.Buffer
}

// classify decides which operations are needed and which run once.
func (p *planner) classify() {
	r := p.plan.Recording
	p.needed = make([]bool, len(r.Operations))
	p.static = make([]bool, len(r.Operations))
	p.changes = make([]bool, len(r.Storages))
	p.read = make([]bool, len(r.Values))

	live := make([]bool, len(r.Storages))
	for _, o := range r.Outputs {
		live[r.Values[o.Value].Storage] = true
		p.read[o.Value] = true
	}
	for i, s := range r.Storages {
		if persistent(s.Role) {
			live[i] = true // a step that changes a parameter or buffer does so for the next step
		}
	}
	for i := len(r.Operations) - 1; i >= 0; i-- {
		reads, writes := p.effects(i)
		p.needed[i] = p.options.KeepAll
		for _, v := range writes {
			p.needed[i] = p.needed[i] || live[r.Values[v].Storage]
		}
		if len(writes) == 0 {
			p.needed[i] = p.options.KeepAll
			continue
		}
		if !p.needed[i] {
			p.plan.Dropped++
			continue
		}
		for _, v := range reads {
			live[r.Values[v].Storage] = true
		}
	}
	// A result counts as read if anything needed reads its storage: views make it impossible to say which part.
	readStorage := make([]bool, len(r.Storages))
	for i := range r.Operations {
		if !p.needed[i] {
			continue
		}
		reads, _ := p.effects(i)
		for _, v := range reads {
			readStorage[r.Values[v].Storage] = true
		}
	}
	for _, o := range r.Outputs {
		readStorage[r.Values[o.Value].Storage] = true
	}
	for v := range r.Values {
		s := r.Values[v].Storage
		p.read[v] = p.options.KeepAll || readStorage[s] || persistent(r.Storages[s].Role)
	}
	p.findStatic()
}

// What is computed from weights and constants once may be larger than they are by a part of them. A mask that is repeated
// for every window is better made anew in each step.
const (
	hoistGrowth    = 1.0 / 8
	hoistAllowance = 1 << 20 // bytes, whatever the weights
)

// growth is how many bytes an operation writes beyond those that it reads.
func (p *planner) growth(reads, writes []int) int64 {
	sum := func(values []int) (bytes int64) {
		seen := map[int]bool{}
		for _, v := range values {
			if s := p.plan.Recording.Values[v].Storage; !seen[s] {
				seen[s] = true
				bytes += p.plan.Recording.Storages[s].Bytes
			}
		}
		return bytes
	}
	return max(0, sum(writes)-sum(reads))
}

// findStatic marks operations that depend on weights alone. A storage that any other operation writes is not static,
// and neither is one that is written more than once: its content differs along the step.
func (p *planner) findStatic() {
	r := p.plan.Recording
	writers := make([]int, len(r.Storages))
	for i := range r.Operations {
		if !p.needed[i] {
			continue
		}
		_, writes := p.effects(i)
		seen := map[int]bool{}
		for _, v := range writes {
			if s := r.Values[v].Storage; !seen[s] {
				seen[s] = true
				writers[s]++
			}
		}
	}
	var room int64
	for s := range r.Storages {
		role := r.Storages[s].Role
		if persistent(role) {
			room += r.Storages[s].Bytes
		}
		p.changes[s] = role == recording.Input || (persistent(role) && writers[s] > 0) || (!persistent(role) && writers[s] != 1) ||
			(p.options.State != nil && stateful(role))
	}
	room = int64(float64(room)*hoistGrowth) + hoistAllowance
	for i := range r.Operations {
		if !p.needed[i] {
			continue
		}
		reads, writes := p.effects(i)
		static := !p.options.KeepAll && !p.options.NoHoist && len(reads) > 0 && p.known[i].Class == ops.Compute
		for _, v := range reads {
			static = static && !p.changes[r.Values[v].Storage]
		}
		for _, v := range writes {
			static = static && !p.changes[r.Values[v].Storage]
		}
		grown := p.growth(reads, writes)
		if static && grown <= room {
			room -= grown
			p.static[i] = true
			p.plan.Hoisted++
			continue
		}
		for _, v := range writes {
			p.changes[r.Values[v].Storage] = true
		}
	}
}

// lifetimes gives every storage its area and the operations between which it must keep its content.
func (p *planner) lifetimes() {
	r := p.plan.Recording
	p.plan.Storages = make([]Storage, len(r.Storages))
	fixed := make([]bool, len(r.Storages))
	for s := range r.Storages {
		p.plan.Storages[s].Bytes = r.Storages[s].Bytes
		fixed[s] = persistent(r.Storages[s].Role)
		p.plan.Storages[s].always = r.Storages[s].Role == recording.Input
	}
	for _, n := range r.Inputs {
		p.plan.Storages[r.Values[n.Value].Storage].always = true
	}
	for _, n := range r.Outputs {
		p.plan.Storages[r.Values[n.Value].Storage].kept = true
	}
	for i := range r.Operations {
		if !p.needed[i] {
			continue
		}
		reads, writes := p.effects(i)
		for _, v := range append(reads, writes...) {
			p.plan.Storages[r.Values[v].Storage].use(i)
		}
		for _, v := range writes {
			s := r.Values[v].Storage
			fixed[s] = fixed[s] || p.static[i]
			p.plan.Storages[s].Written = p.plan.Storages[s].Written || !p.static[i]
		}
	}
	for s := range p.plan.Storages {
		st := &p.plan.Storages[s]
		switch {
		case fixed[s]:
			st.Area = Fixed
		case st.always || st.kept || len(st.uses) > 0:
			st.Area = Arena
			st.always = st.always || p.options.KeepAll || st.kept && !st.Written
		}
	}
}

func (s *Storage) use(operation int) {
	if n := len(s.uses); n == 0 || s.uses[n-1] != operation {
		s.uses = append(s.uses, operation)
	}
}
