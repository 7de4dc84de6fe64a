// functors.cuh: the arithmetic of element-wise operations. A functor takes numbers (float for 16-bit types) and gives
// one, unrounded, so that functors compose: g(round_to<T>(f(x))) is f, then g, with the rounding point that eager
// PyTorch has between two operations. fused multiply-adds stand where PyTorch's compiled code has FFMA.
#pragma once
#include "convert.cuh"

// apply<Out>(f, x...) applies a functor to elements and gives an element. A functor that is marked by
// `typedef void on_elements;` gets the elements themselves and gives one: it can keep the bits of a NaN.
template <class F, class = void> struct application {
  template <class Out, class... X> static __device__ __forceinline__ Out of(const F& f, X... x) {
    Out v;
    st(&v, f(up(x)...));
    return v;
  }
};
template <class F> struct application<F, typename F::on_elements> {
  template <class Out, class... X> static __device__ __forceinline__ Out of(const F& f, X... x) { return f(x...); }
};
template <class Out, class F, class... X> __device__ __forceinline__ Out apply(const F& f, X... x) {
  return application<F>::template of<Out>(f, x...);
}

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

// self + alpha * other, fused in PyTorch too; with alpha 1 that is a plain addition, with -1 a subtraction.
template <class A> struct add {
  A alpha;
  __device__ A operator()(A self, A other) const { return multiply_add(alpha, other, self); }
};
// A Python number stays in the type that is computed in: it is not rounded to a tensor's 16 bits. x + 0 is no identity,
// -0 becomes +0.
template <class A> struct add_number {
  A other, alpha;
  __device__ A operator()(A self) const { return multiply_add(alpha, other, self); }
};

struct mul {
  template <class A> __device__ A operator()(A self, A other) const { return self * other; }
};
template <class A> struct mul_number {
  A other;
  __device__ A operator()(A self) const { return self * other; }
};

struct divide {
  template <class A> __device__ A operator()(A self, A other) const { return self / other; }
};

// The same in integers, which wrap.
struct add_integers {
  typedef void on_elements;
  int64_t alpha;
  __device__ int64_t operator()(int64_t self, int64_t other) const {
    return (int64_t)((uint64_t)self + (uint64_t)alpha * (uint64_t)other);
  }
};
struct add_integer {
  typedef void on_elements;
  int64_t other, alpha;
  __device__ int64_t operator()(int64_t self) const { return add_integers{alpha}(self, other); }
};

// PyTorch's relu is clamp_min(x, 0): a NaN stays as it is, bits included, and -0 becomes +0 (FMNMX orders zeros).
struct relu {
  typedef void on_elements;
  template <class T> __device__ T operator()(T x) const {
    auto v = up(x);
    return v > 0 || v != v ? x : convert<T>(0.0f);
  }
  // By integers: the compiler makes one FMNMX of the comparisons, and that gives every NaN the same bits.
  __device__ float operator()(float x) const {
    uint32_t bits = __float_as_uint(x);
    return __uint_as_float((int)bits > 0 || bits > 0xff800000u ? bits : 0u);
  }
};

struct silu {
  template <class A> __device__ A operator()(A x) const { return x / (A(1) + exponential(-x)); }
};

struct sigmoid {
  template <class A> __device__ A operator()(A x) const { return A(1) / (A(1) + exponential(-x)); }
};

// The gradient where x is above the threshold, bits and all; a NaN x lets it through.
template <class T> struct threshold_gradient {
  typedef void on_elements;
  accumulate<T> threshold;
  __device__ T operator()(T x, T grad) const { return up(x) <= threshold ? convert<T>(0.0f) : grad; }
};
