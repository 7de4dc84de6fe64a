// pad.cuh: what paddings share: a result that is larger than the input along some dimensions, or smaller where a
// padding is negative.
#pragma once
#include "places.cuh"

// The input along the result's dimensions: it begins `before` elements later and has `size`.
struct inside {
  int32_t before[8];
  uint32_t size[8];

  // Packs lie along the innermost dimension, so only where that is not padded.
  __device__ bool runs(const space& s) const { return before[0] == 0 && size[0] == s.size[0]; }
};

#define INSIDE                                                                                                \
  int32_t before0, int32_t before1, int32_t before2, int32_t before3, int32_t before4, int32_t before5,       \
      int32_t before6, int32_t before7, uint32_t in0, uint32_t in1, uint32_t in2, uint32_t in3, uint32_t in4, \
      uint32_t in5, uint32_t in6, uint32_t in7
#define THE_INSIDE                                                              \
  inside {                                                                      \
    {before0, before1, before2, before3, before4, before5, before6, before7}, { \
      in0, in1, in2, in3, in4, in5, in6, in7                                    \
    }                                                                           \
  }
