// half_types.h: bf16 and fp16 as storage, and conversions that round to nearest even with CUDA's NaNs.
#pragma once
struct __align__(2) __nv_bfloat16 {
  uint16_t x;
};
struct __align__(2) __half {
  uint16_t x;
};
struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
struct __align__(4) __half2 {
  __half x, y;
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
typedef __half half;
typedef __half2 half2;

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short u) { return {u}; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.x; }
static inline __half __ushort_as_half(unsigned short u) { return {u}; }
static inline unsigned short __half_as_ushort(__half h) { return h.x; }

static inline float __bfloat162float(__nv_bfloat16 h) {
  uint32_t u = (uint32_t)h.x << 16;
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}
// Every NaN becomes 0x7fff.
static inline __nv_bfloat16 __float2bfloat16_rn(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  return {(uint16_t)((u & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded)};
}
static inline __nv_bfloat16 __float2bfloat16(float f) { return __float2bfloat16_rn(f); }

// The CPU's conversion instructions. g++ gets them without <immintrin.h>,
// which would double the time that a kernel file takes to compile.
#ifdef __clang__
#include <immintrin.h>
static inline float ch_widen(uint16_t h) { return _cvtsh_ss(h); }
static inline uint16_t ch_narrow(float f) { return (uint16_t)_cvtss_sh(f, 0); }
#else
typedef short ch_8xshort __attribute__((vector_size(16)));
typedef float ch_4xfloat __attribute__((vector_size(16)));
static inline float ch_widen(uint16_t h) {
  return __builtin_ia32_vcvtph2ps(ch_8xshort{(short)h, 0, 0, 0, 0, 0, 0, 0})[0];
}
static inline uint16_t ch_narrow(float f) { return (uint16_t)__builtin_ia32_vcvtps2ph(ch_4xfloat{f, 0, 0, 0}, 0)[0]; }
#endif
// Every NaN becomes 0x7fffffff, as on the GPU.
static inline float __half2float(__half h) {
  float f = ch_widen(h.x);
  if (f == f) return f;
  uint32_t nan = 0x7fffffff;
  memcpy(&f, &nan, sizeof f);
  return f;
}
// Every NaN becomes 0x7fff.
static inline __half __float2half_rn(float f) { return {f != f ? (uint16_t)0x7fff : ch_narrow(f)}; }
static inline __half __float2half(float f) { return __float2half_rn(f); }

static inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {__bfloat162float(v.x), __bfloat162float(v.y)}; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v) {
  return {__float2bfloat16_rn(v.x), __float2bfloat16_rn(v.y)};
}
static inline float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
static inline __half2 __float22half2_rn(float2 v) { return {__float2half_rn(v.x), __float2half_rn(v.y)}; }
