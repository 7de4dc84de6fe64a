#include "prelude.cuh"
#include "pad.cuh"

// The offset of the source of p, or -1 outside of the input.
__device__ __forceinline__ int64_t source_of(const position& p, const inside& in, const strides& from, int dims) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < 8; d++) {
    if (d == dims) break;
    int64_t i = p.along[d] - in.before[d];
    if ((uint64_t)i >= in.size[d]) return -1;
    at += i * from.along[d];
  }
  return at;
}

#define ENTRY(T, bytes)                                                                              \
  KERNEL(constant_pad_nd_##bytes, SPACE, OUTPUT(T, y), OUTPUT(const T, x), INSIDE, uint64_t value) { \
    space s = THE_SPACE;                                                                             \
    strides from = THE_STRIDES(x);                                                                   \
    inside in = THE_INSIDE;                                                                          \
    take(s, y, THE_STRIDES(y), x, from, in.runs(s), 0, (T)value,                                     \
         [&](const position& p) { return source_of(p, in, from, dims); });                           \
  }
EACH_SIZE(ENTRY)
