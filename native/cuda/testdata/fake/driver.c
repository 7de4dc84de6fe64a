#include <elf.h>

#include "fake.h"

enum {
  ILLEGAL_ADDRESS = 700,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_UNJOINED = 904,
  CAPTURE_ISOLATION = 905,
  STREAMS = 64
};

static unsigned sticky;  // every call answers it once it is set
static size_t in_use;
static char contexts[16];

#define ALIVE \
  if (sticky) return sticky

const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value && *value ? value : otherwise;
}

FILE *record(void) {
  const char *path = setting("FAKE_LOG", NULL);
  return path ? fopen(path, "a") : NULL;
}

struct CUgraph_st {
  int count;
  op ops[256];
};

// A stream's clock says how much of each stream has surely run before what it runs next.
struct CUstream_st {
  struct CUgraph_st *capture;
  int id, invalid;
  int clock[STREAMS];
};
struct CUevent_st {
  int id;
  struct CUgraph_st *capture;
  int clock[STREAMS];
};
static struct CUstream_st *streams[STREAMS];

static void run_copy(const op *o) { memcpy((void *)o->words[0], (void *)o->words[1], o->words[2]); }
static void run_upload(const op *o) { run_copy(o); }
static void run_fetch(const op *o) { run_copy(o); }
static int copies(const op *o) { return o->run == run_copy || o->run == run_upload || o->run == run_fetch; }
static void run_set(const op *o) { memset((void *)o->words[0], (int)o->words[1], o->words[2]); }

static void record_stream(const struct CUstream_st *s, const char *what, int number) {
  const char *path = setting("FAKE_STREAMS", NULL);
  FILE *f = path ? fopen(path, "a") : NULL;
  if (f == NULL) return;
  fprintf(f, number < 0 ? "%d: %s\n" : "%d: %s %d\n", s->id, what, number);
  fclose(f);
}

unsigned enqueue(struct CUstream_st *s, op o) {
  ALIVE;
  record_stream(s, copies(&o) ? "copy" : o.run == run_set ? "set" : "launch", -1);
  s->clock[s->id]++;
  if (s->capture != NULL)
    s->capture->ops[s->capture->count++] = o;
  else
    o.run(&o);
  return 0;
}

unsigned cuInit(unsigned flags) {
  (void)flags;
  return atoi(setting("FAKE_DEVICES", "1")) == 0 ? 100 : 0;
}
unsigned cuDriverGetVersion(int *v) { return *v = 13000, 0; }
unsigned cuGetErrorName(unsigned code, const char **name) {
  *name = code == 1                     ? "CUDA_ERROR_INVALID_VALUE"
          : code == 2                   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == ILLEGAL_ADDRESS     ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                                        : "CUDA_ERROR_SOMETHING";
  return 0;
}
unsigned cuGetErrorString(unsigned code, const char **text) { return (void)code, *text = "as the fake says", 0; }
unsigned cuDeviceGetCount(int *n) { return *n = atoi(setting("FAKE_DEVICES", "1")), 0; }
unsigned cuDeviceGet(int *d, int i) { return *d = i, 0; }
unsigned cuDeviceGetName(char *name, int n, int d) { return snprintf(name, (size_t)n, "Fake %d", d), 0; }
unsigned cuDeviceGetUuid_v2(struct CUuuid_st *u, int d) { return memset(u, 0xa0 + d, 16), 0; }
unsigned cuDeviceGetAttribute(int *v, unsigned which, int d) {
  (void)d;
  *v = which == SB_ATTRIBUTE_MAJOR ? 9 : which == SB_ATTRIBUTE_MINOR ? 0 : 132;
  return 0;
}
unsigned cuDeviceTotalMem_v2(size_t *n, int d) {
  return (void)d, *n = strtoull(setting("FAKE_BYTES", "1073741824"), NULL, 10), 0;
}
unsigned cuDevicePrimaryCtxRetain(struct CUctx_st **c, int d) { return *c = (struct CUctx_st *)&contexts[d], 0; }
unsigned cuDevicePrimaryCtxRelease_v2(int d) { return d != 0 ? 0 : (in_use = 0, sticky = 0); }
static __thread struct CUctx_st *current;
unsigned cuCtxSetCurrent(struct CUctx_st *c) { return current = c, 0; }
unsigned cuCtxGetCurrent(struct CUctx_st **c) { return *c = current, 0; }

unsigned cuMemGetInfo_v2(size_t *available, size_t *total) {
  ALIVE;
  cuDeviceTotalMem_v2(total, 0);
  *available = *total - in_use;
  return 0;
}
unsigned cuMemAlloc_v2(sb_pointer *p, size_t bytes) {
  size_t available, total, *block;
  ALIVE;
  cuMemGetInfo_v2(&available, &total);
  if (bytes > available) return SB_OUT_OF_MEMORY;
  block = aligned_alloc(512, (512 + bytes + 511) / 512 * 512);
  memset(block, 0xcd, 512 + bytes);
  *block = bytes;
  in_use += bytes;
  *p = (sb_pointer)block + 512;
  return 0;
}
unsigned cuMemFree_v2(sb_pointer p) {
  size_t *block = (size_t *)(p - 512);
  ALIVE;
  in_use -= *block;
  free(block);
  return 0;
}

