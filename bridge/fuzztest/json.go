package fuzztest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// EditBytes is the length of an edit: two bytes say where, one what is done, eight are a number for it.
const EditBytes = 2 + 1 + 8

// Edit writes an edit, for seeds.
func Edit(where uint16, deed byte, number int64) []byte {
	data := append(binary.LittleEndian.AppendUint16(nil, where), deed)
	return binary.LittleEndian.AppendUint64(data, uint64(number))
}

// Edits calls do with each edit of a list, up to eight.
func Edits(list []byte, do func(where uint16, deed byte, number int64)) {
	for n := 0; len(list) >= EditBytes && n < 8; n++ {
		do(binary.LittleEndian.Uint16(list), list[2], int64(binary.LittleEndian.Uint64(list[3:])))
		list = list[EditBytes:]
	}
}

// EditJSON edits a JSON document: it removes, doubles and exchanges values and puts others in their places. So it stays JSON, and
// what reads it gets beyond its form. Keys are sorted, without spaces.
func EditJSON(t testing.TB, document, edits []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	whole := []any{root}
	Edits(edits, func(where uint16, deed byte, number int64) {
		var all []slot
		collect(whole, func(list []any) { whole = list }, &all)
		if len(all) > 0 {
			at, other := int(where)%len(all), int(uint64(number)%uint64(len(all)))
			all[at].change(deed, number, all[other].value)
		}
	})
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	var out any
	if len(whole) > 0 {
		out = whole[0]
	}
	if err := e.Encode(out); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// slot is a place of a value.
type slot struct {
	value  any
	set    func(any)
	remove func()
	double func()
}

func collect(v any, grown func([]any), all *[]slot) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			*all = append(*all, slot{v[i], func(n any) { v[i] = n }, func() { grown(slices.Delete(slices.Clone(v), i, i+1)) },
				func() { grown(slices.Insert(slices.Clone(v), i, v[i])) }})
			collect(v[i], func(list []any) { v[i] = list }, all)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			*all = append(*all, slot{v[k], func(n any) { v[k] = n }, func() { delete(v, k) }, func() { v[k+"2"] = v[k] }})
			collect(v[k], func(list []any) { v[k] = list }, all)
		}
	}
}

func (s slot) change(deed byte, number int64, other any) {
	switch deed % 8 {
	case 0:
		s.remove()
	case 1:
		s.double()
	case 2:
		s.set(clone(other))
	case 3:
		s.set(nil)
	case 4:
		s.set(number)
	case 5:
		text, _ := s.value.(string)
		s.set(text + string(bytes.TrimRight(binary.LittleEndian.AppendUint64(nil, uint64(number)), "\x00")))
	case 6:
		text, _ := s.value.(string)
		s.set(text[:int(uint64(number)%uint64(len(text)+1))])
	default:
		s.set([]any{[]any{}, map[string]any{}, true, float64(number) / 3, json.Number("1e400")}[uint64(number)%5])
	}
}

// clone copies a value, which must not come to lie in itself.
func clone(v any) any {
	switch v := v.(type) {
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = clone(v[i])
		}
		return c
	case map[string]any:
		c := make(map[string]any, len(v))
		for k := range v {
			c[k] = clone(v[k])
		}
		return c
	}
	return v
}
