// device_math.h: bit casts, integer functions, conversions and arithmetic by CUDA's names, with CUDA's semantics where
// plain C++ leaves them open. Kernels are compiled with -ffp-contract=off: a product is fused only where fmaf says so.
//
// Exactly rounded, so equal to the GPU's bits: + - * /, fma, sqrt, conversions, min, max. Not so: exp, log, tanh, erf,
// rsqrt and the like, which differ from the GPU's by an ULP or so; those that are not defined here are libm's.
#pragma once

// ---- bits ---------------------------------------------------------------------------------------------------------
template <class To, class From> static __forceinline__ To ch_bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  memcpy(&to, &v, sizeof to);
  return to;
}
static inline float __uint_as_float(unsigned u) { return ch_bits<float>(u); }
static inline float __int_as_float(int u) { return ch_bits<float>(u); }
static inline unsigned __float_as_uint(float f) { return ch_bits<unsigned>(f); }
static inline int __float_as_int(float f) { return ch_bits<int>(f); }
static inline double __longlong_as_double(long long u) { return ch_bits<double>(u); }
static inline long long __double_as_longlong(double f) { return ch_bits<long long>(f); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline int __mulhi(int a, int b) { return (int)((int64_t)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)((((uint64_t)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

// ---- memory -------------------------------------------------------------------------------------------------------
template <class T> static inline T __ldg(const T* p) { return *p; }
template <class T> static inline T __ldcs(const T* p) { return *p; }
template <class T> static inline T __ldcg(const T* p) { return *p; }
template <class T> static inline void __stcs(T* p, T v) { *p = v; }
template <class T> static inline void __stcg(T* p, T v) { *p = v; }

// ---- min and max --------------------------------------------------------------------------------------------------
// Floats: a NaN loses against a number, +0 is greater than -0, two NaNs give the canonical NaN.
static __forceinline__ float ch_min(float a, float b) {
  float r = a < b ? a : b;  // b if one is a NaN
  r = a == b ? ch_bits<float>(ch_bits<unsigned>(a) | ch_bits<unsigned>(b)) : r;
  r = b != b ? a : r;
  return r != r ? __int_as_float(0x7fffffff) : r;
}
static __forceinline__ float ch_max(float a, float b) {
  float r = a > b ? a : b;
  r = a == b ? ch_bits<float>(ch_bits<unsigned>(a) & ch_bits<unsigned>(b)) : r;
  r = b != b ? a : r;
  return r != r ? __int_as_float(0x7fffffff) : r;
}
static __forceinline__ double ch_min(double a, double b) {
  double r = a < b ? a : b;
  r = a == b ? ch_bits<double>(ch_bits<uint64_t>(a) | ch_bits<uint64_t>(b)) : r;
  r = b != b ? a : r;
  return r != r ? __longlong_as_double(0x7fffffffffffffff) : r;
}
static __forceinline__ double ch_max(double a, double b) {
  double r = a > b ? a : b;
  r = a == b ? ch_bits<double>(ch_bits<uint64_t>(a) & ch_bits<uint64_t>(b)) : r;
  r = b != b ? a : r;
  return r != r ? __longlong_as_double(0x7fffffffffffffff) : r;
}
static __forceinline__ float ch_fminf(float a, float b) { return ch_min(a, b); }
static __forceinline__ float ch_fmaxf(float a, float b) { return ch_max(a, b); }
static __forceinline__ double ch_fmin(double a, double b) { return ch_min(a, b); }
static __forceinline__ double ch_fmax(double a, double b) { return ch_max(a, b); }
#define fminf ch_fminf
#define fmaxf ch_fmaxf
#define fmin ch_fmin
#define fmax ch_fmax
// min and max take any two arithmetic types and compare in their common one, as CUDA's overloads do.
template <class A, class B> static __forceinline__ std::common_type_t<A, B> min(A a, B b) {
  static_assert(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, "min of numbers");
  typedef std::common_type_t<A, B> T;
  if constexpr (std::is_floating_point_v<T>)
    return ch_min((T)a, (T)b);
  else
    return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B> static __forceinline__ std::common_type_t<A, B> max(A a, B b) {
  static_assert(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, "max of numbers");
  typedef std::common_type_t<A, B> T;
  if constexpr (std::is_floating_point_v<T>)
    return ch_max((T)a, (T)b);
  else
    return (T)a < (T)b ? (T)b : (T)a;
}

// ---- rounded arithmetic -------------------------------------------------------------------------------------------
static __forceinline__ float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
static inline float __frsqrt_rn(float a) { return (float)(1.0 / __builtin_sqrt((double)a)); }
static __forceinline__ double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __drcp_rn(double a) { return 1.0 / a; }
static inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// ---- conversions --------------------------------------------------------------------------------------------------
// To integers: values out of range saturate; a NaN is 0 from float to 32 bits and the top bit alone otherwise. A plain
// cast of such a value differs from the GPU's.
template <class I, class F> static inline I ch_to_integer(F v) {  // v is integral
  typedef std::numeric_limits<I> limits;
  if (v != v) return sizeof(F) == 4 && sizeof(I) == 4 ? (I)0 : (I)((I)1 << (8 * sizeof(I) - 1));
  if (v >= (F)18446744073709551616.0 / (F)((uint64_t)1 << (64 - limits::digits))) return limits::max();
  if (v <= (F)limits::min()) return limits::min();
  return (I)v;
}
#define CH_TO_INTEGER(NAME, F, I)                                                     \
  static inline I __##NAME##_rn(F v) { return ch_to_integer<I>(__builtin_rint(v)); }  \
  static inline I __##NAME##_rz(F v) { return ch_to_integer<I>(__builtin_trunc(v)); } \
  static inline I __##NAME##_rd(F v) { return ch_to_integer<I>(__builtin_floor(v)); } \
  static inline I __##NAME##_ru(F v) { return ch_to_integer<I>(__builtin_ceil(v)); }
CH_TO_INTEGER(double2int, double, int)
CH_TO_INTEGER(double2uint, double, unsigned)
CH_TO_INTEGER(double2ll, double, long long)
CH_TO_INTEGER(double2ull, double, unsigned long long)
#undef CH_TO_INTEGER
#define CH_TO_INTEGER(NAME, F, I)                                                      \
  static inline I __##NAME##_rn(F v) { return ch_to_integer<I>(__builtin_rintf(v)); }  \
  static inline I __##NAME##_rz(F v) { return ch_to_integer<I>(__builtin_truncf(v)); } \
  static inline I __##NAME##_rd(F v) { return ch_to_integer<I>(__builtin_floorf(v)); } \
  static inline I __##NAME##_ru(F v) { return ch_to_integer<I>(__builtin_ceilf(v)); }
CH_TO_INTEGER(float2int, float, int)
CH_TO_INTEGER(float2uint, float, unsigned)
CH_TO_INTEGER(float2ll, float, long long)
CH_TO_INTEGER(float2ull, float, unsigned long long)
#undef CH_TO_INTEGER
static inline float __int2float_rn(int v) { return (float)v; }
static inline float __uint2float_rn(unsigned v) { return (float)v; }
static inline float __ll2float_rn(long long v) { return (float)v; }
static inline float __ull2float_rn(unsigned long long v) { return (float)v; }
static inline double __int2double_rn(int v) { return (double)v; }
static inline double __uint2double_rn(unsigned v) { return (double)v; }
static inline double __ll2double_rn(long long v) { return (double)v; }
static inline double __ull2double_rn(unsigned long long v) { return (double)v; }
static inline float __double2float_rn(double v) { return (float)v; }

// ---- functions with another name, or none, in libm ----------------------------------------------------------------
static inline float ch_rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double ch_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
#define rsqrtf ch_rsqrtf
#define rsqrt ch_rsqrt
#define __logf logf
#define __log2f log2f
#define __sinf sinf
#define __cosf cosf
#define __powf powf
#define __tanhf tanhf
#define __trap() ch_fail("trap")

// exp that the compiler can inline and vectorise: 2^n * p(r) with r = x - n ln 2 in two parts, within 1 ULP or so.
static __forceinline__ float ch_expf(float x) {
  float t = x * 1.44269504f;
  t = t < -160.f ? -160.f : t;
  t = t > 160.f ? 160.f : t;
  float n = (t + 12582912.f) - 12582912.f;
  float r = __builtin_fmaf(n, -0.693359375f, x);
  r = __builtin_fmaf(n, 2.12194440e-4f, r);
  r = x < -110.f ? 0.f : r;
  r = x > 110.f ? 0.f : r;
  float p = 1.9875691500e-4f;
  p = __builtin_fmaf(p, r, 1.3981999507e-3f);
  p = __builtin_fmaf(p, r, 8.3334519073e-3f);
  p = __builtin_fmaf(p, r, 4.1665795894e-2f);
  p = __builtin_fmaf(p, r, 1.6666665459e-1f);
  p = __builtin_fmaf(p, r, 5.0000001201e-1f);
  p = __builtin_fmaf(p * r, r, r);
  p += 1.0f;
  int k = (int)n, half = k >> 1, rest = k - half;
  float y = p * __int_as_float((half + 127) << 23) * __int_as_float((rest + 127) << 23);
  return x != x ? x : y;
}
#define expf ch_expf
#define __expf ch_expf
