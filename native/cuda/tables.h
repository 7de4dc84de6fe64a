// The tables of symbols and what the C files share. Go does not see it.
#ifndef SAMEBITS_TABLES_H
#define SAMEBITS_TABLES_H

#include "shim.h"

#define SB_FIELD(result, name, parameters) result(*name) parameters;

struct sb_libraries {
  void *handles[SB_CUBLASLT + 1];
  SB_CUDA_SYMBOLS(SB_FIELD)
  SB_CUDA_OPTIONAL(SB_FIELD)
  SB_NVRTC_SYMBOLS(SB_FIELD)
  SB_CUDNN_SYMBOLS(SB_FIELD)
  SB_CUBLAS_SYMBOLS(SB_FIELD)
  SB_CUBLASLT_SYMBOLS(SB_FIELD)
};

// sb_zeroed allocates or ends the process: the sizes are small, and nobody could go on.
void *sb_zeroed(size_t count, size_t size);

// sb_fail fills e from a status, in the library's own words, and returns -1.
int sb_fail(sb_libraries *l, int library, unsigned code, const char *call, sb_error *e);

// SB_TRY returns -1 from the function around it if a call fails.
#define SB_TRY(l, library, call, arguments, e)                     \
  do {                                                             \
    unsigned status = (l)->call arguments;                         \
    if (status != 0) return sb_fail(l, library, status, #call, e); \
  } while (0)

// SB_GO is SB_TRY for functions with something to undo: it sets result to -1 and goes to done.
#define SB_GO(l, library, call, arguments, e) \
  do {                                        \
    unsigned status = (l)->call arguments;    \
    if (status != 0) {                        \
      sb_fail(l, library, status, #call, e);  \
      result = -1;                            \
      goto done;                              \
    }                                         \
  } while (0)

// SB_ENTER makes the device's context current on this thread.
#define SB_ENTER(d, e) SB_TRY((d)->l, SB_CUDA, cuCtxSetCurrent, ((d)->context), e)

// lanes.c: which queue each command of a list runs on, and what it waits for there.
typedef struct sb_lanes sb_lanes;
int sb_lanes_open(sb_lanes **out, int commands, int lanes, sb_queue **queues, const unsigned char *lane,
                  const int *first, const int *waits, sb_error *e);
void sb_lanes_close(sb_lanes *s);
int sb_lanes_walk(const sb_lanes *s, const sb_list *list, sb_error *e);

// nodes.c: how many nodes a graph has, and of what kinds.
int sb_count_nodes(sb_libraries *l, struct CUgraph_st *graph, size_t *count, long long kinds[SB_NODES], sb_error *e);

// sb_launch launches command i of a list.
int sb_launch(sb_queue *q, const sb_list *list, int i, sb_error *e);

// Launches one command's library call; the context is current already.
int sb_convolution_launch(sb_queue *q, void *plan, void *pack, sb_error *e);
int sb_batch_norm_launch(sb_queue *q, const sb_batch_norm *b, sb_error *e);
int sb_norm_launch(sb_queue *q, const sb_norm *n, sb_error *e);
int sb_matmul_launch(sb_queue *q, const sb_matmul *p, sb_error *e);
int sb_linear_launch(sb_queue *q, const sb_linear *p, sb_error *e);

#endif
