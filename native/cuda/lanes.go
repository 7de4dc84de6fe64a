package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"samebits/native/device"
)

// checkSchedule refuses a schedule that does not fit a list of so many commands.
func checkSchedule(s *device.Schedule, commands int) error {
	if len(s.Lane) != commands || len(s.Waits) != commands {
		return fmt.Errorf("schedule of %d lanes and %d waits for a list of %d commands", len(s.Lane), len(s.Waits), commands)
	}
	for i, lane := range s.Lane {
		if int(lane) >= s.Lanes {
			return fmt.Errorf("schedule: command %d is on lane %d of %d", i, lane, s.Lanes)
		}
		for _, j := range s.Waits[i] {
			if j < 0 || int(j) >= i {
				return fmt.Errorf("schedule: command %d waits for command %d, which is not before it", i, j)
			}
		}
	}
	return nil
}

// laneOf is the lane of command i.
func (p *program) laneOf(i int) int {
	if p.lane == nil {
		return 0
	}
	return int(p.lane[i])
}

func (p *program) queue(i int) *C.sb_queue { return p.lanes[p.laneOf(i)] }

// closeLanes waits for all lanes and gives the first error.
func (p *program) closeLanes() error {
	var first error
	for _, q := range p.lanes {
		var e C.sb_error
		if C.sb_queue_close(q, &e) != 0 && first == nil {
			first = failure(&e)
		}
	}
	p.lanes = nil
	return first
}

// lanes tells the list which command runs where and what it waits for.
func (w *preparation) lanes() error {
	var (
		e     C.sb_error
		first = make([]C.int, 1, len(w.p.lane)+1)
		waits []C.int
		lane  = append(slices.Clone(w.p.lane), 0) // never empty
	)
	for i, all := range w.options.Schedule.Waits {
		if j, ok := w.persistent.before[i]; ok {
			all = append(slices.Clone(all), int32(j))
		}
		for _, j := range essential(all, w.p.lane, w.p.lane[i]) {
			waits = append(waits, C.int(j))
		}
		first = append(first, C.int(len(waits)))
	}
	if C.sb_list_lanes(w.p.list, C.int(len(w.p.lanes)), unsafe.SliceData(w.p.lanes), (*C.uchar)(unsafe.SliceData(lane)),
		unsafe.SliceData(first), unsafe.SliceData(waits), &e) != 0 {
		return failure(&e)
	}
	return nil
}

// essential leaves the last command of each other lane: it implies those before it.
func essential(waits []int32, lane []uint8, own uint8) []int32 {
	var out []int32
	for _, j := range waits {
		if lane[j] == own {
			continue
		}
		k := slices.IndexFunc(out, func(o int32) bool { return lane[o] == lane[j] })
		if k < 0 {
			out = append(out, j)
		} else {
			out[k] = max(out[k], j)
		}
	}
	return out
}
