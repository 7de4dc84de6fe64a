// Package signature takes recordings apart into the distinct operations that they run: each with the dtypes, sizes,
// strides, offsets and alignments of its tensors and with all its attributes, once, however often it was called.
package signature

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
)

// Class says what can be compared of an operation.
type Class uint8

const (
	// Computes: it has results whose bits mean something.
	Computes Class = iota
	// View: its results lie where its arguments lie; it is geometry, which the recording holds.
	View
	// Creation: it makes memory without content (aten::empty).
	Creation
	// Unread: in all recordings, nobody reads what it gives.
	Unread
	// Empty: it gives no tensor, or only such without elements.
	Empty
	// Slotted: it takes a scalar that changes from step to step.
	Slotted
)

func (c Class) String() string {
	return [...]string{"computes", "view", "makes memory without content", "nobody reads its results", "gives no elements",
		"takes a scalar that changes from step to step"}[c]
}

// Operation is one distinct operation.
type Operation struct {
	ID    string // 12 digits of the BLAKE3 of Alone, as it is when nothing is known of who reads what
	Name  string // aten::add.Tensor
	Text  string // on one line, as recording.Signature has it
	Class Class
	// Alone is a recording of this operation and nothing else: the tensors that it takes lie on storages of role input,
	// those that it makes on such of role output. It has no inputs and outputs yet.
	Alone *recording.Recording
	// Results are those whose bits mean something, by their number in the flat list, with the values of Alone.
	Results []Result
	Written []int // values of Alone that lie on inputs and that the operation writes

	Calls          int      // in all recordings
	Recordings     []string // that have it
	Module, Source string   // of the first call

	read  []bool // by flat result: a recording reads it
	bytes int64
}

// Result is one result tensor.
type Result struct {
	Number int // in the flat list of results
	Value  int // of Alone
}

// Bytes is what all its storages take.
func (o *Operation) Bytes() int64 { return o.bytes }

// Op is the operation itself.
func (o *Operation) Op() *recording.Operation { return &o.Alone.Operations[0] }

// Set gathers operations from recordings.
type Set struct {
	byID map[string]*Operation
	all  []*Operation
}

// Add takes the operations of a verified recording, which is known by a name.
func (s *Set) Add(name string, r *recording.Recording) error {
	if s.byID == nil {
		s.byID = map[string]*Operation{}
	}
	read := readStorages(r)
	for i := range r.Operations {
		op := &r.Operations[i]
		alone := isolate(r, op)
		file, err := recording.Encode(alone)
		if err != nil {
			return diag.New("NO_SIGNATURE", fmt.Sprintf("%s: operations[%d]", name, i), "%v", err)
		}
		id := digest.Bytes(file)[:12]
		o := s.byID[id]
		if o == nil {
			o = &Operation{ID: id, Name: op.Name, Alone: alone, Text: alone.Signature(&alone.Operations[0]), Module: op.Module, Source: op.Source}
			s.byID[id], s.all = o, append(s.all, o)
		}
		o.Calls++
		if !slices.Contains(o.Recordings, name) {
			o.Recordings = append(o.Recordings, name)
		}
		results := recording.Values(op.Results, nil)
		if o.read == nil {
			o.read = make([]bool, len(results))
		}
		for j, v := range results {
			o.read[j] = o.read[j] || read[r.Values[v].Storage]
		}
	}
	return nil
}

// Operations gives all that were added, by name and then by size.
func (s *Set) Operations() []*Operation {
	for _, o := range s.all {
		o.classify()
	}
	slices.SortStableFunc(s.all, func(a, b *Operation) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.bytes, b.bytes), strings.Compare(a.ID, b.ID))
	})
	return s.all
}

// readStorages says of each storage whether an operation or an output reads it.
func readStorages(r *recording.Recording) []bool {
	read := make([]bool, len(r.Storages))
	var values []int
	for i := range r.Operations {
		values = recording.Values(r.Operations[i].Arguments, values[:0])
		for _, v := range values {
			read[r.Values[v].Storage] = true
		}
	}
	for _, n := range r.Outputs {
		read[r.Values[n.Value].Storage] = true
	}
	return read
}
