// places.cuh: results whose elements come from places in the input that a kernel computes. Bits are moved as they are,
// by the size of an element.
#pragma once
#include "elementwise.cuh"

template <int N, class T, class Where>
__device__ __forceinline__ void take_packs(const space& s, T* y, const strides& to, const T* x, const strides& from,
                                           int64_t steps, T missing, Where where) {
  bool packed = N > 1 && whole<N>(x, from, s.dims) && steps % N == 0;
  GRID_STRIDE(i, s.n / N) {
    position p = find<N>(s, (uint32_t)i);
    int64_t at = where(p);
    pack<T, N> v;
    if (at < 0) {
#pragma unroll
      for (int j = 0; j < N; j++) v.at[j] = missing;
    } else if (packed) {
      v = read<N>(x + at);
    } else {
#pragma unroll
      for (int j = 0; j < N; j++) v.at[j] = x[at + j * from.along[0]];
    }
    store_pack<N>(y, to, p, s.dims, v);
  }
}

// take: y[p] = x[where(p)]; where it is negative y becomes missing. from are the input's strides along the result's
// dimensions. runs: along the innermost dimension the input is walked by its stride. steps: offsets beside those of
// from that where adds up, or-ed.
template <class T, class Where> __device__ __forceinline__ void take(const space& s, T* y, const strides& to,
                                                                     const T* x, const strides& from, bool runs,
                                                                     int64_t steps, T missing, Where where) {
#ifndef CUDA_HOST  // where compilers take long and packs gain nothing
  constexpr int N = 16 / sizeof(T);
  if (runs && s.size[0] % N == 0) return take_packs<N>(s, y, to, x, from, steps, missing, where);
#endif
  take_packs<1>(s, y, to, x, from, steps, missing, where);
}

#define EACH_SIZE(M) M(uint8_t, 1) M(uint16_t, 2) M(uint32_t, 4) M(uint64_t, 8)
