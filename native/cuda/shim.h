// What Go sees of the C layer. Every function that can fail returns 0 or -1 and then fills its sb_error. Those that
// take a device or a queue make its context current first, so that the caller may be on any thread.
#ifndef SAMEBITS_SHIM_H
#define SAMEBITS_SHIM_H

#include "symbols.h"

enum sb_library { SB_LOADER, SB_CUDA, SB_NVRTC, SB_CUDNN, SB_CUBLAS, SB_CUBLASLT };

typedef struct sb_error {
  int library;     // enum sb_library
  unsigned code;   // the library's status
  int command;     // index in the launch list, or -1
  char text[800];  // the call and what the library says
} sb_error;

// libraries.c: one table of symbols for each library. Libraries stay open until the process ends.
typedef struct sb_libraries sb_libraries;
sb_libraries *sb_libraries_new(void);
void sb_libraries_free(sb_libraries *l);
// sb_open opens a library that others need, before they look for it themselves.
int sb_open(const char *path, sb_error *e);
int sb_load(sb_libraries *l, int library, const char *path, sb_error *e);
int sb_loaded(sb_libraries *l, int library);
// sb_path gives the file that the dynamic linker opened.
int sb_path(sb_libraries *l, int library, char *path, size_t n);
// sb_version gives a library's version in its own form: 13000, 91900. NVRTC's and cuBLAS's are 1000*major + 10*minor
// and 10000*major + 100*minor + patch.
int sb_version(sb_libraries *l, int library, int *version, sb_error *e);

// driver.c: the device, its memory and its kernels.
typedef struct sb_device {
  sb_libraries *l;
  int device;
  struct CUctx_st *context;
  struct CUstream_st *transfers;
  _Atomic long long waits;  // for streams, by any thread
} sb_device;

typedef struct sb_device_info {
  char name[256];
  unsigned char uuid[16];
  int major, minor, sms;
  size_t bytes;
} sb_device_info;

int sb_device_count(sb_libraries *l, int *count, sb_error *e);
int sb_device_open(sb_libraries *l, int index, sb_device **d, sb_device_info *info, sb_error *e);
int sb_device_close(sb_device *d, sb_error *e);
int sb_wait(sb_device *d, struct CUstream_st *stream, sb_error *e);
long long sb_waits(sb_device *d);
int sb_memory_info(sb_device *d, size_t *free, size_t *total, sb_error *e);
int sb_alloc(sb_device *d, size_t bytes, sb_pointer *p, sb_error *e);
int sb_free(sb_device *d, sb_pointer p, sb_error *e);
// These three are done when they return.
int sb_write(sb_device *d, sb_pointer to, const void *from, size_t bytes, sb_error *e);
int sb_read(sb_device *d, void *to, sb_pointer from, size_t bytes, sb_error *e);
int sb_set(sb_device *d, sb_pointer to, unsigned char value, size_t bytes, sb_error *e);
int sb_register(sb_device *d, void *p, size_t bytes, sb_error *e);
int sb_unregister(sb_device *d, void *p, sb_error *e);
int sb_module_load(sb_device *d, const void *cubin, struct CUmod_st **module, sb_error *e);
int sb_module_unload(sb_device *d, struct CUmod_st *module, sb_error *e);
// sb_function finds an entry and loads it now, not at its first launch, which may be in a capture.
int sb_function(sb_device *d, struct CUmod_st *module, const char *entry, struct CUfunc_st **f, sb_error *e);
int sb_function_shared(sb_device *d, struct CUfunc_st *f, unsigned bytes, sb_error *e);

// nvrtc.c: text to cubin. Both results are the caller's to free; the log is there on failure too.
typedef struct sb_compilation {
  char *cubin, *log;
  size_t cubin_bytes, log_bytes;
} sb_compilation;

int sb_compile(sb_libraries *l, const char *text, const char *name, int headers, const char *const *header_texts,
               const char *const *header_names, int options, const char *const *option_list, sb_compilation *out,
               sb_error *e);

// The kinds of nodes that a graph's are counted by.
enum sb_node {
  SB_KERNELS,
  SB_COPIES,
  SB_UPLOADS,
  SB_FETCHES,
  SB_SETS,
  SB_ALLOCS,
  SB_FREES,
  SB_HOSTS,
  SB_EVENTS,
  SB_GRAPHS,
  SB_OTHERS,
  SB_NODES
};

