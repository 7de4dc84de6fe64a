package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"samebits/bridge/atomicfile"
	"samebits/bridge/tensor"
)

// Encode makes a file in memory. Equal tensors and metadata give equal bytes, in whatever order they come: wide elements
// first, then by name, the header padded with spaces so that data start at a multiple of eight.
func Encode(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	order, header, err := layout(tensors, metadata)
	if err != nil {
		return nil, err
	}
	if err := checkData(order); err != nil {
		return nil, err
	}
	size := len(header)
	for _, t := range order {
		size += len(t.Data)
	}
	out := append(make([]byte, 0, size), header...)
	for _, t := range order {
		out = append(out, t.Data...)
	}
	return out, nil
}

// WriteFile writes a file that is there whole or not at all.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) error {
	order, header, err := layout(tensors, metadata)
	if err == nil {
		err = checkData(order)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		if _, err := w.Write(header); err != nil {
			return err
		}
		for _, t := range order {
			if _, err := w.Write(t.Data); err != nil {
				return err
			}
		}
		return nil
	})
}

// Size is the size of the file that Encode makes of tensors with these specs.
func Size(specs []tensor.Spec, metadata map[string]string) (int64, error) {
	tensors := make([]Tensor, len(specs))
	size := int64(0)
	for i, spec := range specs {
		tensors[i].Spec = spec
		size += spec.Bytes()
	}
	_, header, err := layout(tensors, metadata)
	return size + int64(len(header)), err
}

// checkData makes sure that every tensor has all of its bytes.
func checkData(tensors []Tensor) error {
	for _, t := range tensors {
		if t.Bytes() != int64(len(t.Data)) {
			return fmt.Errorf("tensor %q: %d bytes are no %s%v", t.Name, len(t.Data), t.DType, t.Sizes)
		}
	}
	return nil
}

// layout sorts the tensors as they will be written and makes all that stands before their data.
func layout(tensors []Tensor, metadata map[string]string) ([]Tensor, []byte, error) {
	rank := map[tensor.DType]int{}
	for i, o := range writeOrder {
		rank[o.dtype] = i
	}
	order := slices.Clone(tensors)
	slices.SortStableFunc(order, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(rank[a.DType], rank[b.DType]), cmp.Compare(a.Name, b.Name))
	})
	w := headerWriter{}
	w.raw("{")
	if len(metadata) > 0 {
		w.text(metadataKey)
		w.raw(":{")
		for i, k := range slices.Sorted(maps.Keys(metadata)) {
			w.comma(i)
			w.text(k)
			w.raw(":")
			w.text(metadata[k])
		}
		w.raw("}")
	}
	names := map[string]bool{}
	at := int64(0)
	for i, t := range order {
		if names[t.Name] || t.Name == metadataKey || !utf8.ValidString(t.Name) {
			return nil, nil, fmt.Errorf("tensor name %q is taken or not UTF-8", t.Name)
		}
		names[t.Name] = true
		if size, ok := byteSize(t.Sizes, t.DType); !t.DType.Valid() || !ok || size > math.MaxInt64 {
			return nil, nil, fmt.Errorf("tensor %q: there is no %s%v", t.Name, t.DType, t.Sizes)
		}
		w.comma(i + len(metadata))
		w.text(t.Name)
		w.raw(`:{"dtype":`)
		w.text(writeOrder[rank[t.DType]].name)
		w.raw(`,"shape":[`)
		for j, n := range t.Sizes {
			w.comma(j)
			w.raw("%d", n)
		}
		w.raw(`],"data_offsets":[%d,%d]}`, at, at+t.Bytes())
		at += t.Bytes()
	}
	w.raw("}")
	return order, w.finish(), nil
}

// headerWriter writes the JSON header as the Python package does: without spaces, keys in its order.
type headerWriter struct{ b bytes.Buffer }

func (w *headerWriter) raw(format string, args ...any) { fmt.Fprintf(&w.b, format, args...) }

func (w *headerWriter) comma(i int) {
	if i > 0 {
		w.raw(",")
	}
}

func (w *headerWriter) text(s string) {
	e := json.NewEncoder(&w.b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)             // text always encodes
	w.b.Truncate(w.b.Len() - 1) // Encode adds a newline
}

// finish pads the header to a multiple of eight and puts its length before it.
func (w *headerWriter) finish() []byte {
	for w.b.Len()%8 != 0 {
		w.raw(" ")
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(w.b.Len())), w.b.Bytes()...)
}
