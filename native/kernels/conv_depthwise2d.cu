#include "prelude.cuh"

// Depthwise convolution as PyTorch's own kernel does it: one chain of fused multiply-adds an output, rows of the filter
// first, from the bias or 0; taps outside the image are left out, not multiplied by 0. One rounding when stored.
struct geometry {
  int channels, per_channel, in_h, in_w, out_h, out_w, k_h, k_w, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w;
};

template <int K, class T> __device__ __forceinline__ void conv_depthwise2d(int64_t n, T* y, const T* x, const T* w,
                                                                           const T* bias, int has_bias,
                                                                           const geometry& g) {
  const int k_h = K ? K : g.k_h, k_w = K ? K : g.k_w;
  GRID_STRIDE(i, n) {
    uint32_t line = (uint32_t)i / g.out_w, plane = line / g.out_h, image = plane / g.channels;
    int column = (int)((uint32_t)i - line * g.out_w) * g.stride_w - g.pad_w;
    int row = (int)(line - plane * g.out_h) * g.stride_h - g.pad_h;
    int c = plane - image * g.channels;
    const T* in = x + (int64_t)(image * (g.channels / g.per_channel) + c / g.per_channel) * g.in_h * g.in_w;
    const T* filter = w + c * k_h * k_w;
    float v = has_bias ? ld(bias + c) : 0.0f;
#pragma unroll
    for (int a = 0; a < k_h; a++) {
#pragma unroll
      for (int b = 0; b < k_w; b++) {
        int h = row + a * g.dil_h, l = column + b * g.dil_w;
        if (h >= 0 && h < g.in_h && l >= 0 && l < g.in_w)
          v = fmaf(ld(filter + a * k_w + b), ld(in + h * g.in_w + l), v);
      }
    }
    st(y + i, v);
  }
}

#define ENTRY(K, T, suffix)                                                                                       \
  KERNEL(conv_depthwise2d_k##K##_##suffix, int64_t n, T* y, const T* x, const T* w, const T* bias, int has_bias,  \
         int channels, int per_channel, int in_h, int in_w, int out_h, int out_w, int k_h, int k_w, int stride_h, \
         int stride_w, int pad_h, int pad_w, int dil_h, int dil_w) {                                              \
    geometry g = {channels, per_channel, in_h,     in_w,  out_h, out_w, k_h,                                      \
                  k_w,      stride_h,    stride_w, pad_h, pad_w, dil_h, dil_w};                                   \
    conv_depthwise2d<K>(n, y, x, w, bias, has_bias, g);                                                           \
  }
// k0 takes filters of any size.
#define ENTRIES(T, suffix) ENTRY(0, T, suffix) ENTRY(3, T, suffix) ENTRY(5, T, suffix)
EACH_DTYPE(ENTRIES)
