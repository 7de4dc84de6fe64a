#include "prelude.cuh"
#include "convert.cuh"
#include "plane.cuh"

// The largest element of each window and its index in the plane (row * width + column), as PyTorch finds them: the first
// of equal ones; a NaN beats everything before it, so the last NaN wins. Padding is never looked at. Where every element
// is -infinity the index is the window's first element in NCHW and 0 in channels-last tensors. indices may be null.
#define ENTRY(T, suffix)                                                                                             \
  KERNEL(max_pool2d_with_indices_##suffix, uint32_t n, const T *x, PLANES(x), T *y, PLANES(y), int64_t *indices,     \
         PLANES(indices), uint32_t channels, uint32_t out_height, uint32_t out_width, int height, int width,         \
         int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, \
         int channels_last) {                                                                                        \
    planes in = THE_PLANES(x), out = THE_PLANES(y), index = THE_PLANES(indices);                                     \
    GRID_STRIDE(i, n) {                                                                                              \
      place p = locate((uint32_t)i, channels, out_height, out_width, channels_last);                                 \
      int begin_h = (int)p.h * stride_h - pad_h, begin_w = (int)p.w * stride_w - pad_w;                              \
      int end_h = min(begin_h + (kernel_h - 1) * dilation_h + 1, height);                                            \
      int end_w = min(begin_w + (kernel_w - 1) * dilation_w + 1, width);                                             \
      while (begin_h < 0) begin_h += dilation_h;                                                                     \
      while (begin_w < 0) begin_w += dilation_w;                                                                     \
      const T *plane = x + in.at(p.n, p.c, 0, 0);                                                                    \
      int best_at = channels_last ? 0 : begin_h * width + begin_w;                                                   \
      T best = convert<T>(-INFINITY);                                                                                \
      accumulate<T> best_value = -INFINITY;                                                                          \
      for (int h = begin_h; h < end_h; h += dilation_h)                                                              \
        for (int w = begin_w; w < end_w; w += dilation_w) {                                                          \
          T element = plane[h * in.row + w * in.column];                                                             \
          accumulate<T> v = up(element);                                                                             \
          if (v > best_value || v != v) best = element, best_value = v, best_at = h * width + w;                     \
        }                                                                                                            \
      y[out.at(p.n, p.c, p.h, p.w)] = best;                                                                          \
      if (indices) indices[index.at(p.n, p.c, p.h, p.w)] = best_at;                                                  \
    }                                                                                                                \
  }
EACH_FLOAT(ENTRY)
