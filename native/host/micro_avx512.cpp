// micro_avx512.cpp: micro kernels of 12 rows, for 32 vector registers. Nothing outside the micro kernels may be
// compiled here: a copy of an inline function that needs AVX-512 could be the one that the linker keeps.
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC target("avx512f")
#endif
#include "micro.h"

namespace {
struct F {
  typedef float T;
  typedef __m512 vector;
  enum { lanes = 16 };
  static vector zero() { return _mm512_setzero_ps(); }
  static vector load(const T* p) { return _mm512_loadu_ps(p); }
  static void store(T* p, vector v) { _mm512_storeu_ps(p, v); }
  static vector spread(const T* p) { return _mm512_set1_ps(*p); }
  static vector fma(vector a, vector b, vector c) { return _mm512_fmadd_ps(a, b, c); }
};
struct D {
  typedef double T;
  typedef __m512d vector;
  enum { lanes = 8 };
  static vector zero() { return _mm512_setzero_pd(); }
  static vector load(const T* p) { return _mm512_loadu_pd(p); }
  static void store(T* p, vector v) { _mm512_storeu_pd(p, v); }
  static vector spread(const T* p) { return _mm512_set1_pd(*p); }
  static vector fma(vector a, vector b, vector c) { return _mm512_fmadd_pd(a, b, c); }
};
template <class V> constexpr micro_fn<typename V::T> rows[] = {
    micro<V, 1>, micro<V, 2>, micro<V, 3>, micro<V, 4>,  micro<V, 5>,  micro<V, 6>,
    micro<V, 7>, micro<V, 8>, micro<V, 9>, micro<V, 10>, micro<V, 11>, micro<V, 12>,
};
}  // namespace

micro_set<float> micro_float_512() { return {12, 2 * F::lanes, rows<F>}; }
micro_set<double> micro_double_512() { return {12, 2 * D::lanes, rows<D>}; }
#ifdef __clang__
#pragma clang attribute pop
#endif
