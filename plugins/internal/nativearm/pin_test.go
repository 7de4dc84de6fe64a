package nativearm

import (
	"errors"
	"testing"

	"samebits/native/device"
)

type pinner struct {
	device.Device
	held   map[*byte]int
	refuse int // length that is refused
}

func (p *pinner) RegisterHost(data []byte) (func() error, error) {
	if len(data) == p.refuse {
		return nil, errors.New("no")
	}
	p.held[&data[0]]++
	return func() error { p.held[&data[0]]--; return nil }, nil
}

func TestPins(t *testing.T) {
	d := &pinner{held: map[*byte]int{}, refuse: 3}
	ranges := [][]byte{make([]byte, 8), make([]byte, 3), nil, make([]byte, 16)}
	var pins Pins
	pins.add(d, ranges[:3])
	pins.add(d, ranges) // as after a further range was attached
	for i, want := range []int{1, 0, -1, 1} {
		if want >= 0 && d.held[&ranges[i][0]] != want {
			t.Errorf("range %d is pinned %d times, want %d", i, d.held[&ranges[i][0]], want)
		}
	}
	for range 2 {
		if err := pins.Release(); err != nil {
			t.Fatal(err)
		}
	}
	for p, n := range d.held {
		if n != 0 {
			t.Errorf("range at %p is pinned %d times after release", p, n)
		}
	}
	pins.add(struct{ device.Device }{}, ranges) // a device that cannot
	if len(pins.held) != 0 {
		t.Error("pinned by a device that cannot")
	}
}
