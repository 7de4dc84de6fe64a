#include <stdlib.h>
#include <string.h>

#include "tables.h"

int sb_queue_open(sb_device *d, sb_queue **out, sb_error *e) {
  SB_ENTER(d, e);
  struct CUstream_st *stream = NULL;
  SB_TRY(d->l, SB_CUDA, cuStreamCreate, (&stream, SB_STREAM_NON_BLOCKING), e);
  sb_queue *q = sb_zeroed(1, sizeof *q);
  q->d = d;
  q->stream = stream;
  *out = q;
  return 0;
}

int sb_queue_cudnn(sb_queue *q, sb_error *e) {
  if (q->cudnn != NULL) return 0;
  SB_ENTER(q->d, e);
  SB_TRY(q->d->l, SB_CUDNN, cudnnCreate, (&q->cudnn), e);
  SB_TRY(q->d->l, SB_CUDNN, cudnnSetStream, (q->cudnn, q->stream), e);
  return 0;
}

// PyTorch uses its cuBLAS handle as cuBLASLt's.
int sb_queue_cublas(sb_queue *q, sb_error *e) {
  if (q->cublas != NULL) return 0;
  SB_ENTER(q->d, e);
  SB_TRY(q->d->l, SB_CUBLAS, cublasCreate_v2, (&q->cublas), e);
  SB_TRY(q->d->l, SB_CUBLAS, cublasSetStream_v2, (q->cublas, q->stream), e);
  return 0;
}

int sb_queue_wait(sb_queue *q, sb_error *e) {
  SB_ENTER(q->d, e);
  return sb_wait(q->d, q->stream, e);
}

int sb_queue_close(sb_queue *q, sb_error *e) {
  int result = sb_release(q, e);
  if (result == 0) result = sb_queue_wait(q, e);
  if (q->cudnn != NULL) q->d->l->cudnnDestroy(q->cudnn);
  if (q->cublas != NULL) q->d->l->cublasDestroy_v2(q->cublas);
  q->d->l->cuStreamDestroy_v2(q->stream);
  free(q);
  return result;
}

int sb_queue_write(sb_queue *q, sb_pointer to, const void *from, size_t bytes, sb_error *e) {
  SB_ENTER(q->d, e);
  SB_TRY(q->d->l, SB_CUDA, cuMemcpyHtoDAsync_v2, (to, from, bytes, q->stream), e);
  return 0;
}

int sb_queue_read(sb_queue *q, void *to, sb_pointer from, size_t bytes, sb_error *e) {
  SB_ENTER(q->d, e);
  SB_TRY(q->d->l, SB_CUDA, cuMemcpyDtoHAsync_v2, (to, from, bytes, q->stream), e);
  return 0;
}

enum kind { NOTHING, KERNEL, CONVOLUTION, BATCH_NORM, NORM, LINEAR, MATMUL, COPY, FILL };

typedef struct command {
  enum kind kind;
  union {
    struct {
      struct CUfunc_st *function;
      unsigned grid[3], block[3], shared;
      void **parameters;  // followed, in one allocation, by the values that they point to
    } kernel;
    struct {
      void *plan, *pack;
    } convolution;
    sb_batch_norm *batch_norm;
    sb_norm *norm;
    sb_linear *linear;
    sb_matmul *matmul;
    struct {
      sb_pointer to, from;
      size_t bytes;
    } copy;
    struct {
      sb_pointer to;
      size_t bytes;
      unsigned char value;
    } fill;
  } u;
} command;

struct sb_list {
  int count;
  sb_lanes *lanes;  // NULL: one command after the other
  command commands[];
};

sb_list *sb_list_new(int commands) {
  sb_list *list = sb_zeroed(1, sizeof(sb_list) + (size_t)commands * sizeof(command));
  list->count = commands;
  return list;
}

