#include "prelude.cuh"
#include "plane.cuh"
#include "resample.cuh"

// h0*(w0*a + w1*b) + h1*(w0*c + w1*d), in each sum the first product fused. PyTorch has a kernel of its own for
// channels-last tensors of 16 channels and more; there nvcc fused the second product of the upper row in float, and
// only in float (SASS): by_channels.
template <bool by_channels, class T>
__device__ __forceinline__ void upsample_bilinear(const T* x, const planes& in, T* y, const planes& out,
                                                  const outputs& o, int height, int width, float scale_h, float scale_w,
                                                  int corners) {
  each_output(o, [&](int n, int c, int h, int w) {
    neighbours row = neighbours_of(h, height, scale_h, corners), column = neighbours_of(w, width, scale_w, corners);
    const T* plane = x + in.at(n, c, 0, 0);
    const T *upper = plane + row.first * in.row, *lower = plane + row.second * in.row;
    int west = column.first * in.column, east = column.second * in.column;
    float a = by_channels ? fmaf(column.weight1, ld(upper + east), column.weight0 * ld(upper + west))
                          : fmaf(column.weight0, ld(upper + west), column.weight1 * ld(upper + east));
    float b = fmaf(column.weight0, ld(lower + west), column.weight1 * ld(lower + east));
    st(y + out.at(n, c, h, w), fmaf(row.weight0, a, row.weight1 * b));
  });
}

#define ENTRY_OF(entry, T, by_channels)                                                                               \
  KERNEL(entry, const T* x, PLANES(x), T* y, PLANES(y), OUTPUTS, int height, int width, float scale_h, float scale_w, \
         int align_corners) {                                                                                         \
    upsample_bilinear<by_channels>(x, THE_PLANES(x), y, THE_PLANES(y), THE_OUTPUTS(channels_last), height, width,     \
                                   scale_h, scale_w, align_corners);                                                  \
  }
#define ENTRY(T, suffix) ENTRY_OF(upsample_bilinear2d_##suffix, T, false)
EACH_DTYPE(ENTRY)
ENTRY_OF(upsample_bilinear2d_by_channels_f32, float, true)
