// micro_avx2.cpp: micro kernels of 6 rows, for 16 vector registers.
#include "micro.h"

namespace {
struct F {
  typedef float T;
  typedef __m256 vector;
  enum { lanes = 8 };
  static vector zero() { return _mm256_setzero_ps(); }
  static vector load(const T* p) { return _mm256_loadu_ps(p); }
  static void store(T* p, vector v) { _mm256_storeu_ps(p, v); }
  static vector spread(const T* p) { return _mm256_broadcast_ss(p); }
  static vector fma(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); }
};
struct D {
  typedef double T;
  typedef __m256d vector;
  enum { lanes = 4 };
  static vector zero() { return _mm256_setzero_pd(); }
  static vector load(const T* p) { return _mm256_loadu_pd(p); }
  static void store(T* p, vector v) { _mm256_storeu_pd(p, v); }
  static vector spread(const T* p) { return _mm256_broadcast_sd(p); }
  static vector fma(vector a, vector b, vector c) { return _mm256_fmadd_pd(a, b, c); }
};
template <class V> constexpr micro_fn<typename V::T> rows[] = {
    micro<V, 1>, micro<V, 2>, micro<V, 3>, micro<V, 4>, micro<V, 5>, micro<V, 6>,
};
}  // namespace

micro_set<float> micro_float_256() { return {6, 2 * F::lanes, rows<F>}; }
micro_set<double> micro_double_256() { return {6, 2 * D::lanes, rows<D>}; }
