// log_softmax.cu: log-softmax over a short innermost dimension as PyTorch 2.11's softmax_warp_forward<is_log_softmax>
// computes it: a warp holds a row, n elements a lane. In the sum the exponential is fused (add_exp), and the maximum is
// subtracted once: (x - max) - log(sum).
#include "prelude.cuh"
#include "softmax.cuh"

template <int N, class T>
__device__ __forceinline__ void log_softmax_rows(T* out, int wide, const T* in, int64_t rows, int width) {
  int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  int count = row < rows ? width : 0;
  int64_t first = row * width + threadIdx.x;
  in += first;
  float e[N];
#pragma unroll
  for (int i = 0; i < N; i++) e[i] = (int)(threadIdx.x + i * blockDim.x) < count ? ld(in + i * blockDim.x) : -INFINITY;
  float max = e[0];
#pragma unroll
  for (int i = 0; i < N; i++) max = newer_unless_greater(max, e[i]);
  max = row_max(max);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; i++) {
    e[i] -= max;
    sum = add_exp(sum, e[i]);
  }
  float log_sum = logf(row_sum(sum));
#pragma unroll
  for (int i = 0; i < N; i++)
    if ((int)(threadIdx.x + i * blockDim.x) < count) store(out, wide, first + i * blockDim.x, e[i] - log_sum);
}

#define ROWS(n, T, suffix)                                                                                     \
  KERNEL_BOUNDS(log_softmax_rows##n##_##suffix, 128, T* out, int wide, const T* in, int64_t rows, int width) { \
    log_softmax_rows<n>(out, wide, in, rows, width);                                                           \
  }
#define ENTRIES(T, suffix) \
  ROWS(1, T, suffix)       \
  ROWS(2, T, suffix)       \
  ROWS(4, T, suffix)       \
  ROWS(8, T, suffix) ROWS(16, T, suffix) ROWS(32, T, suffix) ROWS(64, T, suffix)
EACH_DTYPE(ENTRIES)
