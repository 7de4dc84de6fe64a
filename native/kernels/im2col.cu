// im2col.cu: the windows of images as columns. The space is columns and rows of windows, columns and rows in a window,
// channels, images; the strides of the input are those of a step along each, and the padded image begins `before`
// elements before it. Padding is zero bits.
#include "prelude.cuh"
#include "places.cuh"

#define ENTRY(T, bytes)                                                                                              \
  KERNEL(im2col_##bytes, SPACE, OUTPUT(T, y), OUTPUT(const T, x), int height, int width, int stride_h, int stride_w, \
         int pad_h, int pad_w, int dilation_h, int dilation_w, int64_t before) {                                     \
    strides from = THE_STRIDES(x);                                                                                   \
    take(THE_SPACE, y, THE_STRIDES(y), x, from, false, 0, T(), [&](const position& p) {                              \
      int64_t row = p.along[1] * stride_h + p.along[3] * dilation_h - pad_h;                                         \
      int64_t column = p.along[0] * stride_w + p.along[2] * dilation_w - pad_w;                                      \
      bool there = row >= 0 && row < height && column >= 0 && column < width;                                        \
      return there ? offset(from, p, dims) - before : (int64_t)-1;                                                   \
    });                                                                                                              \
  }
EACH_SIZE(ENTRY)
