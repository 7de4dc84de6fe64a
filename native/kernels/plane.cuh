// plane.cuh: walking the outputs of pooling and resampling in the order in which they lie in memory.
#pragma once

// A tensor of N images of C channels of H x W elements, in NCHW or channels-last order, with any distance between images
// and, in NCHW, between channels. Distances are in elements.
struct planes {
  int64_t image, channel, row, column;
  __device__ __forceinline__ int64_t at(uint32_t n, uint32_t c, uint32_t h, uint32_t w) const {
    return n * image + c * channel + h * row + w * column;
  }
};

// An output element: its image, channel, row and column.
struct place {
  uint32_t n, c, h, w;
};

// locate finds output number i. Outputs are counted so that neighbours lie side by side.
__device__ __forceinline__ place locate(uint32_t i, uint32_t channels, uint32_t height, uint32_t width, bool channels_last) {
  place p;
  if (channels_last) {
    uint32_t pixel = i / channels, line = pixel / width;
    p.c = i - pixel * channels;
    p.w = pixel - line * width;
    p.n = line / height;
    p.h = line - p.n * height;
  } else {
    uint32_t line = i / width, plane = line / height;
    p.w = i - line * width;
    p.h = line - plane * height;
    p.n = plane / channels;
    p.c = plane - p.n * channels;
  }
  return p;
}

// Kernel parameters of a tensor's layout and the struct made of them.
#define PLANES(x) int64_t x##_image, int64_t x##_channel, int64_t x##_row, int64_t x##_column
#define THE_PLANES(x) \
  planes { x##_image, x##_channel, x##_row, x##_column }
