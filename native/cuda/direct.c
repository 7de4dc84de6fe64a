#include "direct.h"

#include "tables.h"

int sb_queue_copy(sb_queue *q, sb_pointer to, sb_pointer from, size_t bytes, sb_error *e) {
  SB_ENTER(q->d, e);
  SB_TRY(q->d->l, SB_CUDA, cuMemcpyDtoDAsync_v2, (to, from, bytes, q->stream), e);
  return 0;
}

// order makes one stream wait for what is on another now. The driver keeps a destroyed event for as long as a stream
// waits for it.
static int order(sb_device *d, struct CUstream_st *first, struct CUstream_st *then, sb_error *e) {
  int result = 0;
  struct CUevent_st *event = NULL;
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuEventCreate, (&event, SB_EVENT_DISABLE_TIMING), e);
  SB_GO(d->l, SB_CUDA, cuEventRecord, (event, first), e);
  SB_GO(d->l, SB_CUDA, cuStreamWaitEvent, (then, event, 0), e);
done:
  d->l->cuEventDestroy_v2(event);
  return result;
}

int sb_queue_after(sb_queue *q, uintptr_t stream, sb_error *e) {
  return order(q->d, (struct CUstream_st *)stream, q->stream, e);
}

int sb_queue_before(sb_queue *q, uintptr_t stream, sb_error *e) {
  return order(q->d, q->stream, (struct CUstream_st *)stream, e);
}
