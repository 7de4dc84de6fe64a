#include "prelude.cuh"
#include "pad.cuh"

// Outside of the input its nearest element is repeated.
__device__ __forceinline__ int64_t source_of(const position& p, const inside& in, const strides& from, int dims) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < 8; d++) {
    if (d == dims) break;
    int64_t i = p.along[d] - in.before[d], last = (int64_t)in.size[d] - 1;
    at += (i < 0 ? 0 : i > last ? last : i) * from.along[d];
  }
  return at;
}

#define ENTRY(T, bytes)                                                                \
  KERNEL(replication_pad2d_##bytes, SPACE, OUTPUT(T, y), OUTPUT(const T, x), INSIDE) { \
    space s = THE_SPACE;                                                               \
    strides from = THE_STRIDES(x);                                                     \
    inside in = THE_INSIDE;                                                            \
    take(s, y, THE_STRIDES(y), x, from, in.runs(s), 0, T(),                            \
         [&](const position& p) { return source_of(p, in, from, dims); });             \
  }
EACH_SIZE(ENTRY)
