#include "prelude.cuh"
#include "plane.cuh"

// The input row of an output row: floor((row + centre) * scale) in float, as PyTorch computes it, at most the last one.
// centre is 0, or a half for upsample_nearest_exact2d.
__device__ __forceinline__ int nearest(int out, int out_size, int in_size, float scale, float centre) {
  return out_size == in_size ? out : min((int)floorf(((float)out + centre) * scale), in_size - 1);
}

// Bits are copied as they are, by the size of an element.
#define ENTRY(T, bytes)                                                                                      \
  KERNEL(upsample_nearest2d_##bytes, const T* x, PLANES(x), T* y, PLANES(y), OUTPUTS, int height, int width, \
         float scale_h, float scale_w, float centre) {                                                       \
    planes in = THE_PLANES(x), out = THE_PLANES(y);                                                          \
    outputs o = THE_OUTPUTS(channels_last);                                                                  \
    each_output(o, [&](int n, int c, int h, int w) {                                                         \
      int row = nearest(h, o.height, height, scale_h, centre);                                               \
      int column = nearest(w, o.width, width, scale_w, centre);                                              \
      y[out.at(n, c, h, w)] = x[in.at(n, c, row, column)];                                                   \
    });                                                                                                      \
  }
ENTRY(uint8_t, 1)
ENTRY(uint16_t, 2)
ENTRY(uint32_t, 4)
ENTRY(uint64_t, 8)
