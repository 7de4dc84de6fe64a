// native_batch_norm_backward.cu: the gradients of batch norm in training as PyTorch 2.11's batch_norm_backward_kernel
// (NCHW) computes them: a block takes a channel, sums dy and dy * (x - mean), and then writes dx. Rounding points are
// those of the SASS for sm_90. Unlike every other reduction, what a thread adds is first rounded to the input's type,
// and so is what comes by a shuffle from another lane: Float2's constructor takes elements, not sums.
#include "prelude.cuh"

struct two {
  float sum, dot;
};

template <class T> struct add_rounded {
  __device__ two operator()(const two& mine, const two& other) const {
    return {mine.sum + round_to<T>(other.sum), mine.dot + round_to<T>(other.dot)};
  }
};

// A product that is rounded to a half type cannot be fused with the sum; one of floats is.
template <class T> __device__ __forceinline__ float add_product(float a, float b, float sum) {
  return sum + round_to<T>(a * b);
}
template <> __device__ __forceinline__ float add_product<float>(float a, float b, float sum) { return fmaf(a, b, sum); }

#ifdef CUDA_HOST
#define PART static __noinline__
#else
#define PART __device__ __forceinline__
#endif
template <class T> PART two add_warp(two v) { return warp_reduce_down(v, add_rounded<T>()); }

// wanted says which of dx (1), dweight (2) and dbias (4) are written, and (8) that there is a weight.
template <class T> __device__ __forceinline__ void backward(T* dx, float* dweight, float* dbias, const T* x,
                                                            const T* dy, const float* weight, const float* mean_of,
                                                            const float* invstd_of, int wanted, uint32_t images,
                                                            uint32_t channels, uint32_t inner) {
  __shared__ two part[32];
  uint32_t channel = blockIdx.x, thread = threadIdx.x + threadIdx.y * blockDim.x;
  float mean = mean_of[channel], invstd = invstd_of[channel];
  two v = {};
  for (uint32_t n = threadIdx.y; n < images; n += blockDim.y) {
    int64_t plane = ((int64_t)n * channels + channel) * inner;
    for (uint32_t i = threadIdx.x; i < inner; i += blockDim.x) {
      float g = ld(dy + plane + i), centred = ld(x + plane + i) - mean;
      v.sum += g;
      v.dot = add_product<T>(g, centred, v.dot);
    }
  }
  v = add_warp<T>(v);
  if (thread % 32 == 0) part[thread / 32] = v;
  __syncthreads();
  if (thread < 32) {
    v = thread < blockDim.x * blockDim.y / 32 ? part[thread] : two{};
    v = add_warp<T>(v);
  }
  __syncthreads();
  if (thread == 0) part[0] = v;
  __syncthreads();
  v = part[0];
  float norm = 1.0f / (float)(int)(images * inner);
  float average = v.sum * norm, slope = v.dot * norm * invstd * invstd;
  float factor = (wanted & 8 ? weight[channel] : 1.0f) * invstd;
  if (wanted & 1)
    for (uint32_t n = threadIdx.y; n < images; n += blockDim.y) {
      int64_t plane = ((int64_t)n * channels + channel) * inner;
      for (uint32_t i = threadIdx.x; i < inner; i += blockDim.x) {
        float g = ld(dy + plane + i), centred = ld(x + plane + i) - mean;
        st(dx + plane + i, (fmaf(-slope, centred, g) - average) * factor);
      }
    }
  if (thread > 0) return;
  if (wanted & 2) dweight[channel] = v.dot * invstd;
  if (wanted & 4) dbias[channel] = v.sum;
}

#define ENTRIES(T, suffix)                                                                                       \
  KERNEL_BOUNDS(batch_norm_backward_##suffix, 512, T* dx, float* dweight, float* dbias, const T* x, const T* dy, \
                const float* weight, const float* mean, const float* invstd, int wanted, uint32_t images,        \
                uint32_t channels, uint32_t inner) {                                                             \
    backward(dx, dweight, dbias, x, dy, weight, mean, invstd, wanted, images, channels, inner);                  \
  }
EACH_DTYPE(ENTRIES)
