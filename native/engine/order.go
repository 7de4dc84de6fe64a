package engine

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"samebits/bridge/recording"
)

// order moves the elements of a value between its storage and rows, the elements in row-major order.
//
// Elements that lie next to each other on one side rarely do on the other: channels-last images are transposed matrices. So
// the dimensions of the least steps on either side are walked in tiles, whose lines stay in the processor's first cache.
type order struct {
	size  int64       // bytes of an element
	outer []dimension // the other dimensions, the outermost first
	near  dimension   // of the least step in rows
	along dimension   // of the least step in the storage; a single element where that is near, too
}

// dimension is a number of elements, and how many bytes away the next one is on each side.
type dimension struct{ count, row, place int64 }

const (
	tile       = 32      // elements a side: 32 lines of the cache for each side
	worthwhile = 1 << 20 // bytes that are worth a thread
)

func newOrder(v *recording.Value) order {
	size := v.DType.Size()
	o := order{size: size, near: dimension{1, size, size}, along: dimension{1, size, size}}
	row := size
	for d, count := range slices.Backward(v.Sizes) {
		next := dimension{count, row, v.Strides[d] * size}
		row *= count
		last := len(o.outer) - 1
		switch {
		case count == 1:
		case last >= 0 && next.place == o.outer[last].place*o.outer[last].count:
			o.outer[last].count *= count // the two are one
		default:
			o.outer = append(o.outer, next)
		}
	}
	if len(o.outer) == 0 {
		return o
	}
	o.near, o.outer = o.outer[0], o.outer[1:]
	slices.Reverse(o.outer)
	if o.near.place == size {
		return o
	}
	least := -1
	for d, dim := range o.outer {
		if dim.place > 0 && dim.place < o.near.place && (least < 0 || dim.place < o.outer[least].place) {
			least = d
		}
	}
	if least >= 0 {
		o.along = o.outer[least]
		o.outer = slices.Delete(o.outer, least, least+1)
	}
	return o
}

// gather fills rows from the storage, whose first element place begins with. Several threads do it if there is much.
func (o *order) gather(rows, place []byte) {
	whole := *o.longest()
	parts := min(int64(len(rows))/worthwhile+1, int64(runtime.GOMAXPROCS(0)), whole.count)
	if parts == 1 {
		o.move(0, rows, place, true)
		return
	}
	var done sync.WaitGroup
	for part := range parts {
		done.Go(func() {
			begin, end := whole.count*part/parts, whole.count*(part+1)/parts
			piece := *o
			piece.outer = slices.Clone(o.outer)
			piece.longest().count = end - begin
			piece.move(0, rows[begin*whole.row:], place[begin*whole.place:], true)
		})
	}
	done.Wait()
}

// scatter is the way back. Where strides give two elements one place, the later of them stays.
func (o *order) scatter(rows, place []byte) { o.move(0, rows, place, false) }

// longest is the first of the dimensions that have the most elements.
func (o *order) longest() *dimension {
	longest := &o.near
	if o.along.count > longest.count {
		longest = &o.along
	}
	for d := range o.outer {
		if o.outer[d].count > longest.count {
			longest = &o.outer[d]
		}
	}
	return longest
}

// move walks the dimensions from outer[depth] on.
func (o *order) move(depth int, rows, place []byte, gather bool) {
	if depth < len(o.outer) {
		dim := &o.outer[depth]
		for i := range dim.count {
			o.move(depth+1, rows[i*dim.row:], place[i*dim.place:], gather)
		}
		return
	}
	if o.along.count == 1 {
		o.line(rows, place, o.near.count, gather)
		return
	}
	for a := int64(0); a < o.along.count; a += tile {
		for n := int64(0); n < o.near.count; n += tile {
			count := min(tile, o.near.count-n)
			for i := a; i < min(a+tile, o.along.count); i++ {
				o.line(rows[n*o.near.row+i*o.along.row:], place[n*o.near.place+i*o.along.place:], count, gather)
			}
		}
	}
}

// line moves some elements of near.
func (o *order) line(rows, place []byte, count int64, gather bool) {
	if gather {
		elements(rows, place, o.size, count, o.near.row, o.near.place)
	} else {
		elements(place, rows, o.size, count, o.near.place, o.near.row)
	}
}

// elements copies elements of size bytes, each so many bytes behind the one before.
func elements(to, from []byte, size, count, toStep, fromStep int64) {
	if toStep == size && fromStep == size {
		copy(to[:count*size], from)
		return
	}
	t, f := int64(0), int64(0)
	switch size {
	case 1:
		for range count {
			to[t] = from[f]
			t, f = t+toStep, f+fromStep
		}
	case 2:
		for range count {
			binary.NativeEndian.PutUint16(to[t:], binary.NativeEndian.Uint16(from[f:]))
			t, f = t+toStep, f+fromStep
		}
	case 4:
		for range count {
			binary.NativeEndian.PutUint32(to[t:], binary.NativeEndian.Uint32(from[f:]))
			t, f = t+toStep, f+fromStep
		}
	case 8:
		for range count {
			binary.NativeEndian.PutUint64(to[t:], binary.NativeEndian.Uint64(from[f:]))
			t, f = t+toStep, f+fromStep
		}
	default:
		for range count {
			copy(to[t:][:size], from[f:])
			t, f = t+toStep, f+fromStep
		}
	}
}
