package cuda

/*
#include "direct.h"
*/
import "C"

import (
	"fmt"

	"samebits/native/device"
)

var _ device.Direct = (*program)(nil)

// CopyAsync copies between two addresses of the primary context, of whoever allocated them.
func (p *program) CopyAsync(to, from uintptr, bytes int64) error {
	if p.list == nil {
		return errClosed
	}
	if bytes <= 0 {
		return nil
	}
	if C.sb_queue_copy(p.q, C.sb_pointer(to), C.sb_pointer(from), C.size_t(bytes), &p.e) != 0 {
		return fmt.Errorf("copy %d bytes on %s: %w", bytes, p.d.Name(), failure(&p.e))
	}
	return nil
}

// After makes the program wait for a stream of the same context; 0 is the default stream.
func (p *program) After(stream uintptr) error {
	if p.list == nil {
		return errClosed
	}
	if C.sb_queue_after(p.q, C.uintptr_t(stream), &p.e) != 0 {
		return fmt.Errorf("wait for the caller's stream: %w", failure(&p.e))
	}
	return nil
}

// Before makes a stream of the same context wait for the program.
func (p *program) Before(stream uintptr) error {
	if p.list == nil {
		return errClosed
	}
	if C.sb_queue_before(p.q, C.uintptr_t(stream), &p.e) != 0 {
		return fmt.Errorf("make the caller's stream wait: %w", failure(&p.e))
	}
	return nil
}
