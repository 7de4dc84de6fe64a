// micro.h: the innermost loop of the matrix product, for one vector width. micro_avx2.cpp and micro_avx512.cpp compile
// it.
#pragma once
#include <immintrin.h>
#include <stdint.h>

// A micro kernel adds kc products to a tile of rows x (2 vectors): s = fma(a[k][i], b[k][j], s) from zero for k =
// 0..kc-1 in this order, then c[i][j] = c[i][j] + s, or c[i][j] = s with first. Sums of blocks keep the error of long
// sums low: one chain over all k has about three times PyTorch's on the CPU. a is packed k-major, rows wide; b k-major,
// 2 vectors wide and aligned.
template <class T> using micro_fn = void (*)(int64_t kc, const T* a, const T* b, T* c, int64_t ldc, bool first);

template <class T> struct micro_set {
  int rows, columns;             // of the largest tile
  const micro_fn<T>* with_rows;  // with_rows[r-1] computes r rows
};
micro_set<float> micro_float_256();
micro_set<double> micro_double_256();
micro_set<float> micro_float_512();
micro_set<double> micro_double_512();

// V wraps a vector type: T, lanes, zero, load, store, spread, fma.
template <class V, int ROWS> static void micro(int64_t kc, const typename V::T* a, const typename V::T* b,
                                               typename V::T* c, int64_t ldc, bool first) {
  typename V::vector s[ROWS][2];
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; i++) s[i][0] = s[i][1] = V::zero();
  for (int64_t k = 0; k < kc; k++) {
    typename V::vector b0 = V::load(b), b1 = V::load(b + V::lanes);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
      typename V::vector v = V::spread(a + i);
      s[i][0] = V::fma(v, b0, s[i][0]);
      s[i][1] = V::fma(v, b1, s[i][1]);
    }
    a += ROWS;
    b += 2 * V::lanes;
  }
  if (!first) {
    const typename V::T one = 1;
    typename V::vector v = V::spread(&one);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
      s[i][0] = V::fma(v, s[i][0], V::load(c + i * ldc));  // the plain sum: a product with one is exact
      s[i][1] = V::fma(v, s[i][1], V::load(c + i * ldc + V::lanes));
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; i++) {
    V::store(c + i * ldc, s[i][0]);
    V::store(c + i * ldc + V::lanes, s[i][1]);
  }
}
