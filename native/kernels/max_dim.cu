// max_dim.cu: the largest or smallest element along a dimension, and its place: the first of equal ones; the first NaN
// beats everything. Zeros of either sign are equal. The element keeps its bits, but for NaNs of bf16: see route.
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

// PyTorch's threads pass bf16 elements to each other as floats, and a NaN loses its bits on that way. route tells which
// elements go it: where threads of a warp share a row, all but those of lane 0; where blocks share it, all but those of
// the blocks whose share lane 0 adds. Elements are given to threads as reduce.cuh does.
struct route {
  uint32_t width;       // of the block that shares a row; 0: none
  uint32_t vector;      // elements loaded at once; 0: one by one
  uint32_t step, ctas;  // of block to block, in loads; blocks that share a row

  __device__ bool passes(uint32_t k, uint32_t count, uint32_t shift) const {
    if (!width) return false;
    if (vector) {
      uint32_t end = count;
      if (shift) {
        k += shift;
        if (k < vector) return true;  // before the first whole vector: thread k, which is not the first
        k -= vector;
        end = count + shift - vector;
      }
      uint32_t tail = end - end % vector;
      if (k >= tail) return k > tail;
      k /= vector;
    }
    return k % width % 32 != 0 || (ctas > 1 && k / step % ctas % width % 32 != 0);
  }
};

template <class T> __device__ __forceinline__ T passed(T v, const route&, uint32_t, uint32_t, const T*) { return v; }
__device__ __forceinline__ bf16 passed(bf16 v, const route& r, uint32_t at, uint32_t count, const bf16* row) {
  float x = up(v);
  uint32_t shift = r.vector ? (uint64_t)row % (2 * r.vector) / 2 : 0;
  return x != x && r.passes(at, count, shift) ? convert<bf16>(x) : v;
}

#define ENTRY(entry, fold, T, largest)                                                                              \
  KERNEL(entry, SPACE, OUTPUT(T, y), OUTPUT(int64_t, at), OUTPUT(const T, x), uint32_t count, int64_t step,         \
         uint32_t width, uint32_t vector, uint32_t cta_step, uint32_t ctas) {                                       \
    space s = THE_SPACE;                                                                                            \
    strides to = THE_STRIDES(y), place = THE_STRIDES(at);                                                           \
    route r = {width, vector, cta_step, ctas};                                                                      \
    typedef extreme<T, largest> op;                                                                                 \
    fold(op(), s, x, THE_STRIDES(x), line{count, step}, [&](const position& p, const T* row, const op::number& v) { \
      y[offset(to, p, s.dims)] = passed(row[v.at * step], r, v.at, count, row);                                     \
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
