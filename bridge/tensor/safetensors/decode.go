package safetensors

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

// Decode reads a file from memory. The tensors' data are slices of data, which must not change while they are used.
// The error lists every problem (diag.Problems), each with the path weights/<name>.
func Decode(data []byte) (*File, error) {
	if len(data) < 8 {
		return nil, diag.New("TRUNCATED", "weights", "%d bytes are too few for the length of the header", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > MaxHeader {
		return nil, diag.New("HEADER_TOO_LARGE", "weights", "the header claims %d bytes, more than %d", n, MaxHeader)
	}
	if n > uint64(len(data)-8) {
		return nil, diag.New("TRUNCATED", "weights", "the header claims %d bytes, only %d follow", n, len(data)-8)
	}
	var problems diag.Problems
	h := parseHeader(data[8:8+n], &problems)
	if h == nil {
		return nil, problems.Err()
	}
	body := data[8+n:]
	f := &File{Metadata: h.metadata}
	for i := range h.entries {
		e := &h.entries[i]
		if dtype, ok := e.check(uint64(len(body)), &problems); ok {
			spec := tensor.Spec{Name: e.name, DType: dtype, Sizes: e.shape}
			f.Tensors = append(f.Tensors, Tensor{spec, body[e.begin:e.end:e.end]})
		}
	}
	// Gaps and overlaps mean something only when each entry is sound by itself.
	if len(problems) == 0 {
		checkCover(h.entries, uint64(len(body)), &problems)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	return f, nil
}

// entry is a tensor as the header describes it.
type entry struct {
	name       string
	dtype      string
	shape      []int64
	begin, end uint64
}

// path says where a tensor is, for problems. Hostile names may be as long as the header.
func path(name string) string { return "weights/" + name[:min(len(name), 512)] }

// check says whether e alone is sound in a body of the given size.
func (e *entry) check(body uint64, problems *diag.Problems) (tensor.DType, bool) {
	dtype, known := dtypeNames[e.dtype]
	if !known {
		problems.Add("UNKNOWN_DTYPE", path(e.name), "dtype %.32q is not supported", e.dtype)
		return tensor.Invalid, false
	}
	if e.begin > e.end || e.end > body {
		problems.Add("BAD_OFFSETS", path(e.name), "data offsets %d to %d do not lie in the %d bytes of data", e.begin, e.end, body)
		return tensor.Invalid, false
	}
	size, ok := byteSize(e.shape, dtype)
	if !ok {
		problems.Add("BAD_SHAPE", path(e.name), "sizes %v overflow", e.shape)
		return tensor.Invalid, false
	}
	if e.end-e.begin != size {
		problems.Add("BAD_OFFSETS", path(e.name), "%s%v needs %d bytes, the data offsets give it %d", dtype, e.shape, size, e.end-e.begin)
		return tensor.Invalid, false
	}
	return dtype, true
}

// byteSize multiplies without overflow. Sizes are not negative.
func byteSize(sizes []int64, dtype tensor.DType) (uint64, bool) {
	n := uint64(dtype.Size())
	if slices.Contains(sizes, 0) {
		return 0, true
	}
	for _, s := range sizes {
		high, low := bits.Mul64(n, uint64(s))
		if high != 0 || low > math.MaxInt64 {
			return 0, false
		}
		n = low
	}
	return n, true
}

// checkCover demands that the entries fill the data without gap or overlap, as the format says.
func checkCover(entries []entry, body uint64, problems *diag.Problems) {
	order := slices.Clone(entries)
	slices.SortFunc(order, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	at, last := uint64(0), ""
	for _, e := range order {
		switch {
		case e.begin < at:
			problems.Add("OVERLAP", path(e.name), "its data begin at %d, inside those of %.200q, which end at %d", e.begin, last, at)
		case e.begin > at:
			problems.Add("GAP", path(e.name), "%d bytes before its data belong to no tensor", e.begin-at)
		}
		if e.end > at {
			at, last = e.end, e.name
		}
	}
	if at < body {
		problems.Add("GAP", "weights", "%d bytes at the end belong to no tensor", body-at)
	}
}
