// roll.cu: every element moves along some dimensions, and what leaves at the end comes back at the start.
#include "prelude.cuh"
#include "places.cuh"

// How far behind an element of the result its source lies, along each dimension, counted around.
struct lags {
  uint32_t along[8];
};

__device__ __forceinline__ int64_t source_of(const position& p, const lags& lag, const strides& from, const space& s) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < 8; d++) {
    if (d == s.dims) break;
    int64_t i = p.along[d] + lag.along[d];
    at += (i < s.size[d] ? i : i - s.size[d]) * from.along[d];
  }
  return at;
}

#define ENTRY(T, bytes)                                                                                      \
  KERNEL(roll_##bytes, SPACE, OUTPUT(T, y), OUTPUT(const T, x), uint32_t lag0, uint32_t lag1, uint32_t lag2, \
         uint32_t lag3, uint32_t lag4, uint32_t lag5, uint32_t lag6, uint32_t lag7) {                        \
    space s = THE_SPACE;                                                                                     \
    strides from = THE_STRIDES(x);                                                                           \
    lags lag = {{lag0, lag1, lag2, lag3, lag4, lag5, lag6, lag7}};                                           \
    take(s, y, THE_STRIDES(y), x, from, lag0 == 0, 0, T(),                                                   \
         [&](const position& p) { return source_of(p, lag, from, s); });                                     \
  }
EACH_SIZE(ENTRY)
