#include <stdatomic.h>
#include <stdlib.h>

#include "tables.h"

int sb_device_count(sb_libraries *l, int *count, sb_error *e) {
  SB_TRY(l, SB_CUDA, cuInit, (0), e);
  SB_TRY(l, SB_CUDA, cuDeviceGetCount, (count), e);
  return 0;
}

static int describe(sb_libraries *l, int device, sb_device_info *info, sb_error *e) {
  SB_TRY(l, SB_CUDA, cuDeviceGetName, (info->name, sizeof info->name, device), e);
  SB_TRY(l, SB_CUDA, cuDeviceGetUuid_v2, ((struct CUuuid_st *)info->uuid, device), e);
  SB_TRY(l, SB_CUDA, cuDeviceGetAttribute, (&info->major, SB_ATTRIBUTE_MAJOR, device), e);
  SB_TRY(l, SB_CUDA, cuDeviceGetAttribute, (&info->minor, SB_ATTRIBUTE_MINOR, device), e);
  SB_TRY(l, SB_CUDA, cuDeviceGetAttribute, (&info->sms, SB_ATTRIBUTE_SM_COUNT, device), e);
  SB_TRY(l, SB_CUDA, cuDeviceTotalMem_v2, (&info->bytes, device), e);
  return 0;
}

int sb_device_open(sb_libraries *l, int index, sb_device **out, sb_device_info *info, sb_error *e) {
  int result = 0;
  sb_device *d = sb_zeroed(1, sizeof *d);
  d->l = l;
  SB_GO(l, SB_CUDA, cuDeviceGet, (&d->device, index), e);
  if (describe(l, d->device, info, e) != 0) {
    result = -1;
    goto done;
  }
  SB_GO(l, SB_CUDA, cuDevicePrimaryCtxRetain, (&d->context, d->device), e);
  SB_GO(l, SB_CUDA, cuCtxSetCurrent, (d->context), e);
  SB_GO(l, SB_CUDA, cuStreamCreate, (&d->transfers, SB_STREAM_NON_BLOCKING), e);
done:
  if (result != 0) {
    if (d->context != NULL) l->cuDevicePrimaryCtxRelease_v2(d->device);
    free(d);
    return result;
  }
  *out = d;
  return 0;
}

int sb_device_close(sb_device *d, sb_error *e) {
  int result = 0;
  SB_GO(d->l, SB_CUDA, cuCtxSetCurrent, (d->context), e);
  SB_GO(d->l, SB_CUDA, cuStreamDestroy_v2, (d->transfers), e);
done:
  d->l->cuDevicePrimaryCtxRelease_v2(d->device);
  free(d);
  return result;
}

int sb_memory_info(sb_device *d, size_t *free_bytes, size_t *total, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuMemGetInfo_v2, (free_bytes, total), e);
  return 0;
}

// Every wait for the device goes through here, so that it is counted.
int sb_wait(sb_device *d, struct CUstream_st *stream, sb_error *e) {
  atomic_fetch_add_explicit(&d->waits, 1, memory_order_relaxed);
  SB_TRY(d->l, SB_CUDA, cuStreamSynchronize, (stream), e);
  return 0;
}

long long sb_waits(sb_device *d) { return atomic_load_explicit(&d->waits, memory_order_relaxed); }

int sb_alloc(sb_device *d, size_t bytes, sb_pointer *p, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuMemAlloc_v2, (p, bytes), e);
  return 0;
}

int sb_free(sb_device *d, sb_pointer p, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuMemFree_v2, (p), e);
  return 0;
}

int sb_write(sb_device *d, sb_pointer to, const void *from, size_t bytes, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuMemcpyHtoDAsync_v2, (to, from, bytes, d->transfers), e);
  return sb_wait(d, d->transfers, e);
}

int sb_read(sb_device *d, void *to, sb_pointer from, size_t bytes, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuMemcpyDtoHAsync_v2, (to, from, bytes, d->transfers), e);
  return sb_wait(d, d->transfers, e);
}

int sb_set(sb_device *d, sb_pointer to, unsigned char value, size_t bytes, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuMemsetD8Async, (to, value, bytes, d->transfers), e);
  return sb_wait(d, d->transfers, e);
}

int sb_register(sb_device *d, void *p, size_t bytes, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuMemHostRegister_v2, (p, bytes, 0), e);
  return 0;
}

int sb_unregister(sb_device *d, void *p, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuMemHostUnregister, (p), e);
  return 0;
}

int sb_module_load(sb_device *d, const void *cubin, struct CUmod_st **module, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuModuleLoadData, (module, cubin), e);
  return 0;
}

int sb_module_unload(sb_device *d, struct CUmod_st *module, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuModuleUnload, (module), e);
  return 0;
}

int sb_function(sb_device *d, struct CUmod_st *module, const char *entry, struct CUfunc_st **f, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuModuleGetFunction, (f, module, entry), e);
  if (d->l->cuFuncLoad != NULL) SB_TRY(d->l, SB_CUDA, cuFuncLoad, (*f), e);
  return 0;
}

int sb_function_shared(sb_device *d, struct CUfunc_st *f, unsigned bytes, sb_error *e) {
  SB_ENTER(d, e);
  SB_TRY(d->l, SB_CUDA, cuFuncSetAttribute, (f, SB_FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes), e);
  return 0;
}