void sb_list_free(sb_queue *q, sb_list *list) {
  for (int i = 0; i < list->count; i++) {
    command *c = &list->commands[i];
    switch (c->kind) {
      case KERNEL:
        free(c->u.kernel.parameters);
        break;
      case CONVOLUTION:
        sb_descriptor_free(q, c->u.convolution.pack);
        break;
      case BATCH_NORM:
        sb_batch_norm_close(q, c->u.batch_norm);
        free(c->u.batch_norm);
        break;
      case NORM:
        sb_norm_close(q, c->u.norm);
        free(c->u.norm);
        break;
      case LINEAR:
        sb_linear_close(q, c->u.linear);
        free(c->u.linear);
        break;
      case MATMUL:
        free(c->u.matmul);
        break;
      default:
        break;
    }
  }
  if (list->lanes != NULL) sb_lanes_close(list->lanes);
  free(list);
}

int sb_list_lanes(sb_list *list, int lanes, sb_queue **queues, const unsigned char *lane, const int *first,
                  const int *waits, sb_error *e) {
  return sb_lanes_open(&list->lanes, list->count, lanes, queues, lane, first, waits, e);
}

void sb_list_kernel(sb_list *list, int i, struct CUfunc_st *f, const unsigned grid[3], const unsigned block[3],
                    unsigned shared, int arguments, const uint64_t *values) {
  command *c = &list->commands[i];
  void **parameters = sb_zeroed((size_t)arguments + 1, sizeof(void *) + sizeof(uint64_t));
  uint64_t *slots = (uint64_t *)(parameters + arguments);
  for (int j = 0; j < arguments; j++) {
    slots[j] = values[j];
    parameters[j] = &slots[j];
  }
  c->kind = KERNEL;
  c->u.kernel.function = f;
  memcpy(c->u.kernel.grid, grid, sizeof c->u.kernel.grid);
  memcpy(c->u.kernel.block, block, sizeof c->u.kernel.block);
  c->u.kernel.shared = shared;
  c->u.kernel.parameters = parameters;
}

void sb_list_convolution(sb_list *list, int i, void *plan, void *pack) {
  command *c = &list->commands[i];
  c->kind = CONVOLUTION;
  c->u.convolution.plan = plan;
  c->u.convolution.pack = pack;
}

void sb_list_batch_norm(sb_list *list, int i, const sb_batch_norm *b) {
  command *c = &list->commands[i];
  c->kind = BATCH_NORM;
  c->u.batch_norm = sb_zeroed(1, sizeof *b);
  *c->u.batch_norm = *b;
}

void sb_list_norm(sb_list *list, int i, const sb_norm *n) {
  command *c = &list->commands[i];
  c->kind = NORM;
  c->u.norm = sb_zeroed(1, sizeof *n);
  *c->u.norm = *n;
}

void sb_list_linear(sb_list *list, int i, const sb_linear *p) {
  command *c = &list->commands[i];
  c->kind = LINEAR;
  c->u.linear = sb_zeroed(1, sizeof *p);
  *c->u.linear = *p;
}

void sb_list_matmul(sb_list *list, int i, const sb_matmul *p) {
  command *c = &list->commands[i];
  c->kind = MATMUL;
  c->u.matmul = sb_zeroed(1, sizeof *p);
  *c->u.matmul = *p;
}

void sb_list_copy(sb_list *list, int i, sb_pointer to, sb_pointer from, size_t bytes) {
  command *c = &list->commands[i];
  if (bytes == 0) return;
  c->kind = COPY;
  c->u.copy.to = to;
  c->u.copy.from = from;
  c->u.copy.bytes = bytes;
}

void sb_list_fill(sb_list *list, int i, sb_pointer to, unsigned char value, size_t bytes) {
  command *c = &list->commands[i];
  if (bytes == 0) return;
  c->kind = FILL;
  c->u.fill.to = to;
  c->u.fill.value = value;
  c->u.fill.bytes = bytes;
}

