package engine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"samebits/bridge/recording"
	"samebits/native/device"
)

// gather is an output whose elements do not lie one after the other. Its bytes come to the host as they lie, in order with
// the step, and are put in order when the step is done.
type gather struct {
	value *recording.Value
	span  []byte // a mapping, pinned where the device can do that
	unpin func() error
	to    []byte // where the elements go at Wait; nil: nobody asked
}

// fetchGathered is Fetch of an output that is not contiguous.
func (m *Model) fetchGathered(i int, v *recording.Value, transfers device.Transfers, memory device.Memory, at int64, data []byte) error {
	g := m.gathers[i]
	if g == nil {
		var err error
		if g, err = m.newGather(v); err != nil {
			return fmt.Errorf("output %s: %w", m.Outputs[i].Name, err)
		}
		if m.gathers == nil {
			m.gathers = map[int]*gather{}
		}
		m.gathers[i] = g
	}
	if g.to != nil { // the span is filled by an earlier step
		if err := m.Wait(); err != nil {
			return err
		}
	}
	if err := transfers.ReadAsync(memory, at, g.span); err != nil {
		return err
	}
	g.to = data
	return nil
}

func (m *Model) newGather(v *recording.Value) (*gather, error) {
	span, err := unix.Mmap(-1, 0, int(spanBytes(v)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", spanBytes(v), err)
	}
	g := &gather{value: v, span: span}
	if pinner, ok := m.device.(device.Pinner); ok {
		g.unpin, _ = pinner.RegisterHost(span) // unpinned memory is slower, and right
	}
	return g, nil
}

// finish puts the elements in order that the last step gave, if it gave any.
func (g *gather) finish(given bool) {
	if given && g.to != nil {
		size := g.value.DType.Size()
		walk(g.value, func(logical, physical int64) { copy(g.to[logical*size:][:size], g.span[physical*size:]) })
	}
	g.to = nil
}

func (g *gather) free() error {
	var err error
	if g.unpin != nil {
		err = g.unpin()
	}
	return errors.Join(err, unix.Munmap(g.span))
}