// run.c: a queue is a stream with the library handles that work on it. Handles are made when first asked for.
typedef struct sb_queue {
  sb_device *d;
  struct CUstream_st *stream;
  struct cudnnContext *cudnn;
  struct cublasContext *cublas;
  struct CUgraphExec_st *graph;
  long long nodes[SB_NODES];  // of the graph
  int breaks;                 // the next capture fails in its midst
} sb_queue;

int sb_queue_open(sb_device *d, sb_queue **q, sb_error *e);
int sb_queue_cudnn(sb_queue *q, sb_error *e);
int sb_queue_cublas(sb_queue *q, sb_error *e);
int sb_queue_wait(sb_queue *q, sb_error *e);
int sb_queue_close(sb_queue *q, sb_error *e);
int sb_queue_write(sb_queue *q, sb_pointer to, const void *from, size_t bytes, sb_error *e);
int sb_queue_read(sb_queue *q, void *to, sb_pointer from, size_t bytes, sb_error *e);

// cudnn.c: a convolution or one of its gradients is described once for each signature, packed once for each command.
enum { SB_MAX_DIMS = 5, SB_MAX_SPATIAL = 3, SB_TAG = 400 };

typedef struct sb_tensor {
  int type;  // cudnnDataType_t
  int dims;
  int64_t sizes[SB_MAX_DIMS], strides[SB_MAX_DIMS];
  int64_t alignment;
} sb_tensor;

enum sb_direction { SB_FORWARD, SB_BACKWARD_DATA, SB_BACKWARD_FILTER };

typedef struct sb_convolution {
  int direction;  // y from x and w, x from y and w, w from x and y
  sb_tensor x, w, y;
  int spatial;
  int64_t padding[SB_MAX_SPATIAL], stride[SB_MAX_SPATIAL], dilation[SB_MAX_SPATIAL];
  int deterministic;  // drop engines that may add in any order
  int no_tensor_core;
} sb_convolution;

typedef struct sb_configs sb_configs;  // the engine configurations that are proposed and the notes leave
int sb_convolution_configs(sb_queue *q, const sb_convolution *c, int mode, sb_configs **out, int *proposed, int *left,
                           sb_error *e);
// sb_convolution_config proposes one configuration, of an engine with these knobs, without asking a heuristic.
enum { SB_MAX_KNOBS = 44 };
int sb_convolution_config(sb_queue *q, const sb_convolution *c, int64_t engine, int knobs, const unsigned *types,
                          const int64_t *values, sb_configs **out, int *left, sb_error *e);
void sb_configs_free(sb_queue *q, sb_configs *configs);
// sb_convolution_plan builds the plan of configuration i, and names its engine and knobs in tag.
int sb_convolution_plan(sb_queue *q, sb_configs *configs, int i, void **plan, int64_t *workspace, char tag[SB_TAG],
                        sb_error *e);
// sb_configs_take hands a configuration over, for as long as its plan lives.
void *sb_configs_take(sb_configs *configs, int i);
int sb_convolution_pack(sb_queue *q, sb_pointer x, sb_pointer w, sb_pointer y, sb_pointer workspace, void **pack,
                        sb_error *e);
int sb_convolution_run(sb_queue *q, void *plan, void *pack, sb_error *e);
void sb_descriptor_free(sb_queue *q, void *descriptor);

// norm.c: batch norms. In inference
typedef struct sb_batch_norm {
  int type;  // of x and y
  int dims;
  int sizes[SB_MAX_DIMS], strides[SB_MAX_DIMS];
  sb_pointer x, y, scale, bias, mean, variance;
  double epsilon;
  struct cudnnTensorStruct *tensor, *channels;  // made by sb_batch_norm_open
} sb_batch_norm;

int sb_batch_norm_open(sb_queue *q, sb_batch_norm *b, sb_error *e);
int sb_batch_norm_run(sb_queue *q, const sb_batch_norm *b, sb_error *e);
void sb_batch_norm_close(sb_queue *q, sb_batch_norm *b);

