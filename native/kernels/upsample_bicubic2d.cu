#include "prelude.cuh"
#include "plane.cuh"
#include "resample.cuh"

// Along the rows first, then the four results, all in float. Pixels outside are those at the border.
template <class T> __device__ __forceinline__ void upsample_bicubic(const T* x, const planes& in, T* y,
                                                                    const planes& out, const outputs& o, int height,
                                                                    int width, float scale_h, float scale_w,
                                                                    int corners) {
  each_output(o, [&](int n, int c, int h, int w) {
    float row = source_place(h, scale_h, corners, true), column = source_place(w, scale_w, corners, true);
    int top = __float2int_rd(row), left = __float2int_rd(column);
    cubic down(row - (float)top), across(column - (float)left);
    const T* plane = x + in.at(n, c, 0, 0);
    int at[4];
#pragma unroll
    for (int j = 0; j < 4; j++) at[j] = max(min(left - 1 + j, width - 1), 0) * in.column;
    float line[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const T* p = plane + max(min(top - 1 + i, height - 1), 0) * in.row;
      line[i] = across.blend(ld(p + at[0]), ld(p + at[1]), ld(p + at[2]), ld(p + at[3]));
    }
    st(y + out.at(n, c, h, w), down.blend(line[0], line[1], line[2], line[3]));
  });
}

#define ENTRY(T, suffix)                                                                                              \
  KERNEL(upsample_bicubic2d_##suffix, const T* x, PLANES(x), T* y, PLANES(y), OUTPUTS, int height, int width,         \
         float scale_h, float scale_w, int align_corners) {                                                           \
    upsample_bicubic(x, THE_PLANES(x), y, THE_PLANES(y), THE_OUTPUTS(channels_last), height, width, scale_h, scale_w, \
                     align_corners);                                                                                  \
  }
EACH_DTYPE(ENTRY)
