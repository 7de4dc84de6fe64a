// max_dim.cu: the largest or smallest element along a dimension, and its place: the first of equal ones; the first NaN
// beats everything. Zeros of either sign are equal. The element keeps its bits.
#include "prelude.cuh"
#include "fold.cuh"

template <class T, bool largest> struct extreme {
  typedef decltype(up(T())) value;
  struct number {
    value v;
    uint32_t at;  // of the element; ~0: none yet
  };

  __device__ static bool nan(value v) { return v != v; }
  __device__ static bool beats(value a, value b) {
    if (nan(b)) return false;
    return nan(a) || (largest ? a > b : a < b);
  }
  __device__ number first() const { return {value(), ~0u}; }
  __device__ void take(number& best, T element, uint32_t at) const {  // in ascending order of places
    value v = up(element);
    if (best.at == ~0u || beats(v, best.v)) best = {v, at};
  }
  __device__ void join(number& a, const number& b) const {
    if (b.at == ~0u) return;
    bool same = a.v == b.v || (nan(a.v) && nan(b.v));
    if (a.at == ~0u || (same ? b.at < a.at : beats(b.v, a.v))) a = b;
  }
};

#define ENTRY(entry, fold, T, largest)                                                                              \
  KERNEL(entry, SPACE, OUTPUT(T, y), OUTPUT(int64_t, at), OUTPUT(const T, x), uint32_t count, int64_t step) {       \
    space s = THE_SPACE;                                                                                            \
    strides to = THE_STRIDES(y), place = THE_STRIDES(at);                                                           \
    typedef extreme<T, largest> op;                                                                                 \
    fold(op(), s, x, THE_STRIDES(x), line{count, step}, [&](const position& p, const T* row, const op::number& v) { \
      y[offset(to, p, s.dims)] = row[v.at * step];                                                                  \
      at[offset(place, p, s.dims)] = v.at;                                                                          \
    });                                                                                                             \
  }
#define ENTRIES(T, suffix)                               \
  ENTRY(max_##suffix##_thread, fold_by_thread, T, true)  \
  ENTRY(max_##suffix##_warp, fold_by_warp, T, true)      \
  ENTRY(min_##suffix##_thread, fold_by_thread, T, false) \
  ENTRY(min_##suffix##_warp, fold_by_warp, T, false)
EACH_FLOAT(ENTRIES)
ENTRIES(int64_t, i64)
ENTRIES(int32_t, i32)
ENTRIES(uint8_t, u8)
