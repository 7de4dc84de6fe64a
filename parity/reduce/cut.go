package reduce

import (
	"fmt"
	"slices"

	"samebits/bridge/recording"
	"samebits/parity/signature"
)

// need is the content of a storage of the whole recording, as it is after an operation; -1: as it is given.
type need struct{ storage, after int }

// cut is a part of a recording that can stand alone.
type cut struct {
	operations []int // of the whole recording
	recording  *recording.Recording
	needs      map[int]need // by storage of the part
}

// cutter makes a part.
type cutter struct {
	*analysis
	to               *recording.Recording
	values, storages map[int]int // from there to here
	needs            map[int]need
	made             map[int]bool // storages there that the part makes
}

// cut takes some operations, in their order. What they read and others made becomes inputs. It gives nil where the others
// write in between, or where nothing that can be compared comes out.
func (a *analysis) cut(operations []int) *cut {
	h := a.r.Header
	h.Mode, h.ProfileSettings = "predict", settings(h.ProfileSettings)
	c := &cutter{a, &recording.Recording{Header: h}, map[int]int{}, map[int]int{}, map[int]need{}, map[int]bool{}}
	inside := map[int]bool{}
	for _, i := range operations {
		inside[i] = true
	}
	first, last := map[int]int{}, map[int]int{}
	for _, i := range operations {
		for _, s := range slices.Concat(a.touches[i], a.writes[i]) {
			if _, known := first[s]; !known {
				first[s] = i
				c.made[s] = slices.Contains(a.makes[i], s)
			}
			last[s] = i
		}
	}
	for s, from := range first {
		for _, w := range a.writers[s] {
			if w > from && w < last[s] && !inside[w] {
				return nil
			}
		}
	}
	for _, i := range operations {
		op := a.r.Operations[i]
		op.Arguments, op.Results = c.arguments(op.Arguments, first), c.arguments(op.Results, first)
		c.to.Operations = append(c.to.Operations, op)
	}
	if !c.outputs(operations) || len(recording.Verify(c.to)) > 0 {
		return nil
	}
	return &cut{operations, c.to, c.needs}
}

func (c *cutter) arguments(list []recording.Argument, first map[int]int) []recording.Argument {
	out := slices.Clone(list)
	for i := range out {
		switch out[i].Kind {
		case recording.ValueOf:
			out[i].Value = c.value(out[i].Value, first)
		case recording.List:
			out[i].Items = c.arguments(out[i].Items, first)
		}
	}
	return out
}

func (c *cutter) value(there int, first map[int]int) int {
	if here, known := c.values[there]; known {
		return here
	}
	v := c.r.Values[there]
	v.Storage = c.storage(v.Storage, first)
	c.to.Values = append(c.to.Values, v)
	c.values[there] = len(c.to.Values) - 1
	return c.values[there]
}

func (c *cutter) storage(there int, first map[int]int) int {
	if here, known := c.storages[there]; known {
		return here
	}
	s := c.r.Storages[there]
	here := len(c.to.Storages)
	c.storages[there] = here
	if c.made[there] {
		s.Role = recording.Scratch
		c.to.Storages = append(c.to.Storages, s)
		return here
	}
	n := need{there, -1}
	for _, w := range c.writers[there] {
		if w < first[there] {
			n.after = w
		}
	}
	if n.after >= 0 {
		s.Role, s.Name = recording.Input, fmt.Sprintf("cut.%d", here)
	}
	c.needs[here] = n
	c.to.Storages = append(c.to.Storages, s)
	if s.Role == recording.Input {
		v := covering(c.r, there)
		v.Storage = here
		c.to.Values = append(c.to.Values, v)
		c.to.Inputs = append(c.to.Inputs, recording.Named{Name: s.Name, Value: len(c.to.Values) - 1})
	}
	return here
}

// outputs makes outputs of what the part writes and does not read itself afterwards, and of the recording's own.
func (c *cutter) outputs(operations []int) bool {
	lastWriter, lastReader := map[int]int{}, map[int]int{}
	for _, i := range operations {
		for _, s := range c.touches[i] {
			if len(c.writes[i]) > 0 { // a view reads nothing
				lastReader[s] = i
			}
		}
		for _, s := range c.writes[i] {
			lastWriter[s] = i
			lastReader[s] = -1
		}
	}
	own := map[int]bool{}
	for _, n := range c.r.Outputs {
		own[c.r.Values[n.Value].Storage] = true
	}
	for at, i := range operations {
		op := &c.r.Operations[i]
		undefined := signature.Undefined(op)
		var results []int
		for j, v := range recording.Values(op.Results, nil) {
			if !slices.Contains(undefined, j) {
				results = append(results, v)
			}
		}
		named := map[int]bool{}
		for j, v := range append(results, signature.Writes(op)...) {
			s := c.r.Values[v].Storage
			reader, isRead := lastReader[s]
			switch {
			case !slices.Contains(c.writes[i], s), lastWriter[s] != i, named[v], !c.read[s], signature.Creates(op), c.r.Values[v].Numel() == 0:
				continue
			case isRead && reader > i && !own[s]:
				continue
			}
			named[v] = true
			here := c.values[v]
			if role := &c.to.Storages[c.to.Values[here].Storage].Role; *role == recording.Scratch {
				*role = recording.Output
			}
			c.to.Outputs = append(c.to.Outputs, recording.Named{Name: fmt.Sprintf("operation%d.%d", at, j), Value: here})
		}
	}
	return len(c.to.Outputs) > 0
}

// prefix is the recording up to an operation, with whole storages as outputs.
func (a *analysis) prefix(end int, storages []int) *recording.Recording {
	p := *a.r
	p.Header.Mode, p.Header.ProfileSettings = "predict", settings(p.Header.ProfileSettings)
	p.Operations = p.Operations[:end+1]
	p.Values = slices.Clone(p.Values)
	p.Outputs, p.Inputs = nil, nil
	add := func(s int) int {
		p.Values = append(p.Values, covering(a.r, s))
		return len(p.Values) - 1
	}
	for i, s := range a.r.Storages {
		if s.Role == recording.Input {
			p.Inputs = append(p.Inputs, recording.Named{Name: s.Name, Value: add(i)})
		}
	}
	for _, s := range storages {
		p.Outputs = append(p.Outputs, recording.Named{Name: fmt.Sprintf("storage%d", s), Value: add(s)})
	}
	return &p
}
