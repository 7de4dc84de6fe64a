// convert.cuh: the element types and the conversions between them, as PyTorch's c10::convert does them on CUDA.
#pragma once

// A type of truth values: any byte but 0 is true. It is a type of its own so that conversions to it can differ.
struct truth {
  uint8_t byte;
};

// ELEMENT(M) expands M(type, code) for every element type. Codes are those of elementCode in package ops.
#define EACH_ELEMENT(M) \
  M(float, 0) M(bf16, 1) M(f16, 2) M(double, 3) M(int64_t, 4) M(int32_t, 5) M(uint8_t, 6) M(truth, 7)

template <class T> struct code_of;
template <> struct code_of<uint16_t> {
  static const int value = 8;
};  // bits of any type of 2, 4 and 8 bytes
template <> struct code_of<uint32_t> {
  static const int value = 9;
};
template <> struct code_of<uint64_t> {
  static const int value = 10;
};
#define CODE_OF(T, n)             \
  template <> struct code_of<T> { \
    static const int value = n;   \
  };
EACH_ELEMENT(CODE_OF)
#undef CODE_OF

// up gives what arithmetic on an element is done in: float for 16-bit types, the type itself for others.
__device__ __forceinline__ float up(float v) { return v; }
__device__ __forceinline__ float up(bf16 v) { return __bfloat162float(v); }
__device__ __forceinline__ float up(f16 v) { return __half2float(v); }
__device__ __forceinline__ double up(double v) { return v; }
__device__ __forceinline__ int64_t up(int64_t v) { return v; }
__device__ __forceinline__ int32_t up(int32_t v) { return v; }
__device__ __forceinline__ uint8_t up(uint8_t v) { return v; }
__device__ __forceinline__ uint8_t up(truth v) { return v.byte != 0; }
template <class T> using number = decltype(up(T()));

// EACH_INTEGER(M) expands M(type, suffix) for the types that are no floating-point types.
#define EACH_INTEGER(M) M(int64_t, i64) M(int32_t, i32) M(uint8_t, u8) M(truth, bool)

// parameter<T> is what a Python number is given to a kernel as.
template <class A> struct parameter_of {
  typedef int64_t type;
};
template <> struct parameter_of<float> {
  typedef float type;
};
template <> struct parameter_of<double> {
  typedef double type;
};
template <class T> using parameter = typename parameter_of<number<T>>::type;

// cast<To>(v) converts the result of up. Everything goes to 16-bit types by way of float (a double is rounded twice)
// and to uint8 by way of int64, so that negative numbers wrap.
template <class To> struct cast_to {
  template <class From> static __device__ __forceinline__ To from(From v) { return (To)v; }
};
template <> struct cast_to<bf16> {
  template <class From> static __device__ __forceinline__ bf16 from(From v) { return __float2bfloat16_rn((float)v); }
};
template <> struct cast_to<f16> {
  template <class From> static __device__ __forceinline__ f16 from(From v) { return __float2half_rn((float)v); }
};
template <> struct cast_to<uint8_t> {
  template <class From> static __device__ __forceinline__ uint8_t from(From v) { return (uint8_t)(int64_t)v; }
};
template <> struct cast_to<truth> {
  template <class From> static __device__ __forceinline__ truth from(From v) { return truth{(uint8_t)(v != 0)}; }
};

// convert<To>(v) converts an element. What is of the right type already keeps its bits, NaN payloads included.
template <class To, class From> struct converter {
  static __device__ __forceinline__ To of(From v) { return cast_to<To>::from(up(v)); }
};
template <class T> struct converter<T, T> {
  static __device__ __forceinline__ T of(T v) { return v; }
};
template <class To, class From> __device__ __forceinline__ To convert(From v) { return converter<To, From>::of(v); }

// rounded<T>(v) is a Python number as an element of T has it.
template <class T> __device__ __forceinline__ number<T> rounded(parameter<T> v) { return up(cast_to<T>::from(v)); }

// load_as<To> reads element i of an array whose type is known by its code only.
template <class To> __device__ __noinline__ To load_as(int code, const void* p, int64_t i) {
  switch (code) {
#define LOAD_AS(T, n) \
  case n: return convert<To>(((const T*)p)[i]);
    EACH_ELEMENT(LOAD_AS)
#undef LOAD_AS
  }
  return To();
}
