package plan

import (
	"slices"

	"samebits/bridge/recording"
	"samebits/native/ops"
)

// fuse finds pairs of operations of which one kernel does both: a producer, and the activation that alone reads what it
// produced (see ops.Fusible). The producer takes over the activation's result; the activation becomes an operation that
// costs nothing and touches nothing, in its place, so that operations keep their numbers. What the producer alone would
// have written is never in memory: with a trace, which shows it, nothing is fused.
func (p *planner) fuse() {
	p.then = make([]*recording.Operation, len(p.plan.Recording.Operations))
	if p.options.KeepAll || p.options.NoFuse {
		return
	}
	r := *p.plan.Recording
	r.Operations = slices.Clone(r.Operations)
	b := ops.NewBuilder(&r, p)
	b.Options = p.choices()
	touched := p.touched()
	for i := range r.Operations {
		producer := &r.Operations[i]
		if p.known[i].Fuses == nil || len(producer.Results) == 0 || producer.Results[0].Kind != recording.ValueOf {
			continue
		}
		value := producer.Results[0].Value
		j := p.successor(i, r.Values[value].Storage, touched)
		if j < 0 || !ops.Fusible(b, producer, &r.Operations[j]) {
			continue
		}
		result := r.Operations[j].Results[0].Value
		if !p.alone(i, j, value, result, touched) {
			continue
		}
		producer.Results = slices.Clone(producer.Results)
		producer.Results[0].Value = result
		then := r.Operations[j]
		p.then[i] = &then
		r.Operations[j].Arguments, r.Operations[j].Results = nil, nil
		p.known[j] = ops.Registration{Name: then.Name, Class: ops.View}
		p.plan.Fused++
	}
	p.plan.Recording = &r
}

// touched gives, by storage, the operations that name a value on it, views and creations included.
func (p *planner) touched() [][]int {
	r := p.plan.Recording
	touched := make([][]int, len(r.Storages))
	for i := range r.Operations {
		op := &r.Operations[i]
		for _, v := range recording.Values(op.Results, recording.Values(op.Arguments, nil)) {
			s := r.Values[v].Storage
			if n := len(touched[s]); n == 0 || touched[s][n-1] != i {
				touched[s] = append(touched[s], i)
			}
		}
	}
	return touched
}

// successor is the operation that touches a storage next after the one that was first to do so, or -1.
func (p *planner) successor(first, storage int, touched [][]int) int {
	if t := touched[storage]; len(t) > 1 && t[0] == first {
		return t[1]
	}
	return -1
}

// alone reports whether nobody misses what is left out when operation j is done in the kernel of operation i: the value
// before the activation, which nothing else names, unless the activation changes it in place; and the memory of the
// result, which nothing touches before j.
func (p *planner) alone(i, j, value, result int, touched [][]int) bool {
	r := p.plan.Recording
	from, to := r.Values[value].Storage, r.Values[result].Storage
	for _, s := range []int{from, to} {
		if role := r.Storages[s].Role; role != recording.Scratch && role != recording.Output {
			return false
		}
	}
	for _, in := range recording.Values(r.Operations[i].Arguments, nil) {
		if s := r.Values[in].Storage; s == from || s == to {
			return false
		}
	}
	if value == result { // in place: what comes later reads what the activation left
		return p.known[j].Class == ops.InPlace
	}
	if from == to || p.known[j].Class != ops.Compute || len(touched[from]) != 2 || touched[to][0] != j {
		return false
	}
	return !slices.ContainsFunc(r.Outputs, func(o recording.Named) bool { return r.Values[o.Value].Storage == from })
}

// choices are the options of a plan that lowerings obey.
func (p *planner) choices() ops.Options { return ops.Options{LibraryNorms: p.options.LibraryNorms} }
