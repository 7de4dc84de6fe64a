// cudnn_bn.cu: what cuDNN 9.19's bn_fw_inf_1C11_kernel_NCHW<T, float, true, 1> computes, in arithmetic of our own:
// cuDNN's has one block for a channel. Read from the SASS for sm_90: rsqrt(variance + eps) is MUFU.RSQ with the usual
// scaling of denormals (CUDA's rsqrtf), then FADD x - mean, FMUL scale *, FFMA invstd * + bias, and last FFMA alpha * +
// 0 with alpha 1: that one turns -0 to +0.
#include "prelude.cuh"
#include "batch_norm.cuh"

// Once for each channel; parameters only.
KERNEL(bn_invstd_f32, int64_t n, float* invstd, const float* variance, float eps) {
  GRID_STRIDE(i, n) { invstd[i] = rsqrtf(variance[i] + eps); }
}

#define INFERENCE(entry, N, T)                                                                          \
  KERNEL_BOUNDS(entry, 256, T* y, const T* x, const float* scale, const float* bias, const float* mean, \
                const float* invstd, uint32_t channels, uint32_t inner) {                               \
    channel c = channel_of(blockIdx.x % channels, mean, invstd, scale, 1, bias, 1);                     \
    each_of_plane<N>(y, x, inner, [&](T v) { return cast_to<T>::from(normalise(up(v), c) + 0.0f); });   \
  }
INFERENCE(bn_inference_f32, 1, float)
INFERENCE(bn_inference_f32_packs, 4, float)
INFERENCE(bn_inference_f16, 1, f16)
INFERENCE(bn_inference_f16_packs, 8, f16)
