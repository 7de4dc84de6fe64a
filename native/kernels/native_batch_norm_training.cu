// native_batch_norm_training.cu: the statistics of a batch as PyTorch 2.11's batch_norm_collect_statistics_kernel
// (NCHW) computes them, and what batch_norm_update_stats_and_invert makes of them. A block takes a channel: threads run
// Welford's recurrence over images (y) and pixels (x), then pairs are merged in a warp, 1, 2, 4, 8 and 16 lanes apart,
// and so are the warps. Rounding points are those of the SASS for sm_90.
#include "prelude.cuh"

struct moments {
  float mean, m2;  // m2: sum of squared distances from the mean
  int count;
};

__device__ __forceinline__ void add(moments& m, float v) {
  float before = v - m.mean;
  m.count++;
  m.mean += before / (float)m.count;
  m.m2 = fmaf(before, v - m.mean, m.m2);
}

__device__ __forceinline__ moments merge(const moments& a, const moments& b) {
  float n = (float)a.count, o = (float)b.count, factor = 1.0f / fmaxf(1.0f, (float)(a.count + b.count));
  float distance = a.mean - b.mean;
  float m2 = a.m2 + fmaf(distance * distance * n * o, factor, b.m2);
  return {fmaf(n, a.mean, o * b.mean) * factor, m2, a.count + b.count};
}

#ifdef CUDA_HOST
#define PART static __noinline__
#else
#define PART __device__ __forceinline__
#endif
PART moments merge_warp(moments m) {
  for (int apart = 1; apart < 32; apart *= 2) m = merge(m, shfl_xor(m, apart));
  return m;
}

template <class T> __device__ __forceinline__ void statistics(const T* x, float* mean, float* variance, uint32_t images,
                                                              uint32_t channels, uint32_t inner) {
  __shared__ moments part[32];
  moments m = {};
  for (uint32_t n = threadIdx.y; n < images; n += blockDim.y) {
    const T* plane = x + ((int64_t)n * channels + blockIdx.x) * inner;
    for (uint32_t i = threadIdx.x; i < inner; i += blockDim.x) add(m, ld(plane + i));
  }
  m = merge_warp(m);
  uint32_t thread = threadIdx.x + threadIdx.y * blockDim.x;
  if (thread % 32 == 0) part[thread / 32] = m;
  __syncthreads();
  if (thread >= 32) return;
  m = thread < blockDim.x * blockDim.y / 32 ? part[thread] : moments{};
  m = merge_warp(m);
  if (thread > 0) return;
  mean[blockIdx.x] = m.mean;
  variance[blockIdx.x] = m.m2 / (float)(int)(images * inner);
}

#define ENTRIES(T, suffix)                                                                                      \
  KERNEL_BOUNDS(batch_norm_statistics_##suffix, 512, const T* x, float* mean, float* variance, uint32_t images, \
                uint32_t channels, uint32_t inner) {                                                            \
    statistics(x, mean, variance, images, channels, inner);                                                     \
  }
EACH_DTYPE(ENTRIES)

// variance becomes 1/sqrt(variance + eps) in place; bessel is count/(count - 1), rounded.
KERNEL(batch_norm_update, int64_t n, float* running_mean, float* running_variance, const float* mean, float* variance,
       float momentum, float bessel, float eps) {
  GRID_STRIDE(i, n) {
    float keep = 1.0f - momentum, v = variance[i];
    running_mean[i] = fmaf(mean[i], momentum, keep * running_mean[i]);
    running_variance[i] = fmaf(v * bessel, momentum, keep * running_variance[i]);
    variance[i] = rsqrtf(v + eps);
  }
}
