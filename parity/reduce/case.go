// Package reduce finds the smallest part of a recording on which the native engine and PyTorch still differ, and the first
// operation whose result differs. docs/faults.md explains both.
package reduce

import (
	"slices"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/signature"
)

// Case is a recording with everything that it is given.
type Case struct {
	Recording *recording.Recording
	// Given has the content of each storage of role input, parameter, buffer and constant, whole and in memory order.
	Given map[int][]byte
	Step  int // of a training run; 0: of none
}

// NewCase takes a recording with its inputs, by name and as a step gets them, and its weights, by name and whole.
func NewCase(r *recording.Recording, inputs, weights func(name string) ([]byte, bool)) (*Case, error) {
	if len(r.Slots) > 0 {
		return nil, diag.New("SLOTS", "slots", "the recording takes scalars that change from step to step; it cannot be cut")
	}
	c := &Case{Recording: r, Given: map[int][]byte{}}
	var problems diag.Problems
	for i := range r.Storages {
		s := &r.Storages[i]
		switch {
		case s.Role == recording.Input:
			c.Given[i] = make([]byte, s.Bytes)
		case s.Role.Weight():
			data, has := weights(s.Name)
			if !has {
				data = make([]byte, s.Bytes) // the step does not read it, or PyTorch says that it is missing
			} else if int64(len(data)) != s.Bytes {
				problems.Add("WRONG_SHAPE", "weights/"+s.Name, "%d bytes instead of %d", len(data), s.Bytes)
			}
			c.Given[i] = data
		}
	}
	for _, n := range r.Inputs {
		v := &r.Values[n.Value]
		data, has := inputs(n.Name)
		if want := v.Numel() * v.DType.Size(); !has || int64(len(data)) != want {
			problems.Add("WRONG_INPUT", "inputs/"+n.Name, "%d bytes instead of %d", len(data), want)
			continue
		}
		spread(v, data, c.Given[v.Storage])
	}
	return c, problems.Err()
}

// spread puts the elements of a tensor, in row-major order, where a value has them in its storage.
func spread(v *recording.Value, from, to []byte) {
	size := v.DType.Size()
	if v.Contiguous() {
		copy(to[v.Offset*size:], from)
		return
	}
	for logical := range v.Numel() {
		rest, at := logical, v.Offset
		for d := len(v.Sizes) - 1; d >= 0; d-- {
			at += rest % v.Sizes[d] * v.Strides[d]
			rest /= v.Sizes[d]
		}
		copy(to[at*size:(at+1)*size], from[logical*size:])
	}
}

// analysis says what each operation of a recording does to storages.
type analysis struct {
	r       *recording.Recording
	touches [][]int // by operation: the storages of its arguments
	makes   [][]int // by operation: storages that begin with its results
	writes  [][]int // by operation: storages that it makes or writes into
	writers [][]int // by storage: the operations that write it, in order
	read    []bool  // by storage: an operation or an output reads it
}

func analyse(r *recording.Recording) *analysis {
	n := len(r.Operations)
	a := &analysis{r: r, touches: make([][]int, n), makes: make([][]int, n), writes: make([][]int, n),
		writers: make([][]int, len(r.Storages)), read: make([]bool, len(r.Storages))}
	there := make([]bool, len(r.Storages))
	for i := range r.Storages {
		role := r.Storages[i].Role
		there[i] = role == recording.Input || role.Weight()
	}
	storage := func(v int) int { return r.Values[v].Storage }
	for i := range r.Operations {
		op := &r.Operations[i]
		for _, v := range recording.Values(op.Arguments, nil) {
			a.touches[i] = addTo(a.touches[i], storage(v))
			a.read[storage(v)] = true
		}
		for _, v := range signature.Writes(op) {
			a.writes[i] = addTo(a.writes[i], storage(v))
		}
		for _, v := range recording.Values(op.Results, nil) {
			if s := storage(v); !there[s] {
				a.makes[i], a.writes[i] = addTo(a.makes[i], s), addTo(a.writes[i], s)
			}
		}
		for _, s := range a.writes[i] {
			there[s] = true
			a.writers[s] = append(a.writers[s], i)
		}
	}
	for _, n := range r.Outputs {
		a.read[storage(n.Value)] = true
	}
	return a
}

func addTo(list []int, n int) []int {
	if slices.Contains(list, n) {
		return list
	}
	return append(list, n)
}

// covering gives a value that is all of a storage in memory order: one that there is, or a new one.
func covering(r *recording.Recording, storage int) recording.Value {
	s := &r.Storages[storage]
	for _, v := range r.Values {
		if v.Storage == storage && v.DType == s.DType && v.Offset == 0 && v.Contiguous() && v.Numel()*v.DType.Size() == s.Bytes && len(v.Sizes) > 0 {
			return v
		}
	}
	return recording.Value{Storage: storage, DType: s.DType, Sizes: []int64{s.Bytes / s.DType.Size()}, Strides: []int64{1}, Alignment: signature.Alignment(r, storage, 0)}
}

// settings leaves out what a part of a step does not have: the trainer's settings, keys, and what the host read.
func settings(all []recording.Setting) []recording.Setting {
	var kept []recording.Setting
	for _, s := range all {
		if group, _, _ := strings.Cut(s.Key, "."); group != "train" && group != "host" && group != "key" {
			kept = append(kept, s)
		}
	}
	return kept
}

func spec(name string, v *recording.Value) tensor.Spec {
	return tensor.Spec{Name: name, DType: v.DType, Sizes: v.Sizes}
}
