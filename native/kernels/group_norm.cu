// group_norm.cu: the three steps of PyTorch 2.11's group norm (ATen/native/cuda/group_norm_kernel.cu). The rounding
// points are read from its SASS for sm_90. Mean, rstd and eps are rounded to the input's type before they are used.
#include "prelude.cuh"
#include "batch_norm.cuh"
#include "moments.cuh"

// Block x of the grid takes a group: `n` neighbours.
template <class T> __device__ __forceinline__ void group_moments(T* mean, T* rstd, const T* x, int64_t n, float eps) {
  int64_t group = blockIdx.x;
  moments m = moments_of_row(x + group * n, n);
  if (threadIdx.x > 0) return;
  st(mean + group, m.mean);
  st(rstd + group, rstd_of(m, round_to<T>(eps)));
}

template <class T> struct affine {
  const T *weight, *bias;  // null: none
};

// Images of channels of `inner` elements. With a weight or a bias a channel is a * x + b, and the product in b is
// rounded on its own.
template <int N, class T> __device__ __forceinline__ void group_scale(T* y, const T* x, const T* mean, const T* rstd,
                                                                      const affine<T>& p, uint32_t channels,
                                                                      uint32_t per_group, uint32_t inner) {
  uint32_t group = blockIdx.x / per_group, channel = blockIdx.x % channels;
  float m = ld(mean + group), r = ld(rstd + group);
  if (!p.weight && !p.bias) {
    each_of_plane<N>(y, x, inner, [&](T v) { return cast_to<T>::from((up(v) - m) * r); });
    return;
  }
  float a = p.weight ? r * ld(p.weight + channel) : r;
  float b = (p.bias ? ld(p.bias + channel) : 0.0f) - m * a;
  each_of_plane<N>(y, x, inner, [&](T v) { return cast_to<T>::from(fmaf(a, up(v), b)); });
}

// Channels of one element are scaled one by one.
template <class T>
__device__ __forceinline__ float group_element(float v, float m, float r, const affine<T>& p, uint32_t channel) {
  float centred = v - m;
  if (p.weight && p.bias) return fmaf(centred * r, ld(p.weight + channel), ld(p.bias + channel));
  if (p.weight) return centred * r * ld(p.weight + channel);
  return p.bias ? fmaf(centred, r, ld(p.bias + channel)) : centred * r;
}

#define SCALED(T)                                                                                               \
  T *y, const T *x, const T *mean, const T *rstd, const T *weight, int has_weight, const T *bias, int has_bias, \
      uint32_t channels, uint32_t per_group
#define THE_AFFINE(T) \
  affine<T> { has_weight ? weight : nullptr, has_bias ? bias : nullptr }
#define ENTRIES(T, suffix)                                                                                            \
  KERNEL_BOUNDS(group_moments_##suffix, 512, T* mean, T* rstd, const T* x, int64_t n, float eps) {                    \
    group_moments(mean, rstd, x, n, eps);                                                                             \
  }                                                                                                                   \
  KERNEL_BOUNDS(group_scale_##suffix, 256, SCALED(T), uint32_t inner) {                                               \
    group_scale<1>(y, x, mean, rstd, THE_AFFINE(T), channels, per_group, inner);                                      \
  }                                                                                                                   \
  KERNEL_BOUNDS(group_scale_##suffix##_packs, 256, SCALED(T), uint32_t inner) {                                       \
    group_scale<16 / sizeof(T)>(y, x, mean, rstd, THE_AFFINE(T), channels, per_group, inner);                         \
  }                                                                                                                   \
  KERNEL(group_elements_##suffix, int64_t n, SCALED(T)) {                                                             \
    GRID_STRIDE(i, n) {                                                                                               \
      uint32_t group = (uint32_t)i / per_group;                                                                       \
      st(y + i, group_element(ld(x + i), ld(mean + group), ld(rstd + group), THE_AFFINE(T), (uint32_t)i % channels)); \
    }                                                                                                                 \
  }
EACH_DTYPE(ENTRIES)
