// functors.cuh: the arithmetic of element-wise operations. A functor takes numbers (float for 16-bit types) and gives
// one, unrounded, so that functors compose: g(round_to<T>(f(x))) is f, then g, with the rounding point that eager
// PyTorch has between two operations. fused multiply-adds stand where PyTorch's compiled code has FFMA.
#pragma once
#include "arithmetic.cuh"

// apply<Out>(f, x...) applies a functor to elements and gives an element. A functor that is marked by
// `typedef void on_elements;` gets the elements themselves and gives one: it can keep the bits of a NaN.
template <class F, class = void> struct application {
  template <class Out, class... X> static __device__ __forceinline__ Out of(const F& f, X... x) {
    return cast_to<Out>::from(f(up(x)...));
  }
};
template <class F> struct application<F, typename F::on_elements> {
  template <class Out, class... X> static __device__ __forceinline__ Out of(const F& f, X... x) { return f(x...); }
};
template <class Out, class F, class... X> __device__ __forceinline__ Out apply(const F& f, X... x) {
  return application<F>::template of<Out>(f, x...);
}

// ---- sums, products, quotients ------------------------------------------------------------------------------------

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
// other + alpha * self: rsub, where alpha is the negative of PyTorch's.
template <class A> struct number_add {
  A other, alpha;
  __device__ A operator()(A self) const { return multiply_add(alpha, self, other); }
};

struct mul {
  template <class A> __device__ A operator()(A self, A other) const { return multiply(self, other); }
};
template <class A> struct mul_number {
  A other;
  __device__ A operator()(A self) const { return multiply(self, other); }
};

struct divide {
  template <class A> __device__ A operator()(A self, A other) const { return self / other; }
};

// Quotients towards zero: the quotient is rounded to the element's type first.
template <class T> struct divide_trunc {
  __device__ number<T> operator()(number<T> self, number<T> other) const {
    return toward_zero(round_to<T>(self / other));
  }
};
// By a Python number: a product with its reciprocal, not rounded.
template <class A> struct divide_trunc_number {
  A inverse;
  __device__ A operator()(A self) const { return toward_zero(self * inverse); }
};

// Quotients towards minus infinity are Python's: what the remainder leaves is divided, and the result mended. Only the
// floor is rounded to the element's type.
template <class T, class Divide>
__device__ __forceinline__ number<T> floor_quotient(number<T> self, number<T> other, Divide divide) {
  typedef number<T> A;
  A rest = remainder_of(self, other), q = divide(self - rest);
  if (rest != 0 && (other < 0) != (rest < 0)) q = q - A(1);
  if (q == 0) return with_sign(A(0), divide(self));
  A floor = round_to<T>(toward_minus(q));
  return q - floor > A(0.5) ? floor + A(1) : floor;
}
template <class T> struct divide_floor {
  typedef number<T> A;
  __device__ A operator()(A self, A other) const {
    return other == 0 ? self / other : floor_quotient<T>(self, other, [=](A v) { return v / other; });
  }
};
template <class T> struct divide_floor_number {
  typedef number<T> A;
  A other, inverse;
  __device__ A operator()(A self) const {
    A by = inverse;
    return floor_quotient<T>(self, other, [=](A v) { return v * by; });
  }
};

// Whole numbers. A division by 0 has no result in PyTorch either; what matters is that it does no harm.
template <class A> struct divide_trunc_integers {
  __device__ A operator()(A self, A other) const { return other == 0 || other == A(-1) ? A(-self) : A(self / other); }
};
template <class A> struct divide_floor_integers {
  __device__ A operator()(A self, A other) const {
    A q = divide_trunc_integers<A>()(self, other);
    return other != 0 && (self < 0) != (other < 0) && multiply(q, other) != self ? A(q - 1) : q;
  }
};
template <> struct divide_trunc<int64_t> : divide_trunc_integers<int64_t> {};
template <> struct divide_trunc<int32_t> : divide_trunc_integers<int32_t> {};
template <> struct divide_trunc<uint8_t> {
  __device__ uint8_t operator()(uint8_t self, uint8_t other) const { return other ? self / other : 0xff; }
};
template <> struct divide_floor<int64_t> : divide_floor_integers<int64_t> {};
template <> struct divide_floor<int32_t> : divide_floor_integers<int32_t> {};
template <> struct divide_floor<uint8_t> : divide_trunc<uint8_t> {};

// ---- functions of one number --------------------------------------------------------------------------------------

struct neg {
  template <class A> __device__ A operator()(A x) const { return -x; }
};
struct absolute {
  template <class A> __device__ A operator()(A x) const { return magnitude(x); }
};
struct reciprocal {
  template <class A> __device__ A operator()(A x) const { return A(1) / x; }
};
#define FUNCTION(name, function)                                                  \
  struct name {                                                                   \
    template <class A> __device__ A operator()(A x) const { return function(x); } \
  };
