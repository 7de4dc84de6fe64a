// log_softmax_backward_data.cu: the gradient of log-softmax over a short innermost dimension as PyTorch 2.11's
// softmax_warp_backward<is_log_softmax> computes it: grad - exp(output) * sum of grad, a warp a row, n elements a lane.
// The exponential is rounded before the product is fused into the subtraction.
#include "prelude.cuh"
#include "softmax.cuh"

template <int N, class T, class Out>
__device__ __forceinline__ void log_softmax_backward_rows(Out* to, const T* grad, const T* output, int64_t rows,
                                                          int width) {
  int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  int count = row < rows ? width : 0;
  int64_t first = row * width + threadIdx.x;
  float g[N];
#pragma unroll
  for (int i = 0; i < N; i++)
    g[i] = (int)(threadIdx.x + i * blockDim.x) < count ? ld(grad + first + i * blockDim.x) : 0;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; i++) sum += g[i];
  sum = row_sum(sum);
#pragma unroll
  for (int i = 0; i < N; i++)
    if ((int)(threadIdx.x + i * blockDim.x) < count) {
      int64_t at = first + i * blockDim.x;
      st(to + at, fmaf(-sum, expf(ld(output + at)), g[i]));
    }
}

#define ROWS(n, T, Out, suffix)                                                                                      \
  KERNEL_BOUNDS(log_softmax_backward_rows##n##_##suffix, 128, Out* to, const T* grad, const T* output, int64_t rows, \
                int width) {                                                                                         \
    log_softmax_backward_rows<n>(to, grad, output, rows, width);                                                     \
  }
#define ENTRIES(T, Out, suffix) \
  ROWS(1, T, Out, suffix)       \
  ROWS(2, T, Out, suffix)       \
  ROWS(4, T, Out, suffix) ROWS(8, T, Out, suffix) ROWS(16, T, Out, suffix) ROWS(32, T, Out, suffix)
ENTRIES(float, float, f32)
ENTRIES(bf16, bf16, bf16)
ENTRIES(f16, f16, f16)
ENTRIES(float, bf16, f32_bf16)
ENTRIES(float, f16, f32_f16)
