// What a program offers to a caller that uses the same context: copies on the device, and an order between streams.
#ifndef SAMEBITS_DIRECT_H
#define SAMEBITS_DIRECT_H

#include "shim.h"

// sb_queue_copy copies on the device, in order with the queue's launches.
int sb_queue_copy(sb_queue *q, sb_pointer to, sb_pointer from, size_t bytes, sb_error *e);
// sb_queue_after makes the queue wait for what is on stream now; sb_queue_before makes stream wait for the queue.
int sb_queue_after(sb_queue *q, uintptr_t stream, sb_error *e);
int sb_queue_before(sb_queue *q, uintptr_t stream, sb_error *e);

#endif
