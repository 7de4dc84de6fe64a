#include "prelude.cuh"
#include "convert.cuh"
#include "plane.cuh"

// The mean of each window: elements are added row by row, left to right, to a zero, in float (double for double); the
// sum is divided, not multiplied by a reciprocal, and rounded once. divisor 0 means the size of the window, with what lies
// in the padding (but not beyond it, where ceil_mode makes a window hang over) or without.
#define ENTRY(T, suffix)                                                                                              \
  KERNEL(avg_pool2d_##suffix, uint32_t n, const T *x, PLANES(x), T *y, PLANES(y), uint32_t channels,                  \
         uint32_t out_height, uint32_t out_width, int height, int width, int kernel_h, int kernel_w, int stride_h,    \
         int stride_w, int pad_h, int pad_w, int count_include_pad, int divisor, int channels_last) {                 \
    planes in = THE_PLANES(x), out = THE_PLANES(y);                                                                   \
    GRID_STRIDE(i, n) {                                                                                               \
      place p = locate((uint32_t)i, channels, out_height, out_width, channels_last);                                  \
      int begin_h = (int)p.h * stride_h - pad_h, begin_w = (int)p.w * stride_w - pad_w;                               \
      int end_h = min(begin_h + kernel_h, height + pad_h), end_w = min(begin_w + kernel_w, width + pad_w);            \
      int padded = (end_h - begin_h) * (end_w - begin_w);                                                             \
      begin_h = max(begin_h, 0), begin_w = max(begin_w, 0);                                                           \
      end_h = min(end_h, height), end_w = min(end_w, width);                                                          \
      const T *plane = x + in.at(p.n, p.c, 0, 0);                                                                     \
      accumulate<T> sum = 0;                                                                                          \
      for (int h = begin_h; h < end_h; h++)                                                                           \
        for (int w = begin_w; w < end_w; w++) sum += up(plane[h * in.row + w * in.column]);                           \
      int count = divisor ? divisor : count_include_pad ? padded : (end_h - begin_h) * (end_w - begin_w);             \
      bool empty = begin_h >= end_h || begin_w >= end_w;                                                              \
      st(y + out.at(p.n, p.c, p.h, p.w), empty ? (accumulate<T>)0 : sum / (accumulate<T>)count);                      \
    }                                                                                                                 \
  }
EACH_FLOAT(ENTRY)