// and in training, forward: y, the running statistics, what is saved and the reserve; backward: dx, dscale and dbias.
typedef struct sb_norm {
  int backward;
  unsigned mode;  // cudnnBatchNormMode_t
  int type;       // of x, y, dx and dy
  int dims;
  int sizes[SB_MAX_DIMS], strides[SB_MAX_DIMS];
  sb_pointer x, y, dx, dy, scale, bias, dscale, dbias, running_mean, running_variance, save_mean, save_invstd;
  sb_pointer reserve, workspace;
  double momentum, epsilon;
  size_t reserve_bytes;
  size_t reserve_needed, workspace_bytes;  // asked by sb_norm_open, which makes the descriptors
  struct cudnnTensorStruct *tensor, *channels;
} sb_norm;

int sb_norm_open(sb_queue *q, sb_norm *n, sb_error *e);
int sb_norm_run(sb_queue *q, const sb_norm *n, sb_error *e);
void sb_norm_close(sb_queue *q, sb_norm *n);

// cublas.c: column-major d[m,n] = alpha * op(a)[m,k] * op(b)[k,n] + bias[m], or + d if there is no bias.
typedef struct sb_linear {
  unsigned type;  // cudaDataType
  int tf32;
  int transa, transb;
  float alpha;
  int biased;
  int64_t m, n, k, lda, ldb, ldd;
  sb_pointer a, b, bias, d;
  uint32_t align_a, align_b, align_d, align_bias;
  sb_matmul_desc operation;  // made by sb_linear_open, like the layouts
  sb_matrix_layout layout_a, layout_b, layout_d;
  sb_matmul_algo algo;
  sb_pointer workspace;
  size_t workspace_bytes;
} sb_linear;

// sb_linear_open asks the heuristic, unless like has the same geometry and its answer.
int sb_linear_open(sb_queue *q, sb_linear *p, const sb_linear *like, char tag[SB_TAG], sb_error *e);
int sb_linear_run(sb_queue *q, const sb_linear *p, sb_error *e);
void sb_linear_close(sb_queue *q, sb_linear *p);

// matmul.c: column-major d[m,n] = alpha * op(a)[m,k] * op(b)[k,n] + beta * d, or of so many of each, some elements
// apart. A product with a vector is one of cuBLAS's own if its type is float32: then b is the vector, ldb and ldd the
// distances of elements, and op(a) is m by k.
typedef struct sb_matmul {
  unsigned type;  // cudaDataType
  int tf32;
  int vector;
  int transa, transb;
  int m, n, k, lda, ldb, ldd;
  int count;  // 1: no batch
  int64_t step_a, step_b, step_d;
  float alpha, beta;
  sb_pointer a, b, d;
  sb_pointer workspace;  // the handle's while this runs
  size_t workspace_bytes;
} sb_matmul;

int sb_matmul_run(sb_queue *q, const sb_matmul *p, sb_error *e);

// run.c: the launch list. The list owns what its commands refer to, except plans.
typedef struct sb_list sb_list;
sb_list *sb_list_new(int commands);
void sb_list_free(sb_queue *q, sb_list *list);
void sb_list_kernel(sb_list *list, int i, struct CUfunc_st *f, const unsigned grid[3], const unsigned block[3],
                    unsigned shared, int arguments, const uint64_t *values);
void sb_list_convolution(sb_list *list, int i, void *plan, void *pack);
void sb_list_batch_norm(sb_list *list, int i, const sb_batch_norm *b);
void sb_list_norm(sb_list *list, int i, const sb_norm *n);
void sb_list_linear(sb_list *list, int i, const sb_linear *p);
void sb_list_matmul(sb_list *list, int i, const sb_matmul *p);
void sb_list_copy(sb_list *list, int i, sb_pointer to, sb_pointer from, size_t bytes);
void sb_list_fill(sb_list *list, int i, sb_pointer to, unsigned char value, size_t bytes);
// sb_list_lanes spreads the list over queues, of which the first is the one to run, capture and replay on. Command i
// waits for the commands waits[first[i]] to waits[first[i+1] - 1], all of them before it and on other lanes.
int sb_list_lanes(sb_list *list, int lanes, sb_queue **queues, const unsigned char *lane, const int *first,
                  const int *waits, sb_error *e);
// sb_run launches commands from..to-1. It does not wait. A list with lanes runs whole.
int sb_run(sb_queue *q, const sb_list *list, int from, int to, sb_error *e);
// sb_capture records all commands into a graph, which replaces the queue's. A failure leaves the old one in place.
int sb_capture(sb_queue *q, const sb_list *list, size_t *nodes, sb_error *e);
int sb_replay(sb_queue *q, sb_error *e);
int sb_release(sb_queue *q, sb_error *e);

#endif
