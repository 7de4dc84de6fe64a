// arithmetic.cuh: arithmetic by one name for every type that is computed in. Integers wrap.
#pragma once
#include "convert.cuh"

__device__ __forceinline__ float multiply(float a, float b) { return a * b; }
__device__ __forceinline__ double multiply(double a, double b) { return a * b; }
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }
#define WRAPPING(A, U)                                                         \
  __device__ __forceinline__ A multiply(A a, A b) { return (A)((U)a * (U)b); } \
  __device__ __forceinline__ A multiply_add(A a, A b, A c) { return (A)((U)a * (U)b + (U)c); }
WRAPPING(int64_t, uint64_t)
WRAPPING(int32_t, uint32_t)
WRAPPING(uint8_t, uint32_t)
#undef WRAPPING

// Functions of libm: the GPU's have the bits of PyTorch's, which were compiled from the same library.
#define FUNCTION(name, single, twice)                                  \
  __device__ __forceinline__ float name(float x) { return single(x); } \
  __device__ __forceinline__ double name(double x) { return twice(x); }
FUNCTION(exponential, expf, exp)
FUNCTION(logarithm, logf, log)
FUNCTION(sine_of, sinf, sin)
FUNCTION(cosine_of, cosf, cos)
FUNCTION(tanh_of, tanhf, tanh)
FUNCTION(error_function, erff, erf)
FUNCTION(root, sqrtf, sqrt)
FUNCTION(inverse_root, rsqrtf, rsqrt)
FUNCTION(toward_zero, truncf, trunc)
FUNCTION(toward_minus, floorf, floor)
FUNCTION(magnitude, fabsf, fabs)
#undef FUNCTION
template <class A> __device__ __forceinline__ A magnitude(A x) { return x < 0 ? A(-x) : x; }
__device__ __forceinline__ uint8_t magnitude(uint8_t x) { return x; }

#define FUNCTION(name, single, twice)                                              \
  __device__ __forceinline__ float name(float a, float b) { return single(a, b); } \
  __device__ __forceinline__ double name(double a, double b) { return twice(a, b); }
FUNCTION(power, powf, pow)
FUNCTION(remainder_of, fmodf, fmod)
FUNCTION(with_sign, copysignf, copysign)
FUNCTION(greater, fmaxf, fmax)
FUNCTION(lesser, fminf, fmin)
#undef FUNCTION
template <class A> __device__ __forceinline__ A greater(A a, A b) { return a < b ? b : a; }
template <class A> __device__ __forceinline__ A lesser(A a, A b) { return b < a ? b : a; }

// is_nan looks at bits: of a comparison followed by fmaxf the compiler makes one instruction that gives every NaN the
// same bits.
__device__ __forceinline__ bool is_nan(float x) { return (__float_as_uint(x) & 0x7fffffffu) > 0x7f800000u; }
__device__ __forceinline__ bool is_nan(double x) {
  return (uint64_t)(__double_as_longlong(x) & 0x7fffffffffffffffll) > 0x7ff0000000000000ull;
}
__device__ __forceinline__ bool is_nan(bf16 x) { return (__bfloat16_as_ushort(x) & 0x7fff) > 0x7f80; }
__device__ __forceinline__ bool is_nan(f16 x) { return (__half_as_ushort(x) & 0x7fff) > 0x7c00; }
template <class A> __device__ __forceinline__ bool is_nan(A) { return false; }

// from_bits makes an element of its bits.
template <class T> __device__ __forceinline__ T from_bits(uint64_t bits) {
  union {
    uint64_t all;
    T first;
  } u;
  u.all = bits;
  return u.first;
}
