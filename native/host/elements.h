// elements.h: element types of the C++ parts, their accumulators and conversions. The rules are those of
// shim/half_types.h: round to nearest even, every NaN becomes 0x7fff.
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};
template <class E> struct accumulator {
  typedef float type;
};
template <> struct accumulator<double> {
  typedef double type;
};

static inline float load(const float* p) { return *p; }
static inline double load(const double* p) { return *p; }
static inline float load(const bf16* p) {
  uint32_t u = (uint32_t)p->bits << 16;
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}
static inline float load(const f16* p) { return _cvtsh_ss(p->bits); }

static inline void store(float* p, float v) { *p = v; }
static inline void store(double* p, double v) { *p = v; }
static inline void store(bf16* p, float v) {
  uint32_t u;
  memcpy(&u, &v, sizeof u);
  uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  p->bits = (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : (uint16_t)rounded;
}
static inline void store(f16* p, float v) { p->bits = v != v ? 0x7fff : (uint16_t)_cvtss_sh(v, 0); }

// Runs of n elements. The compiler vectorises all but fp16.
template <class E, class T> static inline void load_run(T* __restrict to, const E* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = load(from + i);
}
template <> inline void load_run(float* __restrict to, const f16* __restrict from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i))));
  for (; i < n; i++) to[i] = load(from + i);
}
template <class E, class T> static inline void store_run(E* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) store(to + i, from[i]);
}
template <> inline void store_run(f16* __restrict to, const float* __restrict from, int64_t n) {
  int64_t i = 0;
  const __m128i nan = _mm_set1_epi16(0x7fff);
  for (; i + 8 <= n; i += 8) {
    __m256 v = _mm256_loadu_ps(from + i);
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m128i narrow = _mm_packs_epi32(_mm256_castsi256_si128(is_nan), _mm256_extracti128_si256(is_nan, 1));
    _mm_storeu_si128((__m128i*)(to + i), _mm_blendv_epi8(_mm256_cvtps_ph(v, 0), nan, narrow));
  }
  for (; i < n; i++) store(to + i, from[i]);
}
