// prod.cu: products of integers along a dimension, in int64, which wraps.
#include "prelude.cuh"
#include "fold.cuh"

template <class T> struct product {
  typedef uint64_t number;
  __device__ number first() const { return 1; }
  __device__ void take(number& v, T element, uint32_t) const { v *= (uint64_t)(int64_t)up(element); }
  __device__ void join(number& v, number other) const { v *= other; }
};

#define ENTRY(entry, fold, T)                                                                      \
  KERNEL(entry, SPACE, OUTPUT(int64_t, y), OUTPUT(const T, x), uint32_t count, int64_t step) {     \
    space s = THE_SPACE;                                                                           \
    strides to = THE_STRIDES(y);                                                                   \
    fold(product<T>(), s, x, THE_STRIDES(x), line{count, step},                                    \
         [&](const position& p, const T*, uint64_t v) { y[offset(to, p, s.dims)] = (int64_t)v; }); \
  }
#define ENTRIES(T, suffix)                         \
  ENTRY(prod_##suffix##_thread, fold_by_thread, T) \
  ENTRY(prod_##suffix##_warp, fold_by_warp, T)
ENTRIES(int64_t, i64)
ENTRIES(int32_t, i32)
ENTRIES(uint8_t, u8)