int sb_launch(sb_queue *q, const sb_list *list, int i, sb_error *e) {
  sb_libraries *l = q->d->l;
  const command *c = &list->commands[i];
  switch (c->kind) {
    case NOTHING:
      return 0;
    case KERNEL: {
      const unsigned *g = c->u.kernel.grid, *b = c->u.kernel.block;
      SB_TRY(l, SB_CUDA, cuLaunchKernel,
             (c->u.kernel.function, g[0], g[1], g[2], b[0], b[1], b[2], c->u.kernel.shared, q->stream,
              c->u.kernel.parameters, NULL),
             e);
      return 0;
    }
    case CONVOLUTION:
      return sb_convolution_launch(q, c->u.convolution.plan, c->u.convolution.pack, e);
    case BATCH_NORM:
      return sb_batch_norm_launch(q, c->u.batch_norm, e);
    case NORM:
      return sb_norm_launch(q, c->u.norm, e);
    case LINEAR:
      return sb_linear_launch(q, c->u.linear, e);
    case MATMUL:
      return sb_matmul_launch(q, c->u.matmul, e);
    case COPY:
      SB_TRY(l, SB_CUDA, cuMemcpyDtoDAsync_v2, (c->u.copy.to, c->u.copy.from, c->u.copy.bytes, q->stream), e);
      return 0;
    case FILL:
      SB_TRY(l, SB_CUDA, cuMemsetD8Async, (c->u.fill.to, c->u.fill.value, c->u.fill.bytes, q->stream), e);
      return 0;
  }
  return 0;
}

static int walk(sb_queue *q, const sb_list *list, int from, int to, sb_error *e) {
  if (list->lanes != NULL) return sb_lanes_walk(list->lanes, list, e);
  for (int i = from; i < to; i++) {
    if (sb_launch(q, list, i, e) != 0) {
      e->command = i;
      return -1;
    }
  }
  return 0;
}

int sb_run(sb_queue *q, const sb_list *list, int from, int to, sb_error *e) {
  SB_ENTER(q->d, e);
  return walk(q, list, from, to, e);
}

int sb_capture(sb_queue *q, const sb_list *list, size_t *nodes, sb_error *e) {
  sb_libraries *l = q->d->l;
  struct CUgraph_st *graph = NULL;
  struct CUgraphExec_st *exec = NULL;
  long long counted[SB_NODES] = {0};
  SB_ENTER(q->d, e);
  SB_TRY(l, SB_CUDA, cuStreamBeginCapture_v2, (q->stream, SB_CAPTURE_THREAD_LOCAL), e);
  int result = walk(q, list, 0, q->breaks ? list->count / 2 : list->count, e);
  if (result == 0 && q->breaks) {
    q->breaks = 0;
    unsigned broken = l->cuStreamSynchronize(q->stream);  // as no capture allows
    if (broken != 0) result = sb_fail(l, SB_CUDA, broken, "cuStreamSynchronize", e);
  }
  // The capture ends in any case, or the stream could never be used again. The first cause is the one to report.
  unsigned ended = l->cuStreamEndCapture(q->stream, &graph);
  if (result == 0 && ended != 0) result = sb_fail(l, SB_CUDA, ended, "cuStreamEndCapture", e);
  if (result != 0) goto done;
  if ((result = sb_count_nodes(l, graph, nodes, counted, e)) != 0) goto done;
  SB_GO(l, SB_CUDA, cuGraphInstantiateWithFlags, (&exec, graph, 0), e);
  if (q->graph != NULL) l->cuGraphExecDestroy(q->graph);
  q->graph = exec;
  memcpy(q->nodes, counted, sizeof counted);
done:
  if (graph != NULL) l->cuGraphDestroy(graph);
  return result;
}

int sb_replay(sb_queue *q, sb_error *e) {
  SB_ENTER(q->d, e);
  SB_TRY(q->d->l, SB_CUDA, cuGraphLaunch, (q->graph, q->stream), e);
  return 0;
}

int sb_release(sb_queue *q, sb_error *e) {
  if (q->graph == NULL) return 0;
  struct CUgraphExec_st *graph = q->graph;
  q->graph = NULL;
  memset(q->nodes, 0, sizeof q->nodes);
  SB_ENTER(q->d, e);
  SB_TRY(q->d->l, SB_CUDA, cuGraphExecDestroy, (graph), e);
  return 0;
}
