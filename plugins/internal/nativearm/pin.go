package nativearm

import (
	"errors"

	"samebits/bridge/serve"
	"samebits/native/device"
)

// Pins are the ranges of shared memory that are pinned for a device, so that its copies need no staging.
type Pins struct {
	held map[*byte]func() error // by the first byte of a range
}

// Add pins the attached ranges that are not pinned yet. A range that cannot be pinned is only slower.
func (p *Pins) Add(d device.Device, memory *serve.Memory) { p.add(d, memory.Ranges()) }

func (p *Pins) add(d device.Device, ranges [][]byte) {
	pinner, ok := d.(device.Pinner)
	if !ok {
		return
	}
	for _, r := range ranges {
		if len(r) == 0 || p.held[&r[0]] != nil {
			continue
		}
		if release, err := pinner.RegisterHost(r); err == nil {
			if p.held == nil {
				p.held = map[*byte]func() error{}
			}
			p.held[&r[0]] = release
		}
	}
}

// Release gives all ranges back. The device must be open.
func (p *Pins) Release() error {
	var errs []error
	for _, release := range p.held {
		errs = append(errs, release())
	}
	p.held = nil
	return errors.Join(errs...)
}
