#include "situation.h"

#include "tables.h"

int sb_queue_switch(sb_queue *q, sb_error *e) {
  sb_libraries *l = q->d->l;
  int result = 0;
  struct CUstream_st *stream = NULL, *old = q->stream;
  struct CUevent_st *event = NULL;
  SB_ENTER(q->d, e);
  SB_GO(l, SB_CUDA, cuStreamCreate, (&stream, SB_STREAM_NON_BLOCKING), e);
  SB_GO(l, SB_CUDA, cuEventCreate, (&event, SB_EVENT_DISABLE_TIMING), e);
  SB_GO(l, SB_CUDA, cuEventRecord, (event, old), e);
  SB_GO(l, SB_CUDA, cuStreamWaitEvent, (stream, event, 0), e);
  if (q->cudnn != NULL) SB_GO(l, SB_CUDNN, cudnnSetStream, (q->cudnn, stream), e);
  if (q->cublas != NULL) SB_GO(l, SB_CUBLAS, cublasSetStream_v2, (q->cublas, stream), e);
  q->stream = stream;
  stream = old;  // the driver ends it once its work is done
done:
  if (result != 0 && q->cudnn != NULL) l->cudnnSetStream(q->cudnn, old);  // it may have the new one, which ends here
  if (event != NULL) l->cuEventDestroy_v2(event);
  if (stream != NULL) l->cuStreamDestroy_v2(stream);
  return result;
}

int sb_bustle(sb_device *d, sb_error *e) {
  sb_libraries *l = d->l;
  int result = 0;
  void *pinned = NULL;
  struct CUstream_st *stream = NULL;
  struct CUevent_st *event = NULL;
  SB_ENTER(d, e);
  SB_GO(l, SB_CUDA, cuStreamCreate, (&stream, SB_STREAM_NON_BLOCKING), e);
  SB_GO(l, SB_CUDA, cuMemHostAlloc, (&pinned, 1 << 16, SB_HOST_PORTABLE), e);
  SB_GO(l, SB_CUDA, cuEventCreate, (&event, SB_EVENT_DISABLE_TIMING), e);
  SB_GO(l, SB_CUDA, cuEventRecord, (event, stream), e);
  unsigned status = l->cuEventQuery(event);
  if (status != 0 && status != SB_NOT_READY) result = sb_fail(l, SB_CUDA, status, "cuEventQuery", e);
done:
  if (event != NULL) l->cuEventDestroy_v2(event);
  if (pinned != NULL) l->cuMemFreeHost(pinned);
  if (stream != NULL) l->cuStreamDestroy_v2(stream);
  return result;
}

int sb_other_current(sb_device *d, int index, struct CUctx_st **context, sb_error *e) {
  int other;
  SB_TRY(d->l, SB_CUDA, cuDeviceGet, (&other, index), e);
  if (*context == NULL) SB_TRY(d->l, SB_CUDA, cuDevicePrimaryCtxRetain, (context, other), e);
  SB_TRY(d->l, SB_CUDA, cuCtxSetCurrent, (*context), e);
  return 0;
}

void sb_other_close(sb_device *d, int index) {
  int other;
  if (d->l->cuDeviceGet(&other, index) == 0) d->l->cuDevicePrimaryCtxRelease_v2(other);
}

struct CUctx_st *sb_current(sb_device *d) {
  struct CUctx_st *context = NULL;
  return d->l->cuCtxGetCurrent(&context) == 0 ? context : NULL;
}

void sb_make_current(sb_device *d, struct CUctx_st *context) { d->l->cuCtxSetCurrent(context); }
