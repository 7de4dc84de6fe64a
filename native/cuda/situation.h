// What tests do to a program and a device while they watch whether steps stay right.
#ifndef SAMEBITS_SITUATION_H
#define SAMEBITS_SITUATION_H

#include "shim.h"

// sb_queue_switch goes on on a fresh stream, behind what is on the old one. It does not wait.
int sb_queue_switch(sb_queue *q, sb_error *e);
// sb_bustle takes and frees pinned host memory, records an event and asks for it, on a stream of its own.
int sb_bustle(sb_device *d, sb_error *e);
// sb_other_current makes the context of another device current in this thread, and keeps it until sb_other_close.
int sb_other_current(sb_device *d, int index, struct CUctx_st **context, sb_error *e);
void sb_other_close(sb_device *d, int index);
// What is current in this thread; NULL if nothing is.
struct CUctx_st *sb_current(sb_device *d);
void sb_make_current(sb_device *d, struct CUctx_st *context);

#endif
