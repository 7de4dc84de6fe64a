#include "prelude.cuh"
#include "plane.cuh"

// The input row of an output row: floor(row * scale) in float, as PyTorch computes it, at most the last one.
__device__ __forceinline__ uint32_t nearest(uint32_t out, uint32_t out_size, int in_size, float scale) {
  if ((int)out_size == in_size) return out;
  return (uint32_t)min((int)floorf((float)(int)out * scale), in_size - 1);
}

// Bits are copied as they are, by the size of an element.
#define ENTRY(T, bytes)                                                                                        \
  KERNEL(upsample_nearest2d_##bytes, uint32_t n, const T *x, PLANES(x), T *y, PLANES(y), uint32_t channels,    \
         uint32_t out_height, uint32_t out_width, int height, int width, float scale_h, float scale_w,         \
         int channels_last) {                                                                                  \
    planes in = THE_PLANES(x), out = THE_PLANES(y);                                                            \
    GRID_STRIDE(i, n) {                                                                                        \
      place p = locate((uint32_t)i, channels, out_height, out_width, channels_last);                           \
      uint32_t h = nearest(p.h, out_height, height, scale_h), w = nearest(p.w, out_width, width, scale_w);     \
      y[out.at(p.n, p.c, p.h, p.w)] = x[in.at(p.n, p.c, h, w)];                                                \
    }                                                                                                          \
  }
ENTRY(uint8_t, 1)
ENTRY(uint16_t, 2)
ENTRY(uint32_t, 4)
ENTRY(uint64_t, 8)
