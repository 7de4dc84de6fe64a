#include "prelude.cuh"
#include "plane.cuh"
#include "resample.cuh"

// PyTorch has a kernel for channels-last tensors of 16 channels and more, and one for all others, of the same
// arithmetic: h0*(w0*a + w1*b) + h1*(w0*c + w1*d), in each sum the first product fused.
template <class T> __device__ __forceinline__ void upsample_bilinear(const T* x, const planes& in, T* y,
                                                                     const planes& out, const outputs& o, int height,
                                                                     int width, float scale_h, float scale_w,
                                                                     int corners) {
  each_output(o, [&](int n, int c, int h, int w) {
    neighbours row = neighbours_of(h, height, scale_h, corners), column = neighbours_of(w, width, scale_w, corners);
    const T* plane = x + in.at(n, c, 0, 0);
    const T *upper = plane + row.first * in.row, *lower = plane + row.second * in.row;
    int west = column.first * in.column, east = column.second * in.column;
    float a = fmaf(column.weight0, ld(upper + west), column.weight1 * ld(upper + east));
    float b = fmaf(column.weight0, ld(lower + west), column.weight1 * ld(lower + east));
    st(y + out.at(n, c, h, w), fmaf(row.weight0, a, row.weight1 * b));
  });
}

#define ENTRY(T, suffix)                                                                                               \
  KERNEL(upsample_bilinear2d_##suffix, const T* x, PLANES(x), T* y, PLANES(y), OUTPUTS, int height, int width,         \
         float scale_h, float scale_w, int align_corners) {                                                            \
    upsample_bilinear(x, THE_PLANES(x), y, THE_PLANES(y), THE_OUTPUTS(channels_last), height, width, scale_h, scale_w, \
                      align_corners);                                                                                  \
  }
EACH_DTYPE(ENTRY)