unsigned cuMemcpyHtoDAsync_v2(sb_pointer to, const void *from, size_t n, struct CUstream_st *s) {
  return enqueue(s, (op){run_upload, {to, (uint64_t)from, n}});
}
unsigned cuMemcpyDtoHAsync_v2(void *to, sb_pointer from, size_t n, struct CUstream_st *s) {
  return enqueue(s, (op){run_fetch, {(uint64_t)to, from, n}});
}
unsigned cuMemcpyDtoDAsync_v2(sb_pointer to, sb_pointer from, size_t n, struct CUstream_st *s) {
  return enqueue(s, (op){run_copy, {to, from, n}});
}
unsigned cuMemsetD8Async(sb_pointer to, unsigned char value, size_t n, struct CUstream_st *s) {
  return enqueue(s, (op){run_set, {to, value, n}});
}
unsigned cuMemHostRegister_v2(void *p, size_t n, unsigned flags) { return (void)p, (void)n, flags; }
unsigned cuMemHostUnregister(void *p) { return (void)p, 0; }
unsigned cuMemHostAlloc(void **p, size_t n, unsigned flags) {
  return (void)flags, (*p = malloc(n)) ? 0 : SB_OUT_OF_MEMORY;
}
unsigned cuMemFreeHost(void *p) { return free(p), 0; }
unsigned cuStreamCreate(struct CUstream_st **s, unsigned flags) {
  (void)flags;
  ALIVE;
  int id = 0;
  while (streams[id] != NULL) id++;
  *s = streams[id] = calloc(1, sizeof **s);
  (*s)->id = id;
  return 0;
}
unsigned cuStreamDestroy_v2(struct CUstream_st *s) { return streams[s->id] = NULL, free(s), 0; }

unsigned cuEventCreate(struct CUevent_st **e, unsigned flags) {
  static int made;
  ALIVE;
  if (flags != SB_EVENT_DISABLE_TIMING) return SB_INVALID_VALUE;
  *e = calloc(1, sizeof **e);
  (*e)->id = made++;
  return 0;
}
unsigned cuEventDestroy_v2(struct CUevent_st *e) { return free(e), 0; }
unsigned cuEventRecord(struct CUevent_st *e, struct CUstream_st *s) {
  ALIVE;
  record_stream(s, "record", e->id);
  e->capture = s->capture;
  memcpy(e->clock, s->clock, sizeof e->clock);
  return 0;
}
unsigned cuEventQuery(struct CUevent_st *e) { return (void)e, sticky ? sticky : SB_NOT_READY; }
unsigned cuStreamWaitEvent(struct CUstream_st *s, struct CUevent_st *e, unsigned flags) {
  ALIVE;
  if (flags != 0) return SB_INVALID_VALUE;
  if (s->capture != NULL && e->capture != s->capture) return CAPTURE_ISOLATION;
  record_stream(s, "wait", e->id);
  s->capture = e->capture;
  for (int i = 0; i < STREAMS; i++)
    if (s->clock[i] < e->clock[i]) s->clock[i] = e->clock[i];
  return 0;
}
unsigned cuStreamSynchronize(struct CUstream_st *s) {
  if (s->capture != NULL) {
    s->invalid = 1;
    return CAPTURE_UNSUPPORTED;
  }
  return sticky;
}

// A module is its text, which stands in the cubin after the ELF header; a function is there if its name is.
struct CUmod_st {
  char text[4096];
};
struct CUfunc_st {
  char name[64];
  int shared;
};

unsigned cuModuleLoadData(struct CUmod_st **m, const void *image) {
  ALIVE;
  *m = calloc(1, sizeof **m);
  snprintf((*m)->text, sizeof(*m)->text, "%s", (const char *)image + sizeof(Elf64_Ehdr));
  return 0;
}
unsigned cuModuleUnload(struct CUmod_st *m) { return free(m), 0; }
unsigned cuModuleGetFunction(struct CUfunc_st **f, struct CUmod_st *m, const char *name) {
  ALIVE;
  if (strstr(m->text, name) == NULL) return 500;
  *f = calloc(1, sizeof **f);  // lives as long as the process, like a real one as long as its module
  snprintf((*f)->name, sizeof(*f)->name, "%s", name);
  (*f)->shared = 48 << 10;
  return 0;
}
unsigned cuFuncLoad(struct CUfunc_st *f) { return (void)f, sticky; }
unsigned cuFuncSetAttribute(struct CUfunc_st *f, unsigned which, int value) {
  (void)which;
  if (value > 232448) return SB_INVALID_VALUE;
  f->shared = value;
  return 0;
}

