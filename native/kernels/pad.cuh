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

// The offset of the source of p from dimension `first` on, or -1 where there is none. An edge gives the index in the
// input that stands for i, which may lie outside, or -1.
template <class Edge> __device__ __forceinline__ int64_t source_of(const Edge& edge, const position& p,
                                                                   const inside& in, const strides& from, int dims,
                                                                   int first = 0) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < 8; d++) {
    if (d == dims) break;
    if (d < first) continue;
    int64_t i = edge(p.along[d] - in.before[d], in.size[d]);
    if (i < 0) return -1;
    at += i * from.along[d];
  }
  return at;
}

// pad: y[p] = the source of p, or missing.
template <class T, class Edge> __device__ __forceinline__ void pad(const space& s, T* y, const strides& to, const T* x,
                                                                   const strides& from, const inside& in, T missing,
                                                                   const Edge& edge) {
  take(s, y, to, x, from, in.runs(s), 0, missing,
       [&](const position& p) { return source_of(edge, p, in, from, s.dims); });
}

// pad_flat is pad where the result is one run without gaps and rows have at least 4 elements: packs of it, wherever
// rows begin and end. Padded rows are seldom whole packs (641 columns), and with one element a thread most instructions
// would find its place: here a pack does that once, or twice where it lies in two rows.
template <class T, class Edge> __device__ __forceinline__ void pad_flat(const space& s, T* y, const T* x,
                                                                        const strides& from, const inside& in,
                                                                        T missing, const Edge& edge) {
  constexpr int N = 16 / sizeof(T) < 4 ? 16 / sizeof(T) : 4;
  const uint32_t width = s.size[0];
  uint32_t packs = aligned(y, N) ? s.n / N : 0;
  GRID_STRIDE(k, packs) {
    uint32_t first = (uint32_t)k * N, column = first - first / width * width;
    pack<T, N> v;
    int64_t row = source_of(edge, find<1>(s, first), in, from, s.dims, 1), next = row;
    if (column + N > width) next = source_of(edge, find<1>(s, first + N - 1), in, from, s.dims, 1);
#pragma unroll
    for (int j = 0; j < N; j++) {
      bool same = column + j < width;
      int32_t i = edge((int32_t)(column + j - (same ? 0 : width)) - in.before[0], in.size[0]);
      int64_t at = same ? row : next;
      v.at[j] = at < 0 || i < 0 ? missing : x[at + i * from.along[0]];
    }
    write<N>(y + first, v);
  }
  GRID_STRIDE(k, s.n - packs * N) {
    int64_t at = source_of(edge, find<1>(s, packs * N + (uint32_t)k), in, from, s.dims);
    y[packs * N + k] = at < 0 ? missing : x[at];
  }
}

// The two entries of a padding by the size of an element; more parameters may follow.
#define PAD_ENTRIES(name, T, bytes, edge, missing, ...)                                         \
  KERNEL(name##_##bytes, SPACE, OUTPUT(T, y), OUTPUT(const T, x), INSIDE, ##__VA_ARGS__) {      \
    pad<T>(THE_SPACE, y, THE_STRIDES(y), x, THE_STRIDES(x), THE_INSIDE, missing, edge);         \
  }                                                                                             \
  KERNEL(name##_flat_##bytes, SPACE, OUTPUT(T, y), OUTPUT(const T, x), INSIDE, ##__VA_ARGS__) { \
    pad_flat<T>(THE_SPACE, y, x, THE_STRIDES(x), THE_INSIDE, missing, edge);                    \
  }
