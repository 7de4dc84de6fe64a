// host.h: the C side of package host. A list of commands is walked in one call, on a pool of threads.
#ifndef SAMEBITS_HOST_H
#define SAMEBITS_HOST_H
#include <stddef.h>
#include <stdint.h>
#include "launch.h"
#ifdef __cplusplus
extern "C" {
#endif

// ---- commands -----------------------------------------------------------------------------------------------------
enum sb_kind { SB_KERNEL = 1, SB_CONVOLUTION, SB_BATCH_NORM, SB_NORM_TRAINING, SB_NORM_BACKWARD, SB_COPY, SB_FILL };
enum sb_direction { SB_FORWARD, SB_BACKWARD_DATA, SB_BACKWARD_FILTER };  // what is computed: y, x or w
enum sb_type { SB_FLOAT32 = 1, SB_FLOAT64, SB_BFLOAT16, SB_FLOAT16 };

struct sb_kernel {
  ch_entry_fn run;
  uint32_t grid[3], block[3], shared_bytes, nargs;
  void** args;
};

// A convolution is the matrix product y[m][j] = sum over k of w[m][k] * image(k, j) for every image n and group g,
// where m counts the group's output channels, j = oy * ow + ox its pixels and k = (ci * kh + ky) * kw + kx. k is cut
// into ceil(K / 256) even blocks; each is one chain acc = fma(w, x, acc) for its k in order from acc = 0, padding
// included as zeros, in float (double for float64); y is the sum of the blocks in order, times alpha, plus, by an fma,
// beta times what y held if beta is not 0, plus the column's bias if there is one, rounded once to the type. So neither
// threads nor vector width change a bit. A product of matrices is a convolution whose image has one row: column j of b
// is pixel j; a batch of them is one whose groups are the batch.
struct sb_convolution {
  void *x, *w, *y;
  const void* bias;  // ow elements, or null
  void* packed;      // co * ci * kh * kw * groups elements of the accumulator's type
  int32_t type, direction;
  int64_t n, groups, ci, co;  // ci, co: channels of one group
  int64_t h, wd, oh, ow, kh, kw, sy, sx, py, px, dy, dx;
  int64_t xs[4], ws[4], ys[4];  // strides in elements: n, c, h, w and, of w, co, ci, kh, kw
  int64_t xg, wg, yg;           // from group to group
  double alpha, beta;           // forward only
};

struct sb_batch_norm {
  const void* x;
  void* y;
  const float *scale, *bias, *mean, *variance;
  float epsilon;
  int32_t type;
  int64_t n, c, h, w;
  int64_t xs[4], ys[4];
};

// Batch norm of a training step: float statistics from sums in double, channel by channel in the order of memory.
struct sb_norm_training {
  const void* x;
  void* y;
  const float *scale, *bias;
  float *running_mean, *running_variance, *save_mean, *save_invstd;
  double momentum;
  float epsilon;
  int32_t type;
  int64_t n, c, h, w;
  int64_t xs[4], ys[4];
};

struct sb_norm_backward {
  const void *x, *dy;
  void* dx;
  const float *scale, *save_mean, *save_invstd;
  float *dscale, *dbias;
  int32_t type;
  int64_t n, c, h, w;
  int64_t xs[4], dys[4], dxs[4];
};

struct sb_copy {
  void* to;
  const void* from;
  int64_t bytes;
};

struct sb_fill {
  void* to;
  int64_t bytes;
  int32_t byte;
};

struct sb_command {
  int32_t kind;
  union {
    struct sb_kernel kernel;
    struct sb_convolution convolution;
    struct sb_batch_norm batch_norm;
    struct sb_norm_training norm_training;
    struct sb_norm_backward norm_backward;
    struct sb_copy copy;
    struct sb_fill fill;
  };
};

// A list is one block of memory: the commands, then the arguments of the kernels.
struct sb_list {
  int64_t count, bytes;
  struct sb_command* commands;
};
struct sb_list* sb_host_list_new(int64_t count, int64_t arguments);
struct sb_list* sb_host_list_copy(const struct sb_list* list);
// Gives room for a kernel's arguments: values[i] is where args[i] points to.
uint64_t* sb_list_arguments(struct sb_list* list, int64_t command, int64_t first, int64_t count);

// ---- the device ---------------------------------------------------------------------------------------------------
struct sb_host;
enum { SB_SCRATCH = 1 << 20 };  // bytes that one thread has for convolutions

// Starts threads-1 threads. vector is 256 or 512, the width in bits for convolutions; poison sets CH_POISON on
// launches.
struct sb_host* sb_host_new(int threads, int vector, int poison);
void sb_host_free(struct sb_host* host);

struct sb_failure {
  int64_t index;  // of the command
  char text[CH_ERROR];
};
// Runs commands from..to-1. Gives 0, or 1 if a kernel failed; the commands after it are not run.
int sb_host_run(struct sb_host* host, const struct sb_list* list, int64_t from, int64_t to, struct sb_failure* failure);

// The widest vectors that this CPU has: 512, 256, or 0 if it is no x86-64-v3: AVX2, FMA, F16C.
int sb_cpu_vector(void);

// ---- for the parts of the C side ----------------------------------------------------------------------------------
struct sb_slot {  // what one thread works with
  void* region;   // for launches
  char* scratch;  // SB_SCRATCH bytes
  char error[CH_ERROR];
  struct sb_slot* link;
};
typedef void (*sb_work)(void* context, struct sb_slot* slot);
// Calls work on up to `most` threads at once, the caller's included, and returns when all of them are done. Work shares
// itself out by a counter in its context: it must be complete if only one thread comes.
void sb_parallel(struct sb_host* host, struct sb_slot* mine, int64_t most, sb_work work, void* context);
int sb_host_threads(const struct sb_host* host);

// sb_convolve takes sb_convolve_depthwise where that can do it: it gives 0 otherwise.
int sb_convolve_depthwise(struct sb_host* host, struct sb_slot* mine, const struct sb_convolution* c);
// sb_convolve takes the others for the other directions.
void sb_convolve_backward_data(struct sb_host* host, struct sb_slot* mine, int vector, const struct sb_convolution* c);
void sb_convolve_backward_filter(struct sb_host* host, struct sb_slot* mine, int vector,
                                 const struct sb_convolution* c);
void sb_convolve(struct sb_host* host, struct sb_slot* mine, int vector, const struct sb_convolution* c);
void sb_normalise(struct sb_host* host, struct sb_slot* mine, const struct sb_batch_norm* b);
void sb_normalise_training(struct sb_host* host, struct sb_slot* mine, const struct sb_norm_training* b);
void sb_normalise_backward(struct sb_host* host, struct sb_slot* mine, const struct sb_norm_backward* b);

#ifdef __cplusplus
}
#endif
#endif
