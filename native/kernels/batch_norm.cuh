// batch_norm.cuh: batch normalisation with given statistics, one block for a part of one plane (an image's channel).
#pragma once
#include "elementwise.cuh"

// What is known of a channel.
struct channel {
  float mean, invstd, weight, bias;
};

// The one order of operations of every PyTorch and cuDNN kernel for NCHW, read from their SASS: a subtraction, a
// product rounded on its own, a fused multiply-add. invstd is rsqrt(variance + eps), rounded before it is used.
__device__ __forceinline__ float normalise(float x, const channel& c) {
  return fmaf(c.invstd, c.weight * (x - c.mean), c.bias);
}

// A missing weight is 1, a missing bias 0.
__device__ __forceinline__ channel channel_of(uint32_t c, const float* mean, const float* invstd, const float* weight,
                                              int has_weight, const float* bias, int has_bias) {
  return {mean[c], invstd[c], has_weight ? weight[c] : 1.0f, has_bias ? bias[c] : 0.0f};
}

// Block x of the grid takes plane x; blocks along y share it. N: elements that are loaded and stored at once.
template <int N, class T, class F>
__device__ __forceinline__ void each_of_plane(T* y, const T* x, uint32_t inner, F f) {
  int64_t plane = (int64_t)blockIdx.x * inner;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < inner / N; i += gridDim.y * blockDim.x) {
    pack<T, N> v = read<N>(x + plane + (int64_t)i * N);
#pragma unroll
    for (int j = 0; j < N; j++) v.at[j] = f(v.at[j]);
    write<N>(y + plane + (int64_t)i * N, v);
  }
}
