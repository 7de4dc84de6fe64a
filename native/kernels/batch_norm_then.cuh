// batch_norm_then.cuh: batch normalisation of an evaluation and the activation that follows it, in one kernel. The
// normalised number is rounded to its type between the two, as if it had been stored.
#pragma once
#include "batch_norm.cuh"

// zero is what is added last: 0 for cuDNN's arithmetic, which turns -0 to 0; -0, which changes nothing, for PyTorch's
// own. p and q are the activation's numbers, if it has any.
#define NORM_THEN_ENTRY(entry, N, T, functor)                                                                      \
  KERNEL_BOUNDS(entry, 256, T* y, const T* x, const float* mean, const float* invstd, const float* weight,         \
                int has_weight, const float* bias, int has_bias, uint32_t channels, uint32_t inner, float zero,    \
                float p, float q) {                                                                                \
    channel c = channel_of(blockIdx.x % channels, mean, invstd, weight, has_weight, bias, has_bias);               \
    auto f = functor;                                                                                              \
    each_of_plane<N>(y, x, inner, [&](T v) { return apply<T>(f, cast_to<T>::from(normalise(up(v), c) + zero)); }); \
  }
// NORM_THEN(silu, bf16, bf16, silu()) makes the entries batch_norm_silu_bf16 and batch_norm_silu_bf16_packs.
#define NORM_THEN(name, T, suffix, functor)                    \
  NORM_THEN_ENTRY(batch_norm_##name##_##suffix, 1, T, functor) \
  NORM_THEN_ENTRY(batch_norm_##name##_##suffix##_packs, 16 / sizeof(T), T, functor)