FUNCTION(sine, sine_of)
FUNCTION(cosine, cosine_of)
FUNCTION(exponent, exponential)
FUNCTION(natural_logarithm, logarithm)
FUNCTION(square_root, root)
FUNCTION(reciprocal_root, inverse_root)
FUNCTION(tangens_hyperbolicus, tanh_of)
#undef FUNCTION

// Powers. PyTorch has products for a few exponents, each rounded to the element's type.
struct square {
  template <class A> __device__ A operator()(A x) const { return x * x; }
};
template <class T> struct cube {
  __device__ number<T> operator()(number<T> x) const { return round_to<T>(x * x) * x; }
};
template <class T> struct inverse_square {
  __device__ number<T> operator()(number<T> x) const { return number<T>(1) / round_to<T>(x * x); }
};
template <class A> struct power_number {
  A exponent;
  __device__ A operator()(A x) const { return power(x, exponent); }
};
template <class A> struct number_power {
  A base;
  __device__ A operator()(A x) const { return power(base, x); }
};

// ---- activations --------------------------------------------------------------------------------------------------

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

struct gelu {
  template <class A> __device__ A operator()(A x) const {
    return x * A(0.5) * (A(1) + error_function(x * A(0.70710678118654752440)));
  }
};
struct gelu_tanh {
  template <class A> __device__ A operator()(A x) const {
    A inner = A(0.79788456080286535588) * multiply_add(A(0.044715), x * x * x, x);
    return A(0.5) * x * (A(1) + tanh_of(inner));
  }
};

// x + 3 between 0 and 6. A NaN stays one.
template <class A> __device__ __forceinline__ A hard_step(A x) {
  A y = x + A(3);
  y = y < A(0) ? A(0) : y;
  return A(6) < y ? A(6) : y;
}
// The sixth is one in float, whatever is computed in.
struct hardsigmoid {
  template <class A> __device__ A operator()(A x) const { return hard_step(x) * A(1.0f / 6.0f); }
};
struct hardswish {
  template <class A> __device__ A operator()(A x) const { return x * hard_step(x) * A(1.0f / 6.0f); }
};

template <class A> struct leaky_relu {
  A slope;
  __device__ A operator()(A x) const { return x > A(0) ? x : x * slope; }
};

// ---- limits -------------------------------------------------------------------------------------------------------

// A NaN stays as it is, bits included; -0 is less than +0. Limits that are not given are infinite.
template <class T> struct clamp {
  typedef void on_elements;
  number<T> low, high;
  __device__ T operator()(T x) const { return is_nan(x) ? x : cast_to<T>::from(lesser(greater(up(x), low), high)); }
};
// The first NaN is the result, bits included.
struct maximum {
  typedef void on_elements;
  template <class T> __device__ T operator()(T a, T b) const {
    return is_nan(a) ? a : is_nan(b) ? b : cast_to<T>::from(greater(up(a), up(b)));
  }
};
struct minimum {
  typedef void on_elements;
  template <class T> __device__ T operator()(T a, T b) const {
    return is_nan(a) ? a : is_nan(b) ? b : cast_to<T>::from(lesser(up(a), up(b)));
  }
};

// ---- truth values -------------------------------------------------------------------------------------------------

// Comparisons by number: 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge.
struct compare {
  int how;
  template <class A> __device__ bool operator()(A a, A b) const {
    switch (how) {
      case 0: return a == b;
      case 1: return a != b;
      case 2: return a < b;
      case 3: return a <= b;
      case 4: return a > b;
    }
    return a >= b;
  }
};
// PyTorch rounds the number to the elements' type.
template <class A> struct compare_number {
  int how;
  A other;
  __device__ bool operator()(A a) const { return compare{how}(a, other); }
};

struct logical_not {
  template <class A> __device__ bool operator()(A x) const { return x == A(0); }
};
struct logical_and {
  template <class A> __device__ bool operator()(A a, A b) const { return a != A(0) && b != A(0); }
};
struct logical_or {
  template <class A> __device__ bool operator()(A a, A b) const { return a != A(0) || b != A(0); }
};

struct bitwise_and {
  template <class A> __device__ A operator()(A a, A b) const { return a & b; }
};
struct bitwise_or {
  template <class A> __device__ A operator()(A a, A b) const { return a | b; }
};
template <class T> struct bitwise_not {
  __device__ number<T> operator()(number<T> x) const { return ~x; }
};
template <> struct bitwise_not<truth> : logical_not {};

// Elements are taken whole.
struct where {
  typedef void on_elements;
  template <class M, class T> __device__ T operator()(M condition, T a, T b) const {
    return up(condition) != 0 ? a : b;
  }
};
template <class T> struct masked_fill {
  typedef void on_elements;
  T value;
  template <class M> __device__ T operator()(T x, M mask) const { return up(mask) != 0 ? value : x; }
};
