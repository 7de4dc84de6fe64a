#include "prelude.cuh"
#include "batch_norm.cuh"

KERNEL(batch_norm_invstd, int64_t n, float* invstd, const float* variance, float eps) {
  GRID_STRIDE(i, n) { invstd[i] = rsqrtf(variance[i] + eps); }
}

#define TRANSFORM(entry, N, T)                                                                             \
  KERNEL_BOUNDS(entry, 256, T* y, const T* x, const float* mean, const float* invstd, const float* weight, \
                int has_weight, const float* bias, int has_bias, uint32_t channels, uint32_t inner) {      \
    channel c = channel_of(blockIdx.x % channels, mean, invstd, weight, has_weight, bias, has_bias);       \
    each_of_plane<N>(y, x, inner, [&](T v) { return cast_to<T>::from(normalise(up(v), c)); });             \
  }
#define ENTRIES(T, suffix)                       \
  TRANSFORM(batch_norm_transform_##suffix, 1, T) \
  TRANSFORM(batch_norm_transform_##suffix##_packs, 16 / sizeof(T), T)
EACH_DTYPE(ENTRIES)

// Channels-last tensors: the same arithmetic, the channel is the innermost dimension.
#define CHANNELS_LAST(T, suffix)                                                                                  \
  KERNEL(batch_norm_transform_last_##suffix, int64_t n, T* y, const T* x, const float* mean, const float* invstd, \
         const float* weight, int has_weight, const float* bias, int has_bias, uint32_t channels) {               \
    GRID_STRIDE(i, n) {                                                                                           \
      channel c = channel_of((uint32_t)(i % channels), mean, invstd, weight, has_weight, bias, has_bias);         \
      st(y + i, normalise(ld(x + i), c));                                                                         \
    }                                                                                                             \
  }
EACH_DTYPE(CHANNELS_LAST)
