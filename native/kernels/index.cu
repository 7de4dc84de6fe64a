// index.cu: lookups: every element of the result comes from a place that up to 4 tensors of indices name, each along
// one dimension of the input. gather, embedding and index_select have one, index.Tensor has any. All operands are
// walked along the result's dimensions; those that do not depend on one have stride 0 there.
#include "prelude.cuh"
#include "bounds.cuh"
#include "places.cuh"

// A tensor of indices into a dimension of so many elements, which lie step apart.
struct lookup {
  const void* data;
  int wide;  // int64, else int32
  strides by;
  int64_t size, step;

  // The place that the index at p names. With wrap, negative ones count from the end.
  __device__ __forceinline__ int64_t place(const position& p, int dims, int wrap) const {
    int64_t at = offset(by, p, dims);
    int64_t i = wide ? ((const int64_t*)data)[at] : ((const int32_t*)data)[at];
    if (wrap && i < 0) i += size;
    return bounded(i, size) * step;
  }
};

template <int most, class T> __device__ __forceinline__ void look_up(const space& s, T* y, const strides& to,
                                                                     const T* x, const strides& from, int wrap,
                                                                     int count, const lookup* in) {
  int64_t changes = 0, steps = 0;  // of indices along the innermost dimension; from index to index
#pragma unroll
  for (int k = 0; k < most; k++) {
    if (k == count) break;
    changes |= in[k].by.along[0];
    steps |= in[k].step;
  }
  take(s, y, to, x, from, changes == 0, steps, T(), [&](const position& p) {
    int64_t at = offset(from, p, s.dims);
#pragma unroll
    for (int k = 0; k < most; k++) {
      if (k == count) break;
      at += in[k].place(p, s.dims, wrap);
    }
    return at;
  });
}

#define LOOKUP(i) const void *i, int i##_wide, STRIDES(i), int64_t i##_size, int64_t i##_step
#define THE_LOOKUP(i) {i, i##_wide, THE_STRIDES(i), i##_size, i##_step}
#define ENTRIES(T, bytes)                                                                                    \
  KERNEL(index1_##bytes, SPACE, OUTPUT(T, y), OUTPUT(const T, x), int wrap, LOOKUP(a)) {                     \
    const lookup in[1] = {THE_LOOKUP(a)};                                                                    \
    look_up<1>(THE_SPACE, y, THE_STRIDES(y), x, THE_STRIDES(x), wrap, 1, in);                                \
  }                                                                                                          \
  KERNEL(index4_##bytes, SPACE, OUTPUT(T, y), OUTPUT(const T, x), int wrap, int count, LOOKUP(a), LOOKUP(b), \
         LOOKUP(c), LOOKUP(d)) {                                                                             \
    const lookup in[4] = {THE_LOOKUP(a), THE_LOOKUP(b), THE_LOOKUP(c), THE_LOOKUP(d)};                       \
    look_up<4>(THE_SPACE, y, THE_STRIDES(y), x, THE_STRIDES(x), wrap, count, in);                            \
  }
EACH_SIZE(ENTRIES)
