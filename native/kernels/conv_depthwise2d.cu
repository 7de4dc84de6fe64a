#include "prelude.cuh"
#include "elementwise.cuh"

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

// Where the result has the image's size (stride 1, K / 2 zeros around) and rows are whole packs, a thread computes V
// rows of one pack: an input is loaded once for all of its taps in them, and all loads are on their way before the
// first is used. With one output a thread each output loads K * K inputs and as many weights, which is what limits.
template <int K, int V, class T>
__device__ __forceinline__ void conv_depthwise2d_same(int64_t n, T* y, const T* x, const T* w, const T* bias,
                                                      int has_bias, const geometry& g) {
  constexpr int P = K / 2, R = 4;
  if (!aligned(R, x, y)) return conv_depthwise2d<K>(n, y, x, w, bias, has_bias, g);
  const uint32_t across = g.in_w / R, down = (g.in_h + V - 1) / V, image_size = g.in_h * g.in_w;
  GRID_STRIDE(i, (uint32_t)n / image_size * across * down) {
    uint32_t band = (uint32_t)i / across, q = (uint32_t)i - band * across;
    uint32_t plane = band / down, image = plane / g.channels;
    int top = (int)(band - plane * down) * V, c = plane - image * g.channels;
    uint32_t source = plane;
    if (g.per_channel != 1) source = image * (g.channels / g.per_channel) + c / g.per_channel;
    const T* in = x + (int64_t)source * image_size + q * R;
    bool left = q > 0, right = q + 1 < across;
    T e[V + K - 1][R + 2 * P];
#pragma unroll
    for (int r = 0; r < V + K - 1; r++) {
      int h = top + r - P;
      bool there = h >= 0 && h < g.in_h;
      const T* line = in + h * g.in_w;
      pack<T, R> middle = {};
      if (there) middle = read<R>(line);
#pragma unroll
      for (int j = 0; j < R; j++) e[r][P + j] = middle.at[j];
#pragma unroll
      for (int j = 0; j < P; j++) {
        e[r][j] = there && left ? line[j - P] : T();
        e[r][P + R + j] = there && right ? line[R + j] : T();
      }
    }
    float f[K * K], v[V][R];
#pragma unroll
    for (int k = 0; k < K * K; k++) f[k] = ld(w + c * K * K + k);
    float start = has_bias ? ld(bias + c) : 0.0f;
#pragma unroll
    for (int o = 0; o < V; o++)
#pragma unroll
      for (int j = 0; j < R; j++) v[o][j] = start;
#pragma unroll
    for (int r = 0; r < V + K - 1; r++) {
      int h = top + r - P;
      if (h < 0 || h >= g.in_h) continue;
#pragma unroll
      for (int o = 0; o < V; o++) {
        if (r < o || r - o >= K) continue;
#pragma unroll
        for (int b = 0; b < K; b++)
#pragma unroll
          for (int j = 0; j < R; j++)
            if ((j + b >= P || left) && (j + b < P + R || right))
              v[o][j] = fmaf(f[(r - o) * K + b], ld(&e[r][j + b]), v[o][j]);
      }
    }
#pragma unroll
    for (int o = 0; o < V; o++) {
      if (top + o >= g.in_h) break;
      pack<T, R> out;
#pragma unroll
      for (int j = 0; j < R; j++) st(&out.at[j], v[o][j]);
      write<R>(y + (int64_t)plane * image_size + (top + o) * g.in_w + q * R, out);
    }
  }
}

#define ENTRY_OF(entry, function, T)                                                                            \
  KERNEL_BOUNDS(entry, 256, int64_t n, T* y, const T* x, const T* w, const T* bias, int has_bias, int channels, \
                int per_channel, int in_h, int in_w, int out_h, int out_w, int k_h, int k_w, int stride_h,      \
                int stride_w, int pad_h, int pad_w, int dil_h, int dil_w) {                                     \
    geometry g = {channels, per_channel, in_h,     in_w,  out_h, out_w, k_h,                                    \
                  k_w,      stride_h,    stride_w, pad_h, pad_w, dil_h, dil_w};                                 \
    function(n, y, x, w, bias, has_bias, g);                                                                    \
  }
#define ENTRY(K, T, suffix) ENTRY_OF(conv_depthwise2d_k##K##_##suffix, conv_depthwise2d<K>, T)
#define ENTRY_SAME(K, V, T, suffix) \
  ENTRY_OF(conv_depthwise2d_k##K##_same##V##_##suffix, (conv_depthwise2d_same<K, V>), T)
// k0 takes filters of any size.
#define ENTRIES(T, suffix) \
  ENTRY(0, T, suffix)      \
  ENTRY(3, T, suffix)      \
  ENTRY(5, T, suffix)      \
  ENTRY_SAME(3, 1, T, suffix) ENTRY_SAME(3, 4, T, suffix) ENTRY_SAME(5, 1, T, suffix) ENTRY_SAME(5, 4, T, suffix)
EACH_DTYPE(ENTRIES)
