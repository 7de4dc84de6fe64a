// all.cu: whether all elements along a dimension are not zero, or any. A NaN is not zero.
#include "prelude.cuh"
#include "fold.cuh"

template <class T, bool every> struct truths {
  typedef uint32_t number;
  __device__ number first() const { return every; }
  __device__ void take(number& v, T element, uint32_t) const { join(v, up(element) != 0); }
  __device__ void join(number& v, number other) const { v = every ? v & other : v | other; }
};

// The result is a byte of 0 or 1, for bool and for uint8.
#define ENTRY(entry, fold, T, every)                                                               \
  KERNEL(entry, SPACE, OUTPUT(uint8_t, y), OUTPUT(const T, x), uint32_t count, int64_t step) {     \
    space s = THE_SPACE;                                                                           \
    strides to = THE_STRIDES(y);                                                                   \
    fold(truths<T, every>(), s, x, THE_STRIDES(x), line{count, step},                              \
         [&](const position& p, const T*, uint32_t v) { y[offset(to, p, s.dims)] = (uint8_t)v; }); \
  }
#define ENTRIES(T, suffix)                               \
  ENTRY(all_##suffix##_thread, fold_by_thread, T, true)  \
  ENTRY(all_##suffix##_warp, fold_by_warp, T, true)      \
  ENTRY(any_##suffix##_thread, fold_by_thread, T, false) \
  ENTRY(any_##suffix##_warp, fold_by_warp, T, false)
EACH_FLOAT(ENTRIES)
ENTRIES(int64_t, i64)
ENTRIES(int32_t, i32)
ENTRIES(uint8_t, u8)