// saxpy(const float *x, float *y, float a, int n); trap() touches what it must not; stall() waits, as no kernel can.
// All take blocks of 256 threads, as if they needed many registers.
static void run_saxpy(const op *o) {
  const float *x = (const float *)o->words[0];
  float *y = (float *)o->words[1], a;
  memcpy(&a, &o->words[2], sizeof a);
  for (int i = 0; i < (int)o->words[3]; i++) y[i] += a * x[i];
}
static void run_trap(const op *o) { (void)o, sticky = ILLEGAL_ADDRESS; }

unsigned cuLaunchKernel(struct CUfunc_st *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, struct CUstream_st *s, void **p, void **extra) {
  (void)gx, (void)gy, (void)gz, (void)extra;
  ALIVE;
  if (bx * by * bz > 256 || shared > (unsigned)f->shared) return SB_INVALID_VALUE;
  if (strcmp(f->name, "trap") == 0) return enqueue(s, (op){run_trap, {0}});
  if (strcmp(f->name, "stall") == 0) return cuStreamSynchronize(s);
  return enqueue(s, (op){run_saxpy, {*(uint64_t *)p[0], *(uint64_t *)p[1], *(uint32_t *)p[2], *(uint32_t *)p[3]}});
}

unsigned cuStreamBeginCapture_v2(struct CUstream_st *s, unsigned mode) {
  ALIVE;
  if (mode != SB_CAPTURE_THREAD_LOCAL) return SB_INVALID_VALUE;
  s->capture = calloc(1, sizeof *s->capture);
  return 0;
}
unsigned cuStreamEndCapture(struct CUstream_st *s, struct CUgraph_st **g) {
  unsigned status = 0;
  *g = s->capture;
  for (int i = 0; i < STREAMS; i++) {
    if (streams[i] == NULL || streams[i]->capture != *g) continue;
    if (streams[i]->clock[i] != s->clock[i]) status = CAPTURE_UNJOINED;
    if (streams[i]->invalid) status = CAPTURE_INVALIDATED;
    streams[i]->capture = NULL;
    streams[i]->invalid = 0;
  }
  if (status == 0) return 0;
  free(*g);
  *g = NULL;
  return status;
}
unsigned cuGraphGetNodes(struct CUgraph_st *g, struct CUgraphNode_st **nodes, size_t *n) {
  if (nodes != NULL)
    for (int i = 0; i < g->count; i++) nodes[i] = (struct CUgraphNode_st *)&g->ops[i];
  return *n = (size_t)g->count, 0;
}
unsigned cuGraphNodeGetType(struct CUgraphNode_st *node, unsigned *type) {
  const op *o = (const op *)node;
  return *type = copies(o) ? SB_NODE_MEMCPY : o->run == run_set ? SB_NODE_MEMSET : SB_NODE_KERNEL, 0;
}
// Copies between addresses of the device are of the unified kind, so that the driver must be asked.
unsigned cuGraphMemcpyNodeGetParams(struct CUgraphNode_st *node, struct CUDA_MEMCPY3D_st *p) {
  const op *o = (const op *)node;
  unsigned from = o->run == run_upload ? SB_MEMORY_HOST : SB_MEMORY_UNIFIED,
           to = o->run == run_fetch ? SB_MEMORY_HOST : SB_MEMORY_UNIFIED;
  unsigned char *params = memset(p, 0, SB_MEMCPY_BYTES);
  memcpy(params + SB_MEMCPY_FROM_TYPE, &from, sizeof from);
  memcpy(params + SB_MEMCPY_FROM, &o->words[1], sizeof o->words[1]);
  memcpy(params + SB_MEMCPY_TO_TYPE, &to, sizeof to);
  memcpy(params + SB_MEMCPY_TO, &o->words[0], sizeof o->words[0]);
  return 0;
}
unsigned cuPointerGetAttribute(void *data, unsigned which, sb_pointer p) {
  if (which != SB_POINTER_MEMORY_TYPE || p == 0) return SB_INVALID_VALUE;
  *(unsigned *)data = 2;
  return 0;
}
unsigned cuGraphInstantiateWithFlags(struct CUgraphExec_st **e, struct CUgraph_st *g, unsigned long long flags) {
  (void)flags;
  struct CUgraph_st *copy = malloc(sizeof *copy);
  *copy = *g;
  *e = (struct CUgraphExec_st *)copy;
  return 0;
}
unsigned cuGraphLaunch(struct CUgraphExec_st *e, struct CUstream_st *s) {
  struct CUgraph_st *g = (struct CUgraph_st *)e;
  for (int i = 0; i < g->count; i++) enqueue(s, g->ops[i]);
  return sticky;
}
unsigned cuGraphDestroy(struct CUgraph_st *g) { return free(g), 0; }
unsigned cuGraphExecDestroy(struct CUgraphExec_st *e) { return free(e), 0; }
