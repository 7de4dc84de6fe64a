#include "prelude.cuh"
#include "plane.cuh"

// Antialiased resizing: each output pixel is a weighted sum over the pixels within `support` of its place, along
// columns first, then along rows. An entry of a table of weights is the first pixel, how many there are, and `most`
// weights.
#define ENTRIES(most) (2 + (most))

__device__ __forceinline__ float bilinear_filter(float x) {
  x = x < 0.0f ? -x : x;
  return x < 1.0f ? 1.0f - x : 0.0f;
}
// Keys' cubic with a = -0.5.
__device__ __forceinline__ float bicubic_filter(float x) {
  x = x < 0.0f ? -x : x;
  if (x < 1.0f) return fmaf(fmaf(x, 1.5f, -2.5f) * x, x, 1.0f);
  if (x < 2.0f) return fmaf(fmaf(x - 5.0f, x, 8.0f), x, -4.0f) * -0.5f;
  return 0.0f;
}

// The weights of one output row or column. nvcc fused the place's product into the sum of the support and into the
// difference to the first pixel. Weights are rounded to T before they are divided by their sum, which is rounded, too.
template <class T, class Filter> __device__ __forceinline__ void weigh(int at, int size, float scale, float support,
                                                                       int most, float* to, Filter filter) {
  float place = (float)at + 0.5f;
  int first = max((int)(fmaf(place, scale, -support) + 0.5f), 0);
  int count = min((int)(fmaf(place, scale, support) + 0.5f), size) - first;
  float start = fmaf(-place, scale, (float)first), inverse = scale >= 1.0f ? 1.0f / scale : 1.0f, sum = 0.0f;
  count = min(count, most);
  for (int j = 0; j < most; j++) {
    float w = j < count ? filter((start + (float)j + 0.5f) * inverse) : 0.0f;
    to[2 + j] = round_to<T>(w);
    if (j < count) sum += w;
  }
  float divisor = round_to<T>(sum);
  for (int j = 0; j < count; j++)
    if (sum != 0.0f) to[2 + j] = round_to<T>(to[2 + j] / divisor);
  // Only a scale that does not fit the sizes leads outside.
  first = min(first, size - 1);
  ((int*)to)[0] = first;
  ((int*)to)[1] = min(max(count, 1), size - first);
}

// The pixels of a row, rounded to T, then the rows.
template <class T> __device__ __forceinline__ void blend(const T* x, const planes& in, T* y, const planes& out,
                                                         const outputs& o, const float* rows, const float* columns,
                                                         int most_h, int most_w) {
  each_output(o, [&](int n, int c, int h, int w) {
    const float *down = rows + h * ENTRIES(most_h), *across = columns + w * ENTRIES(most_w);
    int height = ((const int*)down)[1], width = ((const int*)across)[1];
    const T* p = x + in.at(n, c, ((const int*)down)[0], ((const int*)across)[0]);
    float sum = 0.0f;
    for (int i = 0; i < height; i++, p += in.row) {
      float line = ld(p) * across[2];
      for (int j = 1; j < width; j++) line = fmaf(ld(p + j * in.column), across[2 + j], line);
      line = round_to<T>(line);
      sum = i == 0 ? line * down[2] : fmaf(line, down[2 + i], sum);
    }
    st(y + out.at(n, c, h, w), sum);
  });
}

#define WEIGHTS(T, suffix, kind)                                                                                     \
  KERNEL(kind##_weights_##suffix, float* rows, float* columns, int height, int width, int out_height, int out_width, \
         float scale_h, float scale_w, float support_h, float support_w, int most_h, int most_w) {                   \
    GRID_STRIDE(i, out_height + out_width) {                                                                         \
      int row = (int)i, column = row - out_height;                                                                   \
      if (column < 0)                                                                                                \
        weigh<T>(row, height, scale_h, support_h, most_h, rows + row * ENTRIES(most_h), kind##_filter);              \
      else                                                                                                           \
        weigh<T>(column, width, scale_w, support_w, most_w, columns + column * ENTRIES(most_w), kind##_filter);      \
    }                                                                                                                \
  }
#define ENTRY(T, suffix)                                                                                  \
  WEIGHTS(T, suffix, bilinear)                                                                            \
  WEIGHTS(T, suffix, bicubic)                                                                             \
  KERNEL(upsample_aa2d_##suffix, const T* x, PLANES(x), T* y, PLANES(y), OUTPUTS, const float* rows,      \
         const float* columns, int most_h, int most_w) {                                                  \
    blend(x, THE_PLANES(x), y, THE_PLANES(y), THE_OUTPUTS(channels_last), rows, columns, most_h, most_w); \
  }
EACH_DTYPE(ENTRY)
